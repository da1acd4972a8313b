package cache_test

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/recipes/cache"
	"zabra/recipes/recipestest"
)

// The members of a group, as they come and go.
func ExampleChildren() {
	ctx := context.Background()
	client, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-children"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	members, err := cache.NewChildren(client, "/members", cache.Options{NodesMax: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer members.Close()
	if err := members.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}

	events := members.Events(ctx)
	fmt.Println((<-events).Kind, len(members.List()))
	_, _ = client.Create(ctx, "/members", nil, zk.FlagPersistent)
	_, _ = client.Create(ctx, "/members/anna", []byte("10.0.0.1"), zk.FlagEphemeral)
	e := <-events
	fmt.Println(e.Kind, e.Entry.Path, e.Entry.Text())
	_ = client.Delete(ctx, "/members/anna", -1)
	e = <-events
	fmt.Println(e.Kind, e.Entry.Path)
	// Output:
	// Initialized 0
	// Added /members/anna 10.0.0.1
	// Removed /members/anna
}

// One node, and how old the copy of it is.
func ExampleNode() {
	ctx := context.Background()
	client, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-node"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, _ = client.Create(ctx, "/motd", []byte("hello"), zk.FlagPersistent)
	motd, err := cache.NewNode(client, "/motd", cache.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer motd.Close()
	fmt.Println(motd.Ready(ctx))
	e, there := motd.Get()
	age, _ := motd.Age()
	fmt.Println(e.Text(), there, age)
	// Output:
	// <nil>
	// hello true 0s
}

// A tree without what is private.
func ExampleTree() {
	ctx := context.Background()
	client, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-tree"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	for _, path := range []string{"/app", "/app/db", "/app/db/host", "/app/private"} {
		_, _ = client.Create(ctx, path, nil, zk.FlagPersistent)
	}
	tree, err := cache.NewTree(client, "/app", cache.Options{Filter: func(path string) bool { return path != "/app/private" }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tree.Close()
	fmt.Println(tree.Ready(ctx))
	for _, e := range tree.All() {
		fmt.Println(e.Path)
	}
	// Output:
	// <nil>
	// /app
	// /app/db
	// /app/db/host
}
