package counter

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Versioned is what a node held at one time.
type Versioned struct {
	Data []byte
	// Version counts the writes of this node, from 0. It goes on below zero after 2,147,483,647.
	Version int32
	// Zxid is the transaction that wrote the data. Later data have a larger one, even if the node was deleted in between.
	Zxid int64
	// Gone tells that the node has been deleted; the rest is what it held last.
	Gone bool
}

// Value follows the data of a node, which anybody may write. It knows the last data even while it is disconnected, and
// since when they may be outdated. Its methods may be called from any goroutine.
type Value struct {
	c       *recipes.Client
	path    string
	ctx     context.Context // ends with the client, and by Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	// again holds a token when somebody wants the node to be read.
	again chan struct{}

	mu struct {
		sync.Mutex
		now     Versioned
		known   bool          // now was read
		serial  int           // of now: one more with each change
		changed chan struct{} // closed and replaced at each change
		// doubt is since when now may be outdated, zero while it is not.
		doubt  time.Time
		closed bool
	}
}

// NewValue follows the node at a path. If it is missing, it is made with the data seed, its missing parents as
// containers; otherwise seed does not count. NewValue returns when the node has been read. Close ends it.
func NewValue(ctx context.Context, c *recipes.Client, at string, seed []byte) (*Value, error) {
	v := &Value{c: c, path: at, again: make(chan struct{}, 1)}
	v.mu.changed = make(chan struct{})
	v.mu.doubt = time.Now()
	v.ctx, v.cancel = context.WithCancel(c.Background())
	states := c.States(v.ctx) // before the first read, so that no change of the connection falls between
	f, err := v.begin(ctx, seed)
	if err != nil {
		v.cancel()
		return nil, err
	}
	v.running.Go(func() { f.follow(v.ctx, states) })
	return v, nil
}

// begin reads the node for the first time, and makes it if need be.
func (v *Value) begin(ctx context.Context, seed []byte) (*follower, error) {
	f := &follower{v: v}
	for {
		if err := f.read(ctx); err != nil {
			return nil, err
		}
		if !v.Get().Gone {
			return f, nil
		}
		if err := v.create(ctx, seed); err != nil {
			return nil, err
		}
	}
}

// create makes the node. If the reply is lost, the next read tells.
func (v *Value) create(ctx context.Context, seed []byte) error {
	if err := v.c.EnsurePath(ctx, path.Dir(v.path)); err != nil {
		return err
	}
	_, err := v.c.Create(ctx, v.path, seed, zk.FlagPersistent)
	if ctx.Err() == nil && (errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || noTelling(ctx, err)) {
		return nil
	}
	return err
}

// Close ends the following. The last value can still be read.
func (v *Value) Close() {
	v.mu.Lock()
	v.mu.closed = true
	v.mu.Unlock()
	v.cancel()
	v.running.Wait()
}

// Get returns what the node holds as far as is known here; Age tells how far that is.
func (v *Value) Get() Versioned {
	now, _, _ := v.snapshot()
	return now
}

// Age is how long the value may have been outdated: 0 while the client is connected and its server has told of no
// change, otherwise the time since then. A connection that is dead without a sign is noticed within two thirds of the
// session's timeout; for so long the value may be older than Age says.
func (v *Value) Age() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.doubt.IsZero() {
		return 0
	}
	return time.Since(v.mu.doubt)
}

// Set writes the data whatever the node held. If the reply is lost it fails with recipes.ErrUnknown. It fails with
// zk.ErrNoNode if the node was deleted: only NewValue makes it.
func (v *Value) Set(ctx context.Context, data []byte) (Versioned, error) {
	stat, err := v.c.Set(ctx, v.path, data, -1)
	if err != nil {
		return v.Get(), err
	}
	return v.written(data, stat), nil
}

// TrySet writes the data if the node still holds previous, which must come from Get, Changes, Set or TrySet. It returns
// what the node holds then, and whether the data were written. If the reply is lost it fails with recipes.ErrUnknown:
// then a node whose version is one more and whose data are the same was written by this call, or by another one that
// wrote the same.
func (v *Value) TrySet(ctx context.Context, previous Versioned, data []byte) (Versioned, bool, error) {
	if previous.Version == -1 {
		return v.Get(), false, fmt.Errorf("%w: %s", ErrVersion, v.path)
	}
	if now := v.Get(); now.Zxid > previous.Zxid { // versions alone begin again when a node is deleted and made
		return now, false, nil
	}
	stat, err := v.c.Set(ctx, v.path, data, previous.Version)
	if err == nil {
		return v.written(data, stat), true, nil
	}
	if !errors.Is(err, zk.ErrBadVersion) {
		return v.Get(), false, err
	}
	now, stat, err := v.c.Get(ctx, v.path)
	if err != nil {
		return v.Get(), false, err
	}
	return v.written(now, stat), false, nil
}

// written takes up what somebody who is not the follower has learned.
func (v *Value) written(data []byte, stat *zk.Stat) Versioned {
	if v.Get().Gone { // only the follower can tell what came first, the deletion or this
		select {
		case v.again <- struct{}{}:
		default:
		}
	}
	at := Versioned{Data: slices.Clone(data), Version: stat.Version, Zxid: stat.Mzxid}
	v.mu.Lock()
	if !v.mu.now.Gone && at.Zxid > v.mu.now.Zxid {
		v.replaceLocked(at)
	}
	v.mu.Unlock()
	at.Data = slices.Clone(data)
	return at
}

func (v *Value) snapshot() (now Versioned, serial int, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now = v.mu.now
	now.Data = slices.Clone(now.Data)
	return now, v.mu.serial, v.mu.changed
}

func (v *Value) replaceLocked(now Versioned) {
	v.mu.now = now
	v.mu.serial++
	close(v.mu.changed)
	v.mu.changed = make(chan struct{})
}
