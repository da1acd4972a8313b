package queue_test

import (
	"context"
	"fmt"
	"time"

	"zabra/recipes"
	"zabra/recipes/queue"
	"zabra/recipes/recipestest"
)

// Work is taken, done, and only then removed.
func Example() {
	ctx, c, end := connect()
	defer end()

	q, err := queue.New(c, "/jobs", queue.Options{})
	if err != nil {
		panic(err)
	}
	for _, job := range []string{"first", "second"} {
		if err := q.Put(ctx, []byte(job)); err != nil {
			panic(err)
		}
	}
	for range 2 {
		entry, err := q.Take(ctx)
		if err != nil {
			panic(err)
		}
		// Do the work here; stop when entry.Lost() is closed, and send entry.Token() along with what is written.
		fmt.Println(string(entry.Data()))
		if err := entry.Done(ctx); err != nil {
			panic(err) // or, with queue.ErrLost: somebody else does it again
		}
	}

	// Output:
	// first
	// second
}

func ExamplePriorityQueue() {
	ctx, c, end := connect()
	defer end()

	q, err := queue.NewPriority(c, "/jobs", queue.Options{})
	if err != nil {
		panic(err)
	}
	for priority, job := range []string{"urgent", "usual", "idle"} {
		if err := q.Put(ctx, []byte(job), int32(priority)); err != nil {
			panic(err)
		}
	}
	entry, err := q.Pop(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(entry.Data()), entry.Priority)

	// Output: urgent 0
}

func ExampleDelayQueue() {
	ctx, c, end := connect()
	defer end()

	q, err := queue.NewDelay(c, "/jobs", queue.Options{})
	if err != nil {
		panic(err)
	}
	due := time.Now().Add(10 * time.Millisecond)
	if err := q.Put(ctx, []byte("now it is time"), due); err != nil {
		panic(err)
	}
	entry, err := q.Pop(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(entry.Data()), time.Now().After(due.Add(-time.Millisecond)))

	// Output: now it is time true
}

// connect gives each example a node of its own.
func connect() (context.Context, *recipes.Client, func()) {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{Namespace: fmt.Sprint("/example-", time.Now().UnixNano())})
	if err != nil {
		panic(err)
	}
	return ctx, c, c.Close
}
