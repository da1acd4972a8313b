package group

import (
	"context"
	"errors"
	"iter"
	"maps"
	"strings"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/recipes/cache"
)

// Members returns the members of the group at path as the server has them now: their payloads by id. A group that does not
// exist has none. Unlike Curator's GroupMember it does not count this process in before others can see it.
func Members(ctx context.Context, c *recipes.Client, path string) (map[string][]byte, error) {
	ids, _, err := c.Children(ctx, path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	members := make(map[string][]byte, len(ids))
	for _, id := range ids {
		payload, _, err := c.Get(ctx, strings.TrimSuffix(path, "/")+"/"+id)
		switch {
		case err == nil:
			members[id] = payload
		case !errors.Is(err, zk.ErrNoNode):
			return nil, err
		}
	}
	return members, nil
}

// Watch yields the members of the group at path, their payloads by id: first as they are, and then again after changes.
// Every set is complete, but not every state is seen, as changes that come close together may be shown as one. What is
// yielded belongs to the caller. Without a connection nothing changes here; members that have gone meanwhile go when it is
// back. The group need not exist.
//
// An error comes without members. If it is that of a node that the server does not show, the sequence goes on when the caller
// does. Otherwise it is the last: the cause of ctx, when that has ended, recipes.ErrClosed when the client is closed, or
// cache.ErrTooLarge.
func Watch(ctx context.Context, c *recipes.Client, path string) iter.Seq2[map[string][]byte, error] {
	return func(yield func(map[string][]byte, error) bool) {
		children, err := cache.NewChildren(c, path, cache.Options{})
		if err != nil {
			yield(nil, err)
			return
		}
		defer children.Close()
		w := &watch{children: children}
		events := children.Events(ctx)
		for e := range events {
			if !w.take(e, events, yield) {
				return
			}
		}
		yield(nil, ended(ctx, c))
	}
}

// ended tells why a stream of events has ended without saying so.
func ended(ctx context.Context, c *recipes.Client) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return recipes.ErrClosed
}

// watch turns a stream of events into sets of members.
type watch struct {
	children *cache.Children
	filled   bool             // the first set is complete
	shown    map[string]int64 // the mzxids of what was yielded last, by id; nil before
}

// take uses up an event and those that wait behind it, and yields what has changed. It returns false when that is all.
func (w *watch) take(e cache.Event, more <-chan cache.Event, yield func(map[string][]byte, error) bool) bool {
	for {
		switch e.Kind {
		case cache.Initialized:
			w.filled = true
		case cache.Faulted:
			if !yield(nil, e.Err) {
				return false
			}
		case cache.Stopped:
			yield(nil, e.Err)
			return false
		}
		var open bool
		select {
		case e, open = <-more:
			if open {
				continue
			}
		default:
		}
		return w.show(yield)
	}
}

// show yields the members, unless they are those of the last time.
func (w *watch) show(yield func(map[string][]byte, error) bool) bool {
	if !w.filled {
		return true
	}
	entries := w.children.List()
	members, seen := make(map[string][]byte, len(entries)), make(map[string]int64, len(entries))
	for _, e := range entries {
		id := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
		members[id], seen[id] = e.Data(), e.Stat.Mzxid
	}
	if w.shown != nil && maps.Equal(seen, w.shown) {
		return true
	}
	w.shown = seen
	return yield(members, nil)
}
