package lab

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/recipes/lock"
)

// contender waits for the lock in one of the two ways. acquire returns when it is held, with what gives it back.
type contender interface {
	acquire(ctx context.Context) (release func(context.Context) error, err error)
}

func newContender(mode Mode, c *recipes.Client, path, name string) contender {
	if mode == Herd {
		return &herd{c: c, path: path, name: name}
	}
	return &queue{lock.NewMutex(c, path, lock.Options{Identity: []byte(name)})}
}

// queue is the recipe.
type queue struct{ mutex *lock.Mutex }

func (q *queue) acquire(ctx context.Context) (func(context.Context) error, error) {
	guard, err := q.mutex.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return guard.Unlock, nil
}

// herd is the lock that one writes on the first day: the node is the lock, whoever creates it has it, all others watch it.
// It is right while connections hold, which is all that the lab needs.
type herd struct {
	c          *recipes.Client
	path, name string
}

func (h *herd) acquire(ctx context.Context) (func(context.Context) error, error) {
	session, err := h.c.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	for {
		_, err := h.c.Create(ctx, h.path, []byte(h.name), zk.FlagEphemeral)
		if err == nil {
			return func(ctx context.Context) error { return h.c.Delete(ctx, h.path, -1) }, nil
		}
		if !errors.Is(err, zk.ErrNodeExists) {
			return nil, err
		}
		_, _, gone, err := h.c.GetW(ctx, h.path)
		if errors.Is(err, zk.ErrNoNode) {
			continue // between the two it was free for a moment
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-gone:
		case <-session.Done():
			return nil, recipes.ErrSessionLost
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
