// Package queue has queues of small entries: first in first out (Queue), by priority (PriorityQueue, and KazooQueue for
// Python) and by time (DelayQueue).
//
// # When not to use it
//
// ZooKeeper is no message broker. Every entry is held in memory by every server, and written to disk by each of them at least
// three times: when it is put, taken and removed. Whoever takes reads the names of all entries in one reply, which ends at 1
// MiB, and everybody who waits is woken by each entry that is put. So a queue is for some thousand entries of some kilobytes,
// a few takers, and at most some hundred entries a second: for work that is rare and must not get lost, next to data that is
// in ZooKeeper anyway. Options.LengthMax keeps it from growing beyond that.
//
// # What it guarantees
//
// Take is at least once: the entry stays in the queue, locked by an ephemeral node, until Entry.Done. If the taker dies, or
// its session ends, the entry is handed out again, and a Done that comes too late fails with ErrLost instead of removing what
// another taker works on. Entry.Token grows each time an entry is handed out, so that whatever the work changes can refuse
// the late writes of a taker that has lost it: see Fence of package lock.
//
// Pop is at most once: the entry is removed before it is returned. If the reply of that is lost together with the session,
// Pop returns the entry with ErrUnknown, and the caller knows both.
//
// Put is exactly once while the session lives: if the reply is lost, Put finds out whether the entry is there. If the session
// ends in that moment it fails with ErrUnknown.
//
// The order is that of the servers' numbers, as far as one taker is concerned; with several, or with entries that are handed
// out again, entries are finished in any order.
//
// # How it works
//
// To take an entry, one transaction makes the lock node and writes the entry's data once more, unchanged. This raises the
// version of the entry, so that the version belongs to one taker: Done deletes the entry in that version only. Takers written
// with Curator or kazoo neither raise nor look at it, but they respect the locks if they are given the same lock path.
package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

var (
	// ErrFull is returned by a put into a queue that is as long as it may be.
	ErrFull = errors.New("queue: full")
	// ErrLost is returned by Done if the entry was not, or not surely, this taker's any more: somebody else has taken it, or
	// may have.
	ErrLost = errors.New("queue: the entry is lost to another taker")
	// ErrUnknown is recipes.ErrUnknown: it may have happened.
	ErrUnknown = recipes.ErrUnknown
)

// Options change a queue. The zero value is fine.
type Options struct {
	// LockPath is the node below which entries are locked; it must not lie below the queue. It has to be the same for all
	// takers, also for those in Java (QueueBuilder.lockPath). Without one it is the path of the queue with "-taken" behind.
	LockPath string
	// LengthMax is how many entries the queue may have, 10,000 if it is 0 and 30,000 at most. Putters at the same moment
	// may exceed it by their number, and others do not know it.
	LengthMax int
	// Skipped is told about each node in the queue that is not an entry of this kind of queue, or whose data cannot be read.
	// It stays where it is. The function may be called from any goroutine and must not block.
	Skipped func(path string, err error)
}

// Taker is the side of a queue that takes. All queues have it. Its methods may be called from any goroutine; the calls of one
// process share the list of entries, so use one queue rather than many on the same path.
type Taker struct {
	client  *recipes.Client
	layout  layout
	entries string // the node that holds the entries
	locks   string // the locks, by the names of the entries
	puts    string // the marks of puts under way
	opt     Options

	gate   chan struct{} // holds one token; whoever has it may use view
	view   view
	follow sync.Once // of the connection

	mu   sync.Mutex
	redo chan struct{}   // closed and replaced when view has to be read again
	bad  map[string]bool // entries that cannot be read
}

func newTaker(client *recipes.Client, at string, l layout, o Options) (*Taker, error) {
	if !strings.HasPrefix(at, "/") || at == "/" || path.Clean(at) != at {
		return nil, fmt.Errorf("queue: %q is not the path of a queue", at)
	}
	t := &Taker{client: client, layout: l, entries: at, locks: at + "-taken", puts: at + "-puts", opt: o}
	t.gate, t.redo, t.bad = make(chan struct{}, 1), make(chan struct{}), map[string]bool{}
	if o.LockPath != "" {
		t.locks = o.LockPath
	}
	if t.locks == at || strings.HasPrefix(t.locks, at+"/") || path.Clean(t.locks) != t.locks || !strings.HasPrefix(t.locks, "/") {
		return nil, fmt.Errorf("queue: lock path %q of queue %s", t.locks, at)
	}
	if o.LengthMax < 0 || o.LengthMax > lengthMax {
		return nil, fmt.Errorf("queue: a length of %d is not within 0 and %d", o.LengthMax, lengthMax)
	}
	if o.LengthMax == 0 {
		t.opt.LengthMax = lengthDefault
	}
	if o.Skipped == nil {
		t.opt.Skipped = func(string, error) {}
	}
	return t, nil
}

