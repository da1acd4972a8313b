package barrier_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"zabra/recipes"
	"zabra/recipes/barrier"
	"zabra/recipes/recipestest"
)

func ExampleDouble() {
	client, done := connect() // recipes.Connect(ctx, servers, recipes.Options{})
	defer done()
	ctx := context.Background()

	meeting, err := barrier.NewDouble(client, "/app/meeting", 3)
	if err != nil {
		log.Fatal(err)
	}
	var all sync.WaitGroup
	var here, finished atomic.Int32
	for range 3 { // each in a process of its own, as a rule
		all.Go(func() {
			here.Add(1)
			member, err := meeting.Enter(ctx)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(here.Load(), "are here")
			finished.Add(1)
			if err := member.Leave(ctx); err != nil {
				log.Fatal(err)
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
	client, done := connect()
	defer done()
	ctx := context.Background()

	maintenance := barrier.New(client, "/app/maintenance")
	if err := maintenance.Set(ctx); err != nil {
		log.Fatal(err)
	}
	worked := make(chan error)
	go func() { // elsewhere
		err := maintenance.Wait(ctx)
		fmt.Println("open again")
		worked <- err
	}()
	fmt.Println("closed")
	if _, err := maintenance.Remove(ctx); err != nil {
		log.Fatal(err)
	}
	if err := <-worked; err != nil {
		log.Fatal(err)
	}
	// Output:
	// closed
	// open again
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
