package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"zabra/internal/sasl"
	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
)

// state is what the prompt shows of a session.
type state string

const (
	stateConnecting        state = "CONNECTING"
	stateConnected         state = "CONNECTED"
	stateConnectedReadOnly state = "CONNECTEDREADONLY"
	stateClosed            state = "CLOSED"
	stateAuthFailed        state = "AUTH_FAILED"
)

// notice is an event as zkCli prints it.
type notice struct {
	state string
	typ   string
	path  string
	zxid  zxid.Zxid
}

func (n notice) String() string {
	return fmt.Sprintf("WatchedEvent state:%s type:%s path:%s zxid: %d", n.state, n.typ, n.path, int64(n.zxid))
}

// stateNotice is an event about the session itself.
func stateNotice(name string) notice { return notice{name, "None", "null", -1} }

// sessionConfig says how a session is made.
type sessionConfig struct {
	servers  serverList
	timeout  time.Duration
	readOnly bool
	tls      *tls.Config
	login    *sasl.Login // nil for none
	// notify gets every event, in order. It runs on the connection's reader.
	notify func(notice)
	// changed gets every new state. It may be nil.
	changed func(state)
}

// session is a session that stays: when the connection is lost it goes on with the next server of the list, with the
// identities and watches that it had. It ends by close, or when the server says that it has expired.
type session struct {
	cfg     sessionConfig
	watches watchSet
	stop    context.CancelFunc
	done    chan struct{} // closed when run has returned

	// proving is held while an identity is being proved.
	proving sync.Mutex

	mu      sync.Mutex
	state   state
	conn    *client.Client // nil while not connected
	changed chan struct{}  // closed and replaced when something above changes
	failed  error          // why the last round through the servers failed, nil while it has not
	auths   []authInfo
	id      zxid.SessionID
	secret  []byte
	seen    zxid.Zxid
}

type authInfo struct {
	scheme string
	auth   []byte
}

// openSession begins to connect and returns at once.
func openSession(cfg sessionConfig) *session {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{cfg: cfg, stop: cancel, done: make(chan struct{}), changed: make(chan struct{}), state: stateConnecting}
	go s.run(ctx)
	return s
}

// run keeps the session connected until it ends.
func (s *session) run(ctx context.Context) {
	defer close(s.done)
	servers := s.cfg.servers.addrs
	pause, tries := reconnectPauseMin, 0
	for i := 0; ctx.Err() == nil; {
		c, err := s.dial(ctx, servers[i%len(servers)])
		switch {
		case err == nil:
			s.serve(ctx, c) // afterwards the same server first: it may have lost the connection only
			pause, tries = reconnectPauseMin, 0
			continue
		case errors.Is(err, wire.CodeSessionExpired):
			s.over(stateClosed, "Expired")
			return
		case errors.Is(err, wire.CodeAuthFailed), errors.Is(err, wire.CodeAuthRequired):
			s.set(func() { s.failed = err })
			s.over(stateAuthFailed, "AuthFailed")
			return
		}
		i, tries = i+1, tries+1
		if tries%len(servers) == 0 {
			s.set(func() { s.failed = err })
			sleep(ctx, pause)
			pause = min(2*pause, reconnectPauseMax)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// dial makes a connection that is ready for use: identified, and with the watches set.
func (s *session) dial(ctx context.Context, addr string) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, min(dialMax, s.cfg.timeout))
	defer cancel()
	s.mu.Lock()
	opt := client.Options{
		Timeout: s.cfg.timeout, Session: s.id, Password: s.secret, LastZxidSeen: s.seen, ReadOnly: s.cfg.readOnly, OnEvent: s.event,
	}
	auths := s.auths
	s.mu.Unlock()
	if s.cfg.tls != nil {
		opt.Dial = tlsDialer(s.cfg.tls)
	}
	c, err := client.Dial(ctx, addr, opt)
	if err != nil {
		return nil, err
	}
	if s.cfg.login != nil {
		if err := c.SASLLogin(ctx, *s.cfg.login); err != nil {
			c.Abandon()
			return nil, refusedLogin(err)
		}
	}
	for _, a := range auths {
		if err := c.AddAuth(ctx, a.scheme, a.auth); err != nil {
			c.Abandon()
			return nil, err
		}
	}
	if req := s.watches.request(opt.LastZxidSeen); req != nil {
		if err := c.SetWatches2(ctx, req); err != nil {
			c.Abandon()
			return nil, err
		}
	}
	return c, nil
}

// tlsDialer speaks TLS with the host that is dialled.
func tlsDialer(config *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := tls.Dialer{Config: config}
		return d.DialContext(ctx, network, addr)
	}
}

