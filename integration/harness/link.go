//go:build linux

package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

const (
	linkChunkBytes  = 64 << 10
	linkHeldBytes   = 1 << 20              // what a held connection may have sent before its target is dialled
	linkDrainPeriod = 2 * time.Millisecond // the wait for the end of a connection that was given up while it was held
)

// Link forwards TCP connections to a port, and can hold back the bytes of either direction as a network does that drops every
// packet of one way: both ends see an open connection on which nothing arrives, and what was sent arrives after the end
// of the trouble, unless an end has closed its connection. A connection that is dialled while any way is held is not handed on
// until then; what really fails in such a network is the handshake.
type Link struct {
	Port   int // to be dialled
	target string

	mu          sync.Mutex
	changed     sync.Cond
	forth, back bool // held: from the dialler to the target, and from the target to the dialler
	closed      bool
	listener    net.Listener
	conns       map[net.Conn]struct{}
	wg          sync.WaitGroup
}

// NewLink listens on a free loopback port and forwards to another one.
func NewLink(targetPort int) (*Link, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	l := &Link{Port: port, target: fmt.Sprintf("127.0.0.1:%d", targetPort), listener: listener, conns: map[net.Conn]struct{}{}}
	l.changed.L = &l.mu
	l.wg.Add(1)
	go l.accept()
	return l, nil
}

// Hold sets which directions are held back.
func (l *Link) Hold(forth, back bool) {
	l.mu.Lock()
	l.forth, l.back = forth, back
	l.mu.Unlock()
	l.changed.Broadcast()
}

func (l *Link) heldForth() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.forth }
func (l *Link) heldBack() bool  { l.mu.Lock(); defer l.mu.Unlock(); return l.back }

// Reset breaks every connection.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly close
		}
		c.Close()
	}
}

// Close ends the link and all its connections.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.changed.Broadcast()
	l.listener.Close()
	l.Reset()
	l.wg.Wait()
}

func (l *Link) accept() {
	defer l.wg.Done()
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		if l.register(conn) {
			l.wg.Add(1)
			go l.serve(conn)
		}
	}
}

// register notes a connection so that Close and Reset reach it.
func (l *Link) register(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *Link) forget(conn net.Conn) {
	l.mu.Lock()
	delete(l.conns, conn)
	l.mu.Unlock()
	conn.Close()
}

// wait returns once none of the named ways is held, with false when the link is closed, and says whether it had to wait.
func (l *Link) wait(forth, back bool) (open, waited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && (forth && l.forth || back && l.back) {
		waited = true
		l.changed.Wait()
	}
	return !l.closed, waited
}

func (l *Link) serve(dialler net.Conn) {
	defer l.wg.Done()
	defer l.forget(dialler)
	open, waited := l.wait(true, true)
	if !open {
		return
	}
	var sent []byte
	if waited {
		var alive bool
		if sent, alive = drain(dialler); !alive {
			return // given up meanwhile: in a real network it would never have come to be
		}
	}
	target, err := net.Dial("tcp4", l.target)
	if err != nil {
		return
	}
	defer l.forget(target)
	if !l.register(target) {
		return
	}
	if _, err := target.Write(sent); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pipe(target, dialler, true) })
	both.Go(func() { l.pipe(dialler, target, false) })
	both.Wait()
}

// drain reads what has arrived, and says whether the connection is still open.
func drain(conn net.Conn) (sent []byte, alive bool) {
	chunk := make([]byte, linkChunkBytes)
	for len(sent) < linkHeldBytes {
		_ = conn.SetReadDeadline(time.Now().Add(linkDrainPeriod))
		n, err := conn.Read(chunk)
		sent = append(sent, chunk[:n]...)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return nil, false
		}
	}
	_ = conn.SetReadDeadline(time.Time{})
	return sent, true
}

// pipe copies one way. The end of a connection is held back like its bytes, and then ends both ways.
func (l *Link) pipe(dst, src net.Conn, forth bool) {
	chunk := make([]byte, linkChunkBytes)
	for {
		n, err := src.Read(chunk)
		open, _ := l.wait(forth, !forth)
		if !open {
			break
		}
		if n > 0 {
			if _, err := dst.Write(chunk[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	dst.Close()
	src.Close()
}
