package bench

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// portable is the poller of systems that have no other: goroutines for each socket fill and empty buffers. It costs more
// than epoll, and does the same.
type portable struct {
	wakeups chan struct{}
	events  []event
	mu      struct {
		sync.Mutex
		ready []*pipe // each once
	}
}

func newPortable() *portable { return &portable{wakeups: make(chan struct{}, 1)} }

// pipe is a socket of the portable poller. The poller's lock guards what can change.
type pipe struct {
	p    *portable
	s    *session
	gen  uint32
	turn *sync.Cond // something has changed for the goroutines

	conn    net.Conn // nil until it is connected
	in, out []byte
	inErr   error // why nothing more comes in
	outErr  error // why nothing more goes out, or the socket was not connected
	queued  bool  // it is in ready
	over    bool
}

func (p *portable) dial(s *session, addr netip.AddrPort) error {
	x := &pipe{p: p, s: s, gen: s.gen, turn: sync.NewCond(&p.mu.Mutex)}
	s.pipe = x
	go func() {
		conn, err := net.DialTimeout("tcp", addr.String(), dialMax)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil && x.over {
			conn.Close()
			return
		}
		if x.outErr = err; err == nil {
			x.conn = conn
			go x.receive(conn)
			go x.send(conn)
		}
		x.tell()
	}()
	return nil
}

// tell makes an event. The lock is held.
func (x *pipe) tell() {
	if !x.queued && !x.over {
		x.queued = true
		x.p.mu.ready = append(x.p.mu.ready, x)
	}
	x.p.wake()
}

func (x *pipe) receive(conn net.Conn) {
	b := make([]byte, readBytes)
	for {
		n, err := conn.Read(b)
		x.p.mu.Lock()
		x.in, x.inErr = append(x.in, b[:n]...), err
		x.tell()
		for len(x.in) > portableBytes && !x.over {
			x.turn.Wait()
		}
		done := err != nil || x.over
		x.p.mu.Unlock()
		if done {
			return
		}
	}
}

func (x *pipe) send(conn net.Conn) {
	var b []byte
	for {
		x.p.mu.Lock()
		for len(x.out) == 0 && !x.over {
			x.turn.Wait()
		}
		if x.over {
			x.p.mu.Unlock()
			return
		}
		b, x.out = x.out, b[:0]
		x.p.mu.Unlock()
		_, err := conn.Write(b)
		x.p.mu.Lock()
		x.outErr = err
		x.tell()
		x.p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *portable) dialled(s *session) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.pipe.outErr
}

func (p *portable) read(s *session, b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := s.pipe
	n := copy(b, x.in)
	x.in = append(x.in[:0], x.in[n:]...)
	x.turn.Broadcast()
	switch {
	case n > 0:
		if len(x.in) > 0 || x.inErr != nil {
			x.tell()
		}
		return n, nil
	case x.inErr != nil:
		return 0, x.inErr
	}
	return 0, errAgain
}

func (p *portable) write(s *session, b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := s.pipe
	n := min(len(b), portableBytes-len(x.out))
	switch {
	case x.outErr != nil:
		return 0, x.outErr
	case n == 0:
		return 0, errAgain
	}
	x.out = append(x.out, b[:n]...)
	x.turn.Broadcast()
	return n, nil
}

func (p *portable) cut(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := s.pipe
	if x.conn != nil {
		if tcp, ok := x.conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a close without it is as good
		}
		x.conn.Close()
	}
	x.over = true
	x.turn.Broadcast()
	s.pipe = nil
}

func (p *portable) wait(timeout time.Duration) ([]event, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.wakeups:
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = p.events[:0]
	for _, x := range p.mu.ready {
		x.queued = false
		if !x.over {
			readable := len(x.in) > 0 || x.inErr != nil
			p.events = append(p.events, event{s: x.s, gen: x.gen, readable: readable, writable: true, ended: x.inErr != nil})
		}
	}
	p.mu.ready = p.mu.ready[:0]
	return p.events, nil
}

func (p *portable) wake() {
	select {
	case p.wakeups <- struct{}{}:
	default:
	}
}

func (p *portable) close() {}