// serve lets others use a connection until it is lost.
func (s *session) serve(ctx context.Context, c *client.Client) {
	st, name := stateConnected, "SyncConnected"
	if c.Connected().ReadOnly {
		st, name = stateConnectedReadOnly, "ConnectedReadOnly"
	}
	s.cfg.notify(stateNotice(name))
	s.set(func() {
		s.state, s.conn, s.failed = st, c, nil
		s.id, s.secret = c.Session(), c.Password()
	})
	select {
	case <-c.Done():
	case <-ctx.Done():
	}
	// The server closes a connection whose identity it refuses: that is another end than a loss.
	s.proving.Lock()
	s.proving.Unlock() //nolint:staticcheck // only to let addAuth finish
	if ctx.Err() == nil {
		s.cfg.notify(stateNotice("Disconnected"))
	}
	s.set(func() {
		s.state, s.conn, s.seen = stateConnecting, nil, max(s.seen, c.LastZxid())
	})
}

func (s *session) set(change func()) {
	s.mu.Lock()
	before := s.state
	change()
	after := s.state
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if before != after && s.cfg.changed != nil {
		s.cfg.changed(after)
	}
}

// over ends a session that the server does not know any more.
func (s *session) over(st state, name string) {
	s.set(func() { s.state = st })
	s.cfg.notify(stateNotice(name))
}

// event takes a watch event from the connection.
func (s *session) event(e client.Event) {
	s.watches.fired(e.Type, e.Path)
	s.cfg.notify(notice{"SyncConnected", e.Type.String(), s.outside(e.Path), e.Zxid})
}

// inside and outside are a path as the server and as the user see it.
func (s *session) inside(path string) string {
	switch root := s.cfg.servers.chroot; {
	case root == "":
		return path
	case path == "/":
		return root
	default:
		return root + path
	}
}

func (s *session) outside(path string) string {
	root := s.cfg.servers.chroot
	switch {
	case path == root && root != "":
		return "/"
	case root != "" && len(path) > len(root) && path[:len(root)+1] == root+"/":
		return path[len(root):]
	}
	return path
}

// current returns the state, and whether the session can still be used.
func (s *session) current() (state, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.state != stateClosed && s.state != stateAuthFailed
}

// connection returns the connection, waiting while servers are tried that were not tried yet. If all of them failed, it
// is an error, unless patient.
func (s *session) connection(ctx context.Context, patient bool) (*client.Client, error) {
	for {
		s.mu.Lock()
		c, st, failed, changed := s.conn, s.state, s.failed, s.changed
		s.mu.Unlock()
		switch {
		case st == stateAuthFailed:
			if login, ok := errors.AsType[*loginRefused](failed); ok {
				return nil, login
			}
			return nil, wire.CodeAuthFailed
		case st == stateClosed:
			return nil, wire.CodeSessionExpired
		case c != nil:
			return c, nil
		case failed != nil && !patient:
			return nil, &unreachable{failed}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if failed == nil {
				failed = ctx.Err()
			}
			return nil, &unreachable{failed}
		}
	}
}

// answers waits until a server has answered: a connection that is there may be about to end.
func (s *session) answers(ctx context.Context) error {
	for {
		zk, err := s.connection(ctx, false)
		if err != nil {
			return err
		}
		if err = zk.Ping(ctx); !errors.Is(err, wire.CodeConnectionLoss) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, reconnectPauseMin)
	}
}

// do checks a path and calls f with the connection and the path as the server sees it. An error names the user's path.
func (s *session) do(ctx context.Context, path string, f func(c *client.Client, inside string) error) error {
	if err := checkPath(path); err != nil {
		return err
	}
	c, err := s.connection(ctx, false)
	if err == nil {
		err = f(c, s.inside(path))
	}
	if err == nil {
		return nil
	}
	return &opError{path: path, err: err}
}

// watch sets a watch by f, if wanted, and remembers it. What f asks for is known beforehand, because the event may come
// before f returns.
func (s *session) watch(kind watchKind, path string, f func() error) error {
	inside := s.inside(path)
	isNew := s.watches.add(kind, inside)
	err := f()
	if err != nil && isNew {
		s.watches.remove(kind, inside)
	}
	return err
}

// addAuth proves an identity, and again on later connections. A refusal ends the session.
func (s *session) addAuth(ctx context.Context, scheme string, auth []byte) error {
	c, err := s.connection(ctx, false)
	if err == nil {
		err = s.prove(ctx, c, scheme, auth)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wire.CodeAuthFailed):
		<-s.done
		s.over(stateAuthFailed, "AuthFailed")
	}
	return &opError{err: err}
}

func (s *session) prove(ctx context.Context, c *client.Client, scheme string, auth []byte) error {
	s.proving.Lock()
	defer s.proving.Unlock()
	err := c.AddAuth(ctx, scheme, auth)
	switch {
	case err == nil:
		s.mu.Lock()
		s.auths = append(s.auths, authInfo{scheme, auth})
		s.mu.Unlock()
	case errors.Is(err, wire.CodeAuthFailed):
		s.stop()
	}
	return err
}

// close ends the session. With farewell an event tells of it.
func (s *session) close(farewell bool) {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	s.stop()
	if c != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeMax)
		c.Close(ctx) // if it fails the session expires by itself
		cancel()
	}
	<-s.done
	s.set(func() { s.state, s.conn = stateClosed, nil })
	if farewell {
		s.cfg.notify(stateNotice("Closed"))
	}
}
