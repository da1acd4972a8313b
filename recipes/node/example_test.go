package node_test

import (
	"context"
	"fmt"

	"zabra/recipes"
	"zabra/recipes/node"
	"zabra/recipes/recipestest"
)

func Example() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-node"})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	n, err := node.Start(c, "/workers/host-1", []byte("idle"), node.Options{})
	if err != nil {
		panic(err)
	}
	defer n.Close()
	path, err := n.AwaitCreated(ctx)
	if err != nil {
		panic(err)
	}
	if err := n.Set(ctx, []byte("busy")); err != nil {
		panic(err)
	}
	data, _, err := c.Get(ctx, path)
	fmt.Println(path, string(data), err)

	// Output:
	// /workers/host-1 busy <nil>
}
