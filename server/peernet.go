package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"zabra/wire/peer"
	"zabra/zab/zxid"
)

// dial connects to another member: to the first of its addresses that answers. Names are looked up anew at each call, so
// that a member may move. The peer is who it should be, and it has accepted this server, when dial returns.
func (m *member) dial(ctx context.Context, addrs []string, to zxid.ServerID, purpose peer.Purpose) (net.Conn, error) {
	var errs []error
	for _, addr := range addrs {
		nc, err := m.dialOne(ctx, addr, to, purpose)
		if err == nil {
			return nc, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (m *member) dialOne(ctx context.Context, addr string, to zxid.ServerID, purpose peer.Purpose) (net.Conn, error) {
	raw, err := m.dialRaw(ctx, addr, to)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	m.tune(raw)
	_ = raw.SetDeadline(time.Now().Add(m.limits.dial))
	nc, err := m.auth.Client(withHost(raw, addr))
	if err == nil {
		_, err = peer.Greet(nc, m.hello(to, purpose))
	}
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	_ = raw.SetDeadline(time.Time{})
	return nc, nil
}

func (m *member) dialRaw(ctx context.Context, addr string, to zxid.ServerID) (net.Conn, error) {
	if m.s.dialMember != nil {
		return m.s.dialMember(ctx, to, addr)
	}
	d := net.Dialer{Timeout: m.limits.dial, KeepAlive: -1}
	return d.DialContext(ctx, "tcp", addr)
}

func (m *member) hello(to zxid.ServerID, purpose peer.Purpose) peer.Hello {
	return peer.Hello{From: m.id, To: to, Purpose: purpose, ConfigVersion: m.config.Version()}
}

// accept greets whoever connects until l is closed or ctx ends, each on a goroutine of its own: one that says nothing
// keeps nobody waiting. greet owns the connection; what it returns, if anything, is run after it as the connection's life.
func (m *member) accept(ctx context.Context, l net.Listener, greet func(net.Conn) func()) {
	var pending greetings
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			m.trouble.note(m, "accept", 0, "cannot accept connections of other members; if descriptors have run out, raise the limit of open files", zap.Error(err))
			if !sleep(ctx, acceptBackoffMin) {
				return
			}
			continue
		}
		pending.add(nc)
		m.s.spawn(func() {
			serve := greet(nc)
			pending.remove(nc)
			if serve != nil {
				serve()
			}
		})
	}
}

// greetings are the connections of a port that are in the middle of their greeting, oldest first.
type greetings struct {
	mu    sync.Mutex
	conns []net.Conn
}

// add enters a connection. When there are too many, the one that has been silent for longest goes: strangers who say
// nothing must not keep members out.
func (g *greetings) add(nc net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = append(g.conns, nc)
	if len(g.conns) > helloPendingMax {
		g.conns[0].Close()
		g.conns = slices.Delete(g.conns, 0, 1)
	}
}

func (g *greetings) remove(nc net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.conns, nc); i >= 0 {
		g.conns = slices.Delete(g.conns, i, i+1)
	}
}

// answer greets a connection that has come in. If anything is wrong with it, it closes the connection and tells why.
func (m *member) answer(raw net.Conn, purpose peer.Purpose, check func(peer.Hello) error) (net.Conn, peer.Hello, error) {
	stop := context.AfterFunc(m.ctx, func() { raw.Close() })
	defer stop()
	m.tune(raw)
	_ = raw.SetDeadline(time.Now().Add(m.limits.dial))
	nc, err := m.auth.Server(raw)
	var hello peer.Hello
	if err == nil {
		hello, err = peer.Answer(nc, m.hello(0, purpose), check)
	}
	if err != nil {
		raw.Close()
		m.refusedHello(raw.RemoteAddr(), hello, err)
		return nil, hello, err
	}
	_ = raw.SetDeadline(time.Time{})
	return nc, hello, nil
}

// refusedHello tells of a connection that was not taken. One that ended before it said anything is a probe's.
func (m *member) refusedHello(remote net.Addr, hello peer.Hello, err error) {
	if m.ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return
	}
	text := "a connection of another server was refused; compare the server lines and myid files of both"
	if _, ok := errors.AsType[*peer.AuthError](err); ok {
		m.s.meter.authFailed.Add(1)
		text = "a connection of another server was refused: it has to prove who it is"
	}
	const told = 40 // of the reason: behind that may be what the stranger has sent
	why := err.Error()
	m.trouble.note(m, "hello from "+hostOf(remote)+why[:min(len(why), told)], hello.From,
		text, zap.Stringer("remote", remote), zap.Error(err))
}

func hostOf(a net.Addr) string {
	host, _, _ := net.SplitHostPort(a.String())
	return host
}

