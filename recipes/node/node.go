package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"zabra/recipes"
)

// Mode is the kind of a node.
type Mode int

const (
	// Ephemeral is a node that goes with the session.
	Ephemeral Mode = iota
	// EphemeralSequential is one whose name ends in a number, which the server gives.
	EphemeralSequential
	// Persistent is a node that stays when this process dies. Close deletes it.
	Persistent
	// PersistentSequential is one whose name ends in a number, which the server gives.
	PersistentSequential
)

func (m Mode) ephemeral() bool  { return m == Ephemeral || m == EphemeralSequential }
func (m Mode) sequential() bool { return m == EphemeralSequential || m == PersistentSequential }

// Options are those of a node. The zero value is an ephemeral node that is called as the path says.
type Options struct {
	Mode Mode
	// Protect has the name begin with a GUID. A sequential node needs it.
	Protect bool
	// OnMade, if there is one, is called each time that a node stands which did not before, with its path. It must not wait
	// for the node, nor close it.
	OnMade func(path string)
}

var (
	// ErrClosed is a call on a node that is closed.
	ErrClosed = errors.New("node: closed")
	// ErrData is data that is too long for a node.
	ErrData = errors.New("node: too much data")
	// ErrKind is a node that is there already, and is persistent where an ephemeral one is to be or the other way round.
	ErrKind = errors.New("node: one of another kind is there")
	// ErrOptions are options that do not go together.
	ErrOptions = errors.New("node: impossible options")
)

const (
	// dataBytesMax is what a server takes in one request by default, less what else is in it. Servers cut the connection
	// at a larger request, again and again.
	dataBytesMax = 1<<20 - 4<<10
	// Between two attempts that failed there is a pause of retryFirst, then of twice that, up to retryMost.
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
)

// Node is a node that is kept in place until Close. Its methods may be called from any goroutine.
type Node struct {
	c    *recipes.Client
	path string // that was asked for
	opts Options

	cancel context.CancelCauseFunc
	done   chan struct{} // closed when run has returned
	wake   chan struct{} // holds a token when there is new data

	// What follows belongs to run.
	number   string    // at the end of a sequential node's name, once the server has given one
	guid     string    // of the protected node that stands or is being made
	pending  *creation // a create whose result is not known
	at       string    // where the node is, or is thought to be; "" when it has to be made
	seenOnce bool      // the node at that place was looked at
	ours     bool      // it goes when this node is closed
	other    bool      // it is of the other kind
	czxid    int64     // of the node that was seen last, 0 if none
	written  int64     // the revision of the data that it has

	mu struct {
		sync.Mutex
		data     []byte
		revision int64 // grows with each change of data
		// What callers may know: where the node stands, whose it is, and the revision that it has.
		path    string
		own     bool
		written int64
		made    bool          // it has stood once
		err     error         // why the last attempt has failed
		changed chan struct{} // closed and replaced when any of these changes
	}
}

// Start keeps a node at path, which is below the client's namespace, with that data. It returns at once and does not wait for
// the server; AwaitCreated does.
func Start(c *recipes.Client, path string, data []byte, o Options) (*Node, error) {
	if o.Mode < Ephemeral || o.Mode > PersistentSequential {
		return nil, fmt.Errorf("%w: there is no mode %d", ErrOptions, o.Mode)
	}
	if o.Mode.sequential() && !o.Protect {
		return nil, fmt.Errorf("%w: a sequential node has to be protected", ErrOptions)
	}
	if path == "/" {
		return nil, fmt.Errorf("%w: the root is always there", recipes.ErrPath)
	}
	if err := checkData(data); err != nil {
		return nil, err
	}
	n := &Node{c: c, path: path, opts: o, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	n.mu.data, n.mu.revision, n.mu.changed = bytes.Clone(data), 1, make(chan struct{})
	ctx, cancel := context.WithCancelCause(context.Background())
	n.cancel = cancel
	go n.run(ctx)
	return n, nil
}

func checkData(data []byte) error {
	if len(data) > dataBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrData, len(data), dataBytesMax)
	}
	return nil
}

// AwaitCreated waits until the node has stood once, with its data, and returns its path. It fails with the cause of ctx when
// that ends, with ErrClosed when the node is closed, with recipes.ErrClosed when its client is. Any other error is what has
// just kept the node from being made, such as zk.ErrNoAuth; that is tried again, so AwaitCreated may be called again.
func (n *Node) AwaitCreated(ctx context.Context) (string, error) {
	var path string
	err := n.await(ctx, func() bool {
		path = n.mu.path
		return n.mu.made && path != ""
	})
	return path, err
}

// Set changes the data and waits until the node has it. If it fails, for the reasons of AwaitCreated, the node still gets the
// data as soon as possible, unless the data is too long.
func (n *Node) Set(ctx context.Context, data []byte) error {
	if err := checkData(data); err != nil {
		return err
	}
	n.mu.Lock()
	n.mu.data = bytes.Clone(data)
	n.mu.revision++
	revision := n.mu.revision
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return n.await(ctx, func() bool { return n.mu.written >= revision })
}

// await waits for a condition, which is called with the mutex held.
func (n *Node) await(ctx context.Context, reached func() bool) error {
	for {
		n.mu.Lock()
		ok, err, changed := reached(), n.mu.err, n.mu.changed
		n.mu.Unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Data returns what was set last.
func (n *Node) Data() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return bytes.Clone(n.mu.data)
}

// Path returns where the node stands, as far as is known: "" before it has been made, and while it is being made again.
// Without a connection that is what was known last.
func (n *Node) Path() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.path
}

// Own tells whether the node that stands belongs to the session of this client. It is false for a node that was found and
// is another session's, and for persistent ones.
func (n *Node) Own() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.path != "" && n.mu.own
}

// Close stops keeping the node and deletes it, in the background if need be, and whatever is being made. An ephemeral node
// of another session stays. A second call does nothing.
func (n *Node) Close() {
	n.cancel(ErrClosed)
	<-n.done
}

// publish changes what callers may know.
func (n *Node) publish(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	close(n.mu.changed)
	n.mu.changed = make(chan struct{})
}
