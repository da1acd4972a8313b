package counter

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// follower reads a node again whenever it has reason to. It belongs to one goroutine.
type follower struct {
	v       *Value
	watch   <-chan zk.Event // nil if there is none
	session *recipes.Session
}

// follow keeps the value up to date until ctx ends.
func (f *follower) follow(ctx context.Context, states <-chan recipes.State) {
	for {
		var failed <-chan time.Time
		if f.v.doubtful() {
			if f.read(ctx) != nil { // by its policy of retry, or for good: no right to read, for example
				failed = time.After(rereadPause)
			}
		}
		select {
		case <-f.watch:
			f.watch = nil
			f.v.doubt()
		case <-f.v.again:
			f.v.doubt()
		case <-failed:
		case _, ok := <-states: // a break, or what was before is to be read again
			if !ok {
				return
			}
			f.v.doubt()
		case <-ctx.Done():
			return
		}
	}
}

// read reads the node, and watches it if it is not watched yet. A watch lives across reconnects, so it need not be set
// again then; a second one would never be taken back.
func (f *follower) read(ctx context.Context) error {
	for {
		if err := f.readInOne(ctx); !errors.Is(err, errAgain) {
			return err
		}
	}
}

// readInOne fails with errAgain if the session ended meanwhile.
func (f *follower) readInOne(ctx context.Context) error {
	s, err := f.v.c.AwaitSession(ctx)
	if err != nil {
		return err
	}
	if s != f.session { // a new session may begin at a server that is behind what the last one has seen
		if err := f.v.c.Sync(ctx, f.v.path); err != nil {
			return err
		}
	}
	for {
		data, stat, err := f.get(ctx)
		if err != nil {
			return err
		}
		if stat == nil && f.watch == nil {
			if stat, f.watch, err = f.v.c.ExistsW(ctx, f.v.path); err != nil {
				return err
			}
			if stat != nil { // it has been made just now, and this watch will tell of its changes
				continue
			}
		}
		if f.v.c.Session() != s {
			return errAgain // what was read may be of a time before
		}
		f.session = s
		f.v.take(data, stat)
		return nil
	}
}

// get returns a nil stat if there is no node.
func (f *follower) get(ctx context.Context) (data []byte, stat *zk.Stat, err error) {
	if f.watch != nil {
		data, stat, err = f.v.c.Get(ctx, f.v.path)
	} else {
		data, stat, f.watch, err = f.v.c.GetW(ctx, f.v.path)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil
	}
	return data, stat, err
}

// take takes up what the follower has read; a nil stat is a node that is missing.
func (v *Value) take(data []byte, stat *zk.Stat) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.mu.now
	switch {
	case stat == nil && (!v.mu.known || !now.Gone):
		now.Gone = true
		v.replaceLocked(now)
	case stat != nil && (!v.mu.known || stat.Mzxid > now.Zxid || now.Gone):
		v.replaceLocked(Versioned{Data: data, Version: stat.Version, Zxid: stat.Mzxid})
	}
	v.mu.known = true
	if v.c.State().IsConnected() { // else the next state has it read again
		v.mu.doubt = time.Time{}
	}
}

// doubt notes that the value may be outdated from now on.
func (v *Value) doubt() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.doubt.IsZero() {
		v.mu.doubt = time.Now()
	}
}

func (v *Value) doubtful() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.mu.doubt.IsZero()
}

// Changes returns the value after each change from now on, until ctx ends, or Close is called; then the channel is closed.
// Values never come out of order. One that is not taken in time gives way to the next: the last one always comes.
func (v *Value) Changes(ctx context.Context) <-chan Versioned {
	return changes(ctx, v, func(at Versioned) Versioned { return at })
}

func changes[T any](ctx context.Context, v *Value, convert func(Versioned) T) <-chan T {
	out := make(chan T)
	_, seen, _ := v.snapshot()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.closed {
		close(out)
		return out
	}
	v.running.Go(func() {
		defer close(out)
		forward(ctx, v, seen, out, convert)
	})
	return out
}

func forward[T any](ctx context.Context, v *Value, seen int, out chan<- T, convert func(Versioned) T) {
	for {
		now, serial, changed := v.snapshot()
		var to chan<- T // nil, on which nothing can be sent, while there is nothing new
		if serial != seen {
			to = out
		}
		select {
		case to <- convert(now):
			seen = serial
		case <-changed:
		case <-ctx.Done():
			return
		case <-v.ctx.Done():
			return
		}
	}
}
