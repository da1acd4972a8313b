package barrier_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"zabra/recipes"
	"zabra/recipes/barrier"
	"zabra/recipes/recipestest"
)

func ExampleDouble() {
	client := connect()
	defer client.Close()
	ctx := context.Background()

	meeting, err := barrier.NewDouble(client, "/app/meeting", 3)
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	var here, finished atomic.Int32
	for range 3 { // each in a process of its own, as a rule
		all.Go(func() {
			here.Add(1)
			member, err := meeting.Enter(ctx)
			if err != nil {
				panic(err)
			}
			fmt.Println(here.Load(), "are here")
			finished.Add(1)
			if err := member.Leave(ctx); err != nil {
				panic(err)
			}
			fmt.Println(finished.Load(), "have finished")
		})
	}
	all.Wait()
	// Unordered output:
	// 3 are here
	// 3 are here
	// 3 are here
	// 3 have finished
	// 3 have finished
	// 3 have finished
}

func ExampleBarrier() {
	client := connect()
	defer client.Close()
	ctx := context.Background()

	maintenance := barrier.New(client, "/app/maintenance")
	if err := maintenance.Set(ctx); err != nil {
		panic(err)
	}
	worked := make(chan error)
	go func() { // elsewhere
		err := maintenance.Wait(ctx)
		fmt.Println("open again")
		worked <- err
	}()
	fmt.Println("closed")
	if _, err := maintenance.Remove(ctx); err != nil {
		panic(err)
	}
	if err := <-worked; err != nil {
		panic(err)
	}
	// Output:
	// closed
	// open again
}

// connect connects to a server that is there for the examples only, in a namespace of its own.
func connect() *recipes.Client {
	client, err := recipes.Connect(context.Background(), recipestest.Servers(), recipes.Options{Namespace: "/barrier"})
	if err != nil {
		panic(err)
	}
	return client
}
