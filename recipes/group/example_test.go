package group_test

import (
	"context"
	"fmt"

	"zabra/recipes"
	"zabra/recipes/group"
	"zabra/recipes/recipestest"
)

func Example() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-group"})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	member, err := group.Join(c, "/workers", "host-1", []byte("10.0.0.1:8080"))
	if err != nil {
		panic(err)
	}
	defer member.Leave()
	if err := member.AwaitJoined(ctx); err != nil {
		panic(err)
	}
	for members, err := range group.Watch(ctx, c, "/workers") {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d member, at %s\n", len(members), members["host-1"])
		break // or follow the group for as long as the program runs
	}

	// Output:
	// 1 member, at 10.0.0.1:8080
}
