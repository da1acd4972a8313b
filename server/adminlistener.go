package server

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
)

// adminMode is what the port of the admin server takes.
type adminMode uint8

const (
	adminPlain     adminMode = iota
	adminEncrypted           // TLS only
	adminUnified             // both: the first byte tells
)

// tlsHandshakeByte begins every connection over TLS, and no request in the clear.
const tlsHandshakeByte = 0x16

// adminListener hands out the connections of the admin server, and sees to it that there are not too many.
type adminListener struct {
	tcp       net.Listener
	mode      adminMode
	config    *tls.Config
	detection time.Duration // in which the first byte has to come
	ready     chan net.Conn
	quit      chan struct{}
	endOnce   sync.Once

	mu     sync.Mutex
	closed bool
	turn   uint64 // grows with each change of a connection
	open   map[*adminConn]struct{}
}

// adminConn is the socket of a connection.
type adminConn struct {
	net.Conn
	l     *adminListener
	first []byte // was read ahead
	// Guarded by l.mu: whether a request is under way, and since when that is so.
	busy  bool
	since uint64
}

// Addr implements [net.Listener].
func (l *adminListener) Addr() net.Addr { return l.tcp.Addr() }

// Accept implements [net.Listener].
func (l *adminListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.quit:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. It cuts the connections, too.
func (l *adminListener) Close() error {
	var err error
	l.endOnce.Do(func() {
		close(l.quit)
		err = l.tcp.Close()
		l.mu.Lock()
		l.closed = true
		open := l.open
		l.open = make(map[*adminConn]struct{})
		l.mu.Unlock()
		for c := range open {
			_ = c.Conn.Close()
		}
	})
	return err
}

// acceptLoop takes connections until the listener is closed.
func (l *adminListener) acceptLoop(s *Server) {
	pause := acceptBackoffMin
	for {
		nc, err := l.tcp.Accept()
		if err == nil {
			pause = acceptBackoffMin
			if c := l.admit(nc); c != nil {
				l.take(s, c)
			}
			continue
		}
		select {
		case <-l.quit:
			return
		case <-time.After(pause):
		}
		s.log.Debug("admin server: cannot accept", zap.Error(err))
		pause = min(2*pause, acceptBackoffMax)
	}
}

// admit makes room for a connection: that which has been quiet longest makes way. If all are busy the new one is closed.
func (l *adminListener) admit(nc net.Conn) *adminConn {
	l.mu.Lock()
	var quiet *adminConn
	full := len(l.open) >= adminConnsMax
	for c := range l.open {
		if full && !c.busy && (quiet == nil || c.since < quiet.since) {
			quiet = c
		}
	}
	var c *adminConn
	if !l.closed && (!full || quiet != nil) {
		delete(l.open, quiet)
		l.turn++
		c = &adminConn{Conn: nc, l: l, since: l.turn}
		l.open[c] = struct{}{}
	}
	l.mu.Unlock()
	if c == nil {
		_ = nc.Close()
	} else if quiet != nil {
		_ = quiet.Conn.Close()
	}
	return c
}

// take hands a connection on, when it is clear what it speaks.
func (l *adminListener) take(s *Server, c *adminConn) {
	switch l.mode {
	case adminPlain:
		l.hand(c)
	case adminEncrypted:
		l.hand(tls.Server(c, l.config))
	case adminUnified:
		s.spawn(func() { l.detect(c) })
	}
}

// detect waits for the first byte.
func (l *adminListener) detect(c *adminConn) {
	var first [1]byte
	_ = c.SetReadDeadline(time.Now().Add(l.detection))
	if _, err := c.Conn.Read(first[:]); err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	c.first = first[:]
	if first[0] == tlsHandshakeByte {
		l.hand(tls.Server(c, l.config))
		return
	}
	l.hand(c)
}

func (l *adminListener) hand(c net.Conn) {
	select {
	case l.ready <- c:
	case <-l.quit:
		_ = c.Close()
	}
}

// setBusy notes whether a request is under way on a connection that was handed out.
func (l *adminListener) setBusy(nc net.Conn, busy bool) {
	if encrypted, ok := nc.(*tls.Conn); ok {
		nc = encrypted.NetConn()
	}
	c := nc.(*adminConn)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	c.busy, c.since = busy, l.turn
}

// Read implements [net.Conn].
func (c *adminConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// Close implements [net.Conn].
func (c *adminConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.open, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// adminTLS makes the configuration of encrypted connections out of the one that the key stores give.
type adminTLS struct {
	source         func() (*tls.Config, error)
	needClientAuth bool

	mu         sync.Mutex
	base, last *tls.Config // last was made of base
}

// server is the configuration of the listener. Each handshake asks anew, so that new certificates are taken up.
func (t *adminTLS) server() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.current() },
	}
}

func (t *adminTLS) current() (*tls.Config, error) {
	base, err := t.source()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if base == t.base {
		return t.last, nil
	}
	cfg := base.Clone()
	cfg.GetConfigForClient, cfg.NextProtos, cfg.ClientAuth = nil, []string{"http/1.1"}, tls.NoClientCert
	if t.needClientAuth {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	t.base, t.last = base, cfg
	return cfg, nil
}
