package queue

import (
	"context"

	"zabra/recipes"
)

// detach does something that must not be given up halfway, and returns its result. If ctx ends first, it returns at once with
// the reason, and the result goes to late. What is done has to end when the client is closed.
func detach[R any](ctx context.Context, do func() R, late func(R)) (R, error) {
	results := make(chan R)
	go func() {
		r := do()
		select {
		case results <- r:
		case <-ctx.Done():
			late(r)
		}
	}()
	select {
	case r := <-results:
		return r, nil
	case <-ctx.Done():
		return *new(R), context.Cause(ctx)
	}
}

var retryWaits = recipes.Exponential(retryWaitFirst, retryWaitMax)

// pause waits between two attempts in the background, longer each time, or until the client is closed.
func pause(client *recipes.Client, failures int) {
	wait, _ := retryWaits(failures)
	_ = client.Sleep(context.Background(), wait) // the next attempt tells that the client is closed
}
