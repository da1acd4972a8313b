package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"zabra/conf"
)

// listen binds the client ports, the plain one and the one with TLS.
func (s *Server) listen() (err error) {
	plain, secure := s.cfg.ClientAddr(), s.cfg.SecureClientAddr()
	if plain == "" && secure == "" {
		s.log.Warn("no client port is configured, so that nobody can connect; set clientPort, or give this server's line one, and start it again")
		return nil
	}
	if s.listener, err = s.listenOn(plain, "port"); err != nil {
		return err
	}
	if s.secureListener, err = s.listenOn(secure, "secure port"); err != nil {
		s.closeListeners()
	}
	return err
}

// closeListeners ends the client ports.
func (s *Server) closeListeners() {
	for _, l := range []*net.TCPListener{s.listener, s.secureListener} {
		if l != nil {
			l.Close()
		}
	}
}

// listenOn binds a client port; it returns nil for no address.
func (s *Server) listenOn(addr, what string) (*net.TCPListener, error) {
	if addr == "" {
		return nil, nil
	}
	lc := net.ListenConfig{KeepAlive: -1}
	if s.cfg.ClientTCPKeepAlive {
		lc.KeepAlive = 0
	}
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp := l.(*net.TCPListener)
	if n := s.cfg.ClientPortListenBacklog; n > 0 {
		err = setBacklog(tcp, n)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.log.Info("binding to "+what+" "+javaAddress(l.Addr()), zap.Int("backlog", s.cfg.ClientPortListenBacklog))
	return tcp, nil
}

// javaAddress writes the address of a listener as Java does, in front of which it puts the host's name or nothing.
func javaAddress(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return "0.0.0.0/0.0.0.0:" + strconv.Itoa(tcp.Port)
	}
	return "/" + addr.String()
}

// setBacklog changes the length of the accept queue. The net package takes the system's maximum; listening again on a
// listening socket changes it and nothing else.
func setBacklog(l *net.TCPListener, n int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var listenErr error
	err = raw.Control(func(fd uintptr) { listenErr = syscall.Listen(int(fd), n) })
	return errors.Join(err, listenErr)
}

// acceptLoops admits connections on every client port.
func (s *Server) acceptLoops() {
	policy := tlsNever
	if s.cfg.Security.ClientPortUnification {
		policy = tlsEither
	}
	if l := s.listener; l != nil {
		s.spawn(func() { s.acceptLoop(l, policy) })
	}
	if l := s.secureListener; l != nil {
		s.spawn(func() { s.acceptLoop(l, tlsAlways) })
	}
}

// acceptLoop admits connections until the listener is closed.
func (s *Server) acceptLoop(l *net.TCPListener, policy tlsPolicy) {
	backoff := acceptBackoffMin
	var toldMs int64
	for {
		tcp, err := l.AcceptTCP()
		if err == nil {
			backoff = acceptBackoffMin
			s.admit(tcp, policy)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// Most likely there are no file descriptors left. Connections that end will free some.
		if now := s.clock.now().MonoMs; now-toldMs > acceptFailureQuietMs || toldMs == 0 {
			toldMs = now
			s.log.Error("cannot accept connections; if descriptors have run out, raise the limit of open files", zap.Error(err))
		}
		if !s.pause(backoff) {
			return
		}
		backoff = min(2*backoff, acceptBackoffMax)
	}
}

// pause waits for d and reports false if the server is being closed.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.draining:
		return false
	}
}

// admit starts the reader of a new connection, or ends the connection if there are too many.
func (s *Server) admit(tcp *net.TCPConn, policy tlsPolicy) {
	remote := tcp.RemoteAddr().(*net.TCPAddr).AddrPort()
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	c, err := newConn(s, tcp, remote)
	if err == nil {
		c.policy = policy
		err = s.conns.add(c, &s.serving)
	}
	if err != nil {
		// Closed with a reset, as ZooKeeper does: no client has sent anything yet that an answer could be lost for, and
		// no port is left waiting.
		s.meter.rejected.Add(1)
		if !errors.Is(err, ErrServerClosed) {
			s.refusals.note(s.clock.now().MonoMs, refusal{kind: "connection", remote: remote, why: err.Error()})
		}
		_ = tcp.SetLinger(0)
		tcp.Close()
		return
	}
	s.spawn(c.run)
}