// Len returns how many entries the queue has, those that are taken and not done included.
func (t *Taker) Len(ctx context.Context) (int, error) {
	stat, err := t.client.Exists(ctx, t.entries)
	if err != nil || stat == nil {
		return 0, err
	}
	return int(stat.NumChildren), nil
}

// ensure makes the nodes that hold entries, locks and marks. They are not containers: when an empty one is removed its
// numbers begin again, and a name must not come twice.
func (t *Taker) ensure(ctx context.Context) error {
	for _, dir := range []string{t.entries, t.locks, t.puts} {
		if err := t.client.EnsurePath(ctx, path.Dir(dir)); err != nil {
			return err
		}
		_, err := t.client.Create(ctx, dir, nil, 0)
		again := errors.Is(err, ErrUnknown) || errors.Is(err, zk.ErrNoNode) // callers come back
		if err != nil && !errors.Is(err, zk.ErrNodeExists) && (!again || ctx.Err() != nil || errors.Is(err, recipes.ErrClosed)) {
			return err
		}
	}
	return nil
}

// Queue hands out entries in the order in which they were put. It has the layout of Curator's SimpleDistributedQueue: nodes
// "qn-" and a number with the data as it is. kazoo's Queue takes its entries too, but puts under names of its own, which are
// not taken here. Neither knows the locks of Take: where one of them takes, use Pop only.
type Queue struct{ *Taker }

// New makes a queue on a path. Nothing is asked of the server yet.
func New(client *recipes.Client, path string, o Options) (*Queue, error) {
	t, err := newTaker(client, path, simpleLayout, o)
	if err != nil {
		return nil, err
	}
	return &Queue{t}, nil
}

// Put appends an entry. It fails with ErrFull if there are too many, and with ErrUnknown if it cannot be known whether the
// entry was appended: because the session ended, or ctx, in which case it may still be appended later.
func (q *Queue) Put(ctx context.Context, data []byte) error { return q.put(ctx, simplePrefix, data) }

// PriorityQueue hands out the entry with the lowest number first, and among equals the one that was put first. It has the
// layout of Curator's DistributedPriorityQueue, also that of the data, and respects the locks of its takers if they have the
// same lock path. kazoo names entries differently, with three digits of priority: see KazooQueue.
type PriorityQueue struct{ *Taker }

// NewPriority makes a priority queue on a path. Nothing is asked of the server yet.
func NewPriority(client *recipes.Client, path string, o Options) (*PriorityQueue, error) {
	t, err := newTaker(client, path, priorityLayout, o)
	if err != nil {
		return nil, err
	}
	return &PriorityQueue{t}, nil
}

// Put adds an entry. The errors are those of Queue.Put.
func (q *PriorityQueue) Put(ctx context.Context, data []byte, priority int32) error {
	return q.put(ctx, priorityName(priority), frame(data))
}

// DelayQueue hands out entries when they are due. It has the layout of Curator's DistributedDelayQueue, also that of the
// data. The time of the taker's machine counts: an entry is taken early by one whose clock is ahead.
type DelayQueue struct{ *Taker }

// NewDelay makes a delay queue on a path. Nothing is asked of the server yet.
func NewDelay(client *recipes.Client, path string, o Options) (*DelayQueue, error) {
	t, err := newTaker(client, path, delayLayout, o)
	if err != nil {
		return nil, err
	}
	return &DelayQueue{t}, nil
}

// Put adds an entry that is due at a time, after 1970 and exact to the millisecond. The other errors are those of Queue.Put.
func (q *DelayQueue) Put(ctx context.Context, data []byte, due time.Time) error {
	if ms := due.UnixMilli(); ms <= 0 || ms > dueMaxMs {
		return fmt.Errorf("queue: an entry cannot be due at %v", due)
	}
	return q.put(ctx, delayName(due), frame(data))
}

// KazooQueue is the LockingQueue of kazoo: takers in Python respect the locks of those in Go and the other way round. The
// entry with the lowest priority number is handed out first. Options.LockPath does not count: the layout says where entries
// and locks are.
type KazooQueue struct{ *Taker }

// NewKazoo makes a queue on a path, the same as Python's. Nothing is asked of the server yet.
func NewKazoo(client *recipes.Client, at string, o Options) (*KazooQueue, error) {
	o.LockPath = ""
	t, err := newTaker(client, at, kazooLayout, o)
	if err != nil {
		return nil, err
	}
	t.entries, t.locks, t.puts = at+"/entries", at+"/taken", at+"/puts"
	return &KazooQueue{t}, nil
}

// Put adds an entry with a priority of 0 to 999; kazoo's own default is 100. The other errors are those of Queue.Put.
func (q *KazooQueue) Put(ctx context.Context, data []byte, priority int) error {
	if priority < 0 || priority > kazooPriorityMax {
		return fmt.Errorf("queue: priority %d is not within 0 and %d", priority, kazooPriorityMax)
	}
	return q.put(ctx, kazooName(priority), data)
}

// newGUID names a lock's owner or a put.
func newGUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x", b)
}
