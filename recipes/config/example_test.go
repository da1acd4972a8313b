package config_test

import (
	"context"
	"errors"
	"fmt"

	"zabra/recipes"
	"zabra/recipes/config"
	"zabra/recipes/recipestest"
)

type settings struct {
	Workers int
}

// A value that everybody follows and that two writers may change at the same time.
func ExampleOpen() {
	ctx := context.Background()
	client, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-open"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	current, err := config.Open(ctx, client, "/settings", config.Options[settings]{
		Validate: func(s settings) error {
			if s.Workers < 1 {
				return errors.New("nobody works")
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer current.Close()

	add := func(n int) func(settings) (settings, error) {
		return func(s settings) (settings, error) { s.Workers += n; return s, nil }
	}
	version, err := current.Update(ctx, add(4))
	fmt.Println(version.Value.Workers, "in version", version.Number, err)
	_, err = current.Update(ctx, add(-4))
	fmt.Println(errors.Is(err, config.ErrRefused))
	for version := range current.Versions(ctx) {
		fmt.Println("in force:", version.Value.Workers)
		break
	}
	// Output:
	// 4 in version 0 <nil>
	// true
	// in force: 4
}

// A version goes to a few first, then to all, and back.
func ExampleRollout() {
	ctx := context.Background()
	client, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-rollout"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rollout, err := config.NewRollout(client, "/settings", config.Options[settings]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, workers := range []int{4, 8} {
		number, err := rollout.Publish(ctx, settings{Workers: workers})
		if err == nil {
			err = rollout.Promote(ctx, "canary", number)
		}
		fmt.Println("canary:", number, err)
	}
	fmt.Println("all:", rollout.Promote(ctx, "all", 1))

	current, err := rollout.Follow(ctx, "canary")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer current.Close()
	for version := range current.Versions(ctx) {
		fmt.Println("version", version.Number, "has", version.Value.Workers)
		if version.Number == 1 {
			break
		}
		number, err := rollout.Rollback(ctx, "canary")
		fmt.Println("back to", number, err)
	}
	// Output:
	// canary: 1 <nil>
	// canary: 2 <nil>
	// all: <nil>
	// version 2 has 8
	// back to 1 <nil>
	// version 1 has 4
}
