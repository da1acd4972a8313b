package servertest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"

	"zabra/zab/zxid"
)

// peerNet is the network between the members of an ensemble.
type peerNet struct {
	mu     sync.Mutex
	groups map[int]int // of the members: only those of one group reach each other. Without an entry it is group 0.
	last   int
	links  []peerLink
}

// peerLink is a connection that one member has made to another.
type peerLink struct {
	from, to int
	nc       *net.TCPConn
}

// Partition takes the members with these ids out of whatever group they belong to, into a group of their own: they reach
// each other, and nobody else. Connections between members of different groups are cut at once, new ones are refused.
// Client ports stay open. Before the first call, and after Heal, all members are one group; so Partition(1) isolates
// member 1, and Partition(2) after that makes three groups of three members.
func (e *Ensemble) Partition(ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		if id < 1 || id > len(e.servers) {
			e.t.Fatalf("servertest: there is no member %d to be cut off", id)
		}
	}
	e.net.change(func(n *peerNet) {
		n.last++
		for _, id := range ids {
			n.groups[id] = n.last
		}
	})
}

// Heal makes one group of all members again.
func (e *Ensemble) Heal() { e.net.change(func(n *peerNet) { clear(n.groups) }) }

// change changes the groups, and cuts what has to be cut.
func (n *peerNet) change(f func(*peerNet)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n)
	for _, l := range n.links {
		if n.groups[l.from] != n.groups[l.to] {
			l.nc.Close()
		}
	}
	n.forget()
}

// forget drops connections that are closed.
func (n *peerNet) forget() {
	open := n.links[:0]
	for _, l := range n.links {
		if isOpen(l.nc) {
			open = append(open, l)
		}
	}
	clear(n.links[len(open):])
	n.links = open
}

func isOpen(nc *net.TCPConn) bool {
	raw, err := nc.SyscallConn()
	return err == nil && raw.Control(func(uintptr) {}) == nil
}

// dialFrom is how the member with that id connects to others.
func (n *peerNet) dialFrom(from int) func(context.Context, zxid.ServerID, string) (net.Conn, error) {
	return func(ctx context.Context, to zxid.ServerID, addr string) (net.Conn, error) {
		if err := n.check(from, int(to)); err != nil {
			return nil, err
		}
		d := net.Dialer{Timeout: waitMax, KeepAlive: -1}
		nc, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		if err := n.add(peerLink{from, int(to), nc.(*net.TCPConn)}); err != nil {
			nc.Close()
			return nil, err
		}
		return nc, nil
	}
}

func (n *peerNet) check(from, to int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.checkLocked(from, to)
}

func (n *peerNet) checkLocked(from, to int) error {
	if n.groups[from] != n.groups[to] {
		return fmt.Errorf("members %d and %d are in different parts of the network: %w", from, to, syscall.EHOSTUNREACH)
	}
	return nil
}

// add takes a new connection in, unless the network has changed while it was made.
func (n *peerNet) add(l peerLink) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.checkLocked(l.from, l.to); err != nil {
		return err
	}
	n.forget()
	n.links = append(n.links, l)
	return nil
}
