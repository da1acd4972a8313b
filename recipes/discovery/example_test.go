package discovery_test

import (
	"context"
	"fmt"

	"zabra/recipes"
	"zabra/recipes/discovery"
	"zabra/recipes/recipestest"
)

// Load is what the instances of this example tell about themselves.
type Load struct {
	Queries int `json:"queries"`
}

// A server registers itself, and a caller finds it.
func Example() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-discovery"})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	d, err := discovery.New[Load](c, "/services", discovery.Options{JavaClass: "com.example.Load"})
	if err != nil {
		panic(err)
	}
	host := discovery.Instance[Load]{Name: "search", ID: "host-1", Address: "10.0.0.1", Port: 8080, Payload: Load{Queries: 3}}
	registration, err := d.Register(ctx, host)
	if err != nil {
		panic(err)
	}
	defer registration.Close(ctx)

	provider, err := d.Provider(ctx, "search", discovery.ProviderOptions[Load]{})
	if err != nil {
		panic(err)
	}
	defer provider.Close()
	instance, err := provider.Pick()
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s:%d has %d queries\n", instance.Address, instance.Port, instance.Payload.Queries)
	// If it does not answer: provider.NoteError(instance)

	// Output: 10.0.0.1:8080 has 3 queries
}