// tune sets what all connections between members have: small messages leave at once, and a peer whose system does not
// answer any more is noticed.
func (m *member) tune(nc net.Conn) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetNoDelay(true)
	const probes = 3
	every := max(m.limits.quiet/(probes+1), time.Second)
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: probes})
	setUserTimeout(tcp, max(m.limits.quiet, time.Second))
}

// bind listens on this server's own address, or on all of them.
func (m *member) bind(ctx context.Context, addr string) (net.Listener, error) {
	if m.s.cfg.QuorumListenOnAllIPs {
		_, port, _ := net.SplitHostPort(addr)
		addr = net.JoinHostPort("", port)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err == nil {
		m.tellSocket(l)
	}
	return l, err
}

// bindElection listens on the election port. It tries electionPortBindRetry times, without end if that is 0.
func (m *member) bindElection() error {
	attempts := m.s.cfg.ElectionPortBindRetry
	for attempt := 1; ; attempt++ {
		err := m.bindElectionOnce()
		if err == nil {
			return nil
		}
		if attempts > 0 && attempt >= attempts {
			return fmt.Errorf("cannot listen on election address %s: %w; see to it that the address is this machine's and that no other process uses the port",
				strings.Join(electionAddresses(m.self), ", "), err)
		}
		m.s.log.Warn("cannot listen on the election port; trying again", zap.Strings("address", electionAddresses(m.self)), zap.Error(err))
		if !sleep(m.ctx, bindRetryPause) {
			return ErrServerClosed
		}
	}
}

func (m *member) bindElectionOnce() error {
	for _, addr := range electionAddresses(m.self) {
		l, err := m.bind(m.ctx, addr)
		if err != nil {
			for i := range m.election {
				m.election[i].close()
			}
			m.election = nil
			return err
		}
		m.election = append(m.election, electionListener{m, l})
		m.s.log.Info("My election bind port: " + l.Addr().String())
		if m.s.cfg.QuorumListenOnAllIPs {
			break // one port for all addresses, as in ZooKeeper
		}
	}
	return nil
}

// sleep waits and reports false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// trouble keeps the log readable while a member is away: the same trouble makes one line in a while.
type trouble struct {
	mu    sync.Mutex
	known map[troubleKey]int64 // when it was told last
}

type troubleKey struct {
	kind string
	peer zxid.ServerID
}

func (t *trouble) init() { t.known = make(map[troubleKey]int64) }

// due reports whether a trouble is to be told now.
func (t *trouble) due(nowMs int64, key troubleKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if told, ok := t.known[key]; ok && nowMs-told < peerQuietMs {
		return false
	}
	if len(t.known) >= refusalKeysMax {
		clear(t.known)
	}
	t.known[key] = nowMs
	return true
}

// over forgets a trouble and reports whether it had been told.
func (t *trouble) over(key troubleKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, told := t.known[key]
	delete(t.known, key)
	return told
}

// note warns of a trouble, unless it was told a moment ago.
func (t *trouble) note(m *member, kind string, peer zxid.ServerID, text string, fields ...zap.Field) {
	if t.due(m.s.clock.now().MonoMs, troubleKey{kind, peer}) {
		m.s.log.Warn(text, fields...)
	}
}

// unreachable tells that a member does not answer, in the words that runbooks look for.
func (m *member) unreachable(id zxid.ServerID, what string, addrs []string, err error) {
	if m.ctx.Err() != nil {
		return
	}
	if _, ok := errors.AsType[*peer.AuthError](err); ok {
		m.trouble.note(m, what+" refused", id, fmt.Sprintf("cannot log in to server %d", id), zap.Error(err))
		return
	}
	var refused *peer.RefusedError
	if errors.As(err, &refused) {
		m.trouble.note(m, what+" refused", id, fmt.Sprintf("server %d refused this server; compare the server lines and myid files of both", id), zap.Error(err))
		return
	}
	m.trouble.note(m, what, id, fmt.Sprintf("Cannot open channel to %d at %s %s; is that server running, and can it be reached from here?",
		id, what, strings.Join(addrs, ", ")), zap.Error(err))
}

// reached ends an unreachable.
func (m *member) reached(id zxid.ServerID, what string) {
	refused := m.trouble.over(troubleKey{what + " refused", id})
	if m.trouble.over(troubleKey{what, id}) || refused {
		m.s.log.Info(fmt.Sprintf("connected to %d at its %s", id, what))
	}
}

// lost tells of a connection that ended. The end of the peer's process is no fault of the connection's.
func (m *member) lost(id zxid.ServerID, what string, err error) {
	fields := []zap.Field{zap.Int64("server", int64(id))}
	var frame *peer.FrameError
	if errors.As(err, &frame) {
		m.s.log.Warn(what+" cut off: the other server sent what cannot be read; if this comes again, look at the versions of both and at the network between them",
			append(fields, zap.Error(err))...)
		return
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		fields = append(fields, zap.Error(err))
	}
	m.s.log.Info(what+" lost", fields...)
}
