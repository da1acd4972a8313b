package election_test

import (
	"context"
	"fmt"

	"zabra/recipes"
	"zabra/recipes/election"
	"zabra/recipes/recipestest"
)

func ExampleLatch() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-latch"})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	latch, err := election.StartLatch(c, "/election", "host-1")
	if err != nil {
		panic(err)
	}
	defer latch.Close()
	term, err := latch.Await(ctx)
	if err != nil {
		panic(err)
	}
	// Whatever the leader writes carries term.Token(), and the work ends with term.Context() or term.Lost().
	leader, _, err := election.Leader(ctx, c, "/election")
	if err != nil {
		panic(err)
	}
	fmt.Println(leader.ID, "leads:", leader.Token == term.Token())
	term.Relinquish()
	<-term.Lost()
	fmt.Println(term.Err())

	// Output:
	// host-1 leads: true
	// election: leadership was relinquished
}

func ExampleSelector() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: "/example-selector"})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	selector := election.NewSelector(c, "/election", "host-1", election.SelectorOptions{})
	err = selector.Run(ctx, func(ctx context.Context, term *election.Term) error {
		fmt.Println("leading, with a token:", term.Token() > 0)
		// ctx ends when the leadership is lost.
		return ctx.Err()
	})
	fmt.Println("done:", err)

	// Output:
	// leading, with a token: true
	// done: <nil>
}
