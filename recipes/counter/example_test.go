package counter_test

import (
	"context"
	"fmt"

	"zabra/recipes"
	"zabra/recipes/counter"
	"zabra/recipes/recipestest"
)

func ExampleLong() {
	client := connect()
	defer client.Close()
	ctx := context.Background()

	visits := counter.NewLong(client, "/app/visits", counter.LongOptions{})
	defer visits.Close(ctx)
	for range 2 {
		r, err := visits.Add(ctx, 5)
		if err != nil {
			panic(err)
		}
		fmt.Println(r.Before, "became", r.After)
	}
	// Output:
	// 0 became 5
	// 5 became 10
}

func ExampleCount() {
	client := connect()
	defer client.Close()
	ctx := context.Background()

	limit, err := counter.NewCount(ctx, client, "/app/limit", 100)
	if err != nil {
		panic(err)
	}
	defer limit.Close()
	changes := limit.Changes(ctx)
	if _, _, err := limit.TrySet(ctx, limit.Get(), 150); err != nil {
		panic(err)
	}
	fmt.Println((<-changes).Count)
	// Output: 150
}

// connect connects to a server that is there for the examples only, in a namespace of its own.
func connect() *recipes.Client {
	client, err := recipes.Connect(context.Background(), recipestest.Servers(), recipes.Options{Namespace: "/counter"})
	if err != nil {
		panic(err)
	}
	return client
}