// connTable holds the open connections.
type connTable struct {
	mu                   sync.Mutex
	perAddrMax, totalMax int           // 0: no limit
	sealed               bool          // no connection is admitted any more
	empty                chan struct{} // closed when it is sealed and the last connection is gone
	lastID               uint64
	conns                map[*conn]struct{}
	ending               int // of conns, how many have conn.ending set
	// perAddr counts by source address, also without a limit: there may be one later.
	perAddr map[netip.Addr]int
}

func (t *connTable) init(cfg *conf.Config) {
	t.limit(cfg)
	t.conns = make(map[*conn]struct{})
	t.empty = make(chan struct{})
	t.perAddr = make(map[netip.Addr]int)
}

// limit sets the limits. They hold for connections to come.
func (t *connTable) limit(cfg *conf.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.perAddrMax, t.totalMax = max(cfg.MaxClientCnxns, 0), max(cfg.MaxCnxns, 0)
}

// add admits c, and counts it as serving, or says why not.
func (t *connTable) add(c *conn, serving *sync.WaitGroup) error {
	addr := c.remote.Addr()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.sealed:
		return ErrServerClosed
	case t.totalMax > 0 && len(t.conns) >= t.totalMax:
		return &tooManyError{key: "maxCnxns", max: t.totalMax}
	case t.perAddrMax > 0 && t.perAddr[addr] >= t.perAddrMax:
		return &tooManyError{addr: addr, key: "maxClientCnxns", max: t.perAddrMax}
	}
	t.perAddr[addr]++
	t.lastID++
	c.id = t.lastID
	t.conns[c] = struct{}{}
	serving.Add(1)
	return nil
}

// end takes c out of the count, of the limit of its address and of what operators are shown: its sending side is about to
// end, and only the end of the client's is waited for, which lingerTime bounds. Whoever asks two words in a row does not
// find the first one's connection. For maxCnxns it is still there.
func (t *connTable) end(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.conns[c]; ok && !c.ending {
		c.ending = true
		t.ending++
		t.leaveLocked(c.remote.Addr())
	}
}

// remove forgets c. It does nothing the second time.
func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.conns[c]; !ok {
		return
	}
	delete(t.conns, c)
	if c.ending {
		t.ending--
	} else {
		t.leaveLocked(c.remote.Addr())
	}
	t.maybeEmptyLocked()
}

// leaveLocked counts a connection less from addr.
func (t *connTable) leaveLocked(addr netip.Addr) {
	if t.perAddr[addr]--; t.perAddr[addr] <= 0 {
		delete(t.perAddr, addr)
	}
}

func (t *connTable) maybeEmptyLocked() {
	if !t.sealed || len(t.conns) > 0 {
		return
	}
	select {
	case <-t.empty:
	default:
		close(t.empty)
	}
}

// seal admits no more connections and returns those that there are.
func (t *connTable) seal() []*conn {
	t.mu.Lock()
	t.sealed = true
	t.maybeEmptyLocked()
	t.mu.Unlock()
	return t.list()
}

// list returns the connections in the order of their arrival, current those that are not about to end.
func (t *connTable) list() []*conn    { return t.listIf(func(*conn) bool { return true }) }
func (t *connTable) current() []*conn { return t.listIf(func(c *conn) bool { return !c.ending }) }

func (t *connTable) listIf(wanted func(c *conn) bool) []*conn {
	t.mu.Lock()
	conns := make([]*conn, 0, len(t.conns))
	for c := range t.conns {
		if wanted(c) {
			conns = append(conns, c)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(conns, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return conns
}

// len counts the connections that are not about to end.
func (t *connTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns) - t.ending
}

// tooManyError tells of a connection above a limit, in the words that runbooks match.
type tooManyError struct {
	addr netip.Addr // invalid: the limit is on all together
	key  string
	max  int
}

func (e *tooManyError) Error() string {
	if !e.addr.IsValid() {
		return "Too many connections - max is " + strconv.Itoa(e.max) + " (" + e.key + ")"
	}
	return "Too many connections from " + e.addr.String() + " - max is " + strconv.Itoa(e.max) + " (" + e.key + ")"
}
