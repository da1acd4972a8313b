package cache

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// result is what one read has found.
type result struct {
	missing bool
	data    []byte
	stat    zk.Stat
	names   []string
	fired   <-chan zk.Event // the watch that the read has set; nil if none
	err     error           // a refusal: reading again at once would bring the same
}

// read repeats one read until it has a result that is not older than any before. Without one it returns false: the cache
// has ended.
func (m *mirror) read(s *slot) (result, bool) {
	for wait := retryWaitMin; ; wait = min(2*wait, retryWaitMax) {
		r, err := m.readAbove(s)
		switch {
		case m.follow.Err() != nil:
			return result{}, false
		case err == nil:
			return r, true
		case !transient(err):
			return result{err: err}, true
		}
		select {
		case <-m.follow.Done():
			return result{}, false
		case <-time.After(wait):
		}
	}
}

// transient tells whether an error is about the connection and not about the node.
func transient(err error) bool {
	for _, e := range []error{
		zk.ErrConnectionClosed, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrNoServer, zk.ErrClosing,
		recipes.ErrClosed, errSessionChanged, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network)
}

// errSessionChanged is why a read does not count: nobody knows which of the two sessions made it.
var errSessionChanged = errors.New("cache: session has changed")

// floor sees to it that reads do not go back. Within one session the servers do: they refuse a client that has seen more
// than they have. A new session knows nothing of what the old one has seen, so it is brought up to date by a sync before
// its first read.
type floor struct {
	mu      sync.Mutex   // one sync at a time
	session atomic.Int64 // whose reads are good; 0 before the first one, -1 if none is
}

// readAbove reads once, in a session that is up to date.
func (m *mirror) readAbove(s *slot) (result, error) {
	session, err := m.raise()
	if err != nil {
		return result{}, err
	}
	r, err := m.readOnce(s)
	// Session ids never come back. If it is the same one now, the read was made in it and in no other.
	if err == nil && m.client.Conn().SessionID() != session {
		return result{}, errSessionChanged
	}
	return r, err
}

// raise returns the present session, up to date.
func (m *mirror) raise() (int64, error) {
	session := m.client.Conn().SessionID()
	if session == 0 {
		if _, err := m.client.AwaitSession(m.follow); err != nil {
			return 0, err
		}
		return 0, errSessionChanged
	}
	m.floor.mu.Lock()
	defer m.floor.mu.Unlock()
	if good := m.floor.session.Load(); good != 0 && good != session {
		if err := m.client.Sync(m.follow, m.root.path); err != nil {
			return 0, err
		}
		if m.client.Conn().SessionID() != session {
			return 0, errSessionChanged
		}
	}
	m.floor.session.Store(session)
	return session, nil
}

// distrust makes the next read begin with a sync.
func (m *mirror) distrust() { m.floor.session.Store(-1) }

func (m *mirror) readOnce(s *slot) (result, error) {
	switch {
	case s.kids:
		return m.readList(s.node.path)
	case s.node.silent:
		return m.readStat(s.node.path)
	case s.node.parent == nil:
		return m.readRoot(s.node.path)
	default:
		return m.readData(s.node.path)
	}
}

func (m *mirror) readData(path string) (result, error) {
	data, stat, fired, err := m.client.GetW(m.follow, path)
	if errors.Is(err, zk.ErrNoNode) {
		return result{missing: true}, nil
	}
	if err != nil {
		return result{}, err
	}
	return result{data: data, stat: *stat, fired: fired}, nil
}

// readRoot reads a node that nobody lists: if it is missing, a watch has to tell when it is made.
func (m *mirror) readRoot(path string) (result, error) {
	for {
		r, err := m.readData(path)
		if err != nil || !r.missing {
			return r, err
		}
		if r, err = m.readStat(path); err != nil || r.missing {
			return r, err
		}
	}
}

func (m *mirror) readStat(path string) (result, error) {
	stat, fired, err := m.client.ExistsW(m.follow, path)
	if err != nil {
		return result{}, err
	}
	if stat == nil {
		return result{missing: true, fired: fired}, nil
	}
	return result{stat: *stat, fired: fired}, nil
}

func (m *mirror) readList(path string) (result, error) {
	names, stat, fired, err := m.client.ChildrenW(m.follow, path)
	if errors.Is(err, zk.ErrNoNode) {
		return result{missing: true}, nil
	}
	if err != nil {
		return result{}, err
	}
	return result{names: names, stat: *stat, fired: fired}, nil
}

// Ready waits for the first complete fill. If the server refuses to show some of the nodes, everything else is there
// and Ready returns the error of one of them. It returns why the cache stopped, if it did, and ctx's cause if that ends.
func (m *mirror) Ready(ctx context.Context) error {
	select {
	case <-m.ready:
	case <-m.follow.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return m.Err()
}
