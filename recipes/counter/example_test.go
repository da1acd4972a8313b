package counter_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"testing"

	"zabra/recipes"
	"zabra/recipes/counter"
	"zabra/recipes/recipestest"
)

func ExampleLong() {
	client, done := connect() // recipes.Connect(ctx, servers, recipes.Options{})
	defer done()
	ctx := context.Background()

	visits := counter.NewLong(client, "/app/visits", counter.LongOptions{})
	defer visits.Close(ctx)
	for range 2 {
		r, err := visits.Add(ctx, 5)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Before, "became", r.After)
	}
	// Output:
	// 0 became 5
	// 5 became 10
}

func ExampleCount() {
	client, done := connect()
	defer done()
	ctx := context.Background()

	limit, err := counter.NewCount(ctx, client, "/app/limit", 100)
	if err != nil {
		log.Fatal(err)
	}
	defer limit.Close()
	changes := limit.Changes(ctx)
	if _, _, err := limit.TrySet(ctx, limit.Get(), 150); err != nil {
		log.Fatal(err)
	}
	fmt.Println((<-changes).Count)
	// Output: 150
}

// connect stands for recipes.Connect, with a server that is there for the example only.
func connect() (*recipes.Client, func()) {
	tb := &example{}
	w := recipestest.Start(tb)
	return w.Client(tb), tb.end
}

// example is a test that is none: it ends with its function.
type example struct {
	testing.TB
	cleanups []func()
}

func (e *example) Helper()          {}
func (e *example) Cleanup(f func()) { e.cleanups = append(e.cleanups, f) }
func (e *example) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
func (e *example) Errorf(format string, args ...any) { e.Fatalf(format, args...) }

func (e *example) TempDir() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	e.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (e *example) end() {
	for _, f := range slices.Backward(e.cleanups) {
		f()
	}
}
