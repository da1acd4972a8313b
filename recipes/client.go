package recipes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Client is a connection to an ensemble that recipes stand on. Its methods may be called from any goroutine. It is made by
// Connect or Wrap.
type Client struct {
	conn   *zk.Conn
	opts   Options
	closed chan struct{}
	// ctx is that of work in the background, which ends with the client.
	ctx    context.Context
	cancel context.CancelFunc
	// withoutContainers is set when the server has said that it knows none.
	withoutContainers atomic.Bool
	// watched is set when a watch was asked for.
	watched atomic.Bool

	mu struct {
		sync.Mutex
		state     State
		session   *Session
		changed   chan struct{} // closed and replaced at each change of state or session
		listeners map[*listener]struct{}
		closing   bool
		// granted is the lease of the youngest handshake, and socket its connection. Both are nil without our dialer.
		granted *lease
		socket  net.Conn
	}
	background sync.WaitGroup // nothing is added after closing
}

func newClient(o Options) *Client {
	c := &Client{opts: o, closed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.session = &Session{done: make(chan struct{}), timeout: o.SessionTimeout}
	c.mu.session.end()
	c.mu.changed = make(chan struct{})
	c.mu.listeners = map[*listener]struct{}{}
	return c
}

// Connect connects to one of the servers ("host:port", 2181 without a port) and returns when the first session is
// established, or ctx ends. Names are resolved anew for each connection. Later connections are made by themselves.
func Connect(ctx context.Context, servers []string, o Options) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := newClient(o)
	conn, events, err := zk.Connect(servers, o.SessionTimeout, zk.WithDialer(c.dial), zk.WithHostProvider(&hosts{}),
		zk.WithEventCallback(c.onEvent), zk.WithLogger(o.Logger), zk.WithLogInfo(false))
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("recipes: %w", err)
	}
	c.conn = conn
	c.goBackground(func() { drain(events) })
	if err := c.begin(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("recipes: connecting to %v: %w", servers, err)
	}
	return c, nil
}

// begin waits for the session and makes the namespace.
func (c *Client) begin(ctx context.Context) error {
	if _, err := c.AwaitSession(ctx); err != nil {
		return err
	}
	for _, a := range c.opts.Auth {
		if err := c.AddAuth(ctx, a); err != nil {
			return err
		}
	}
	if c.opts.Namespace == "" {
		return nil
	}
	return c.ensure(ctx, c.opts.Namespace, c.createPersistent)
}

// AddAuth tells the server who this client is, now and after each reconnect.
func (c *Client) AddAuth(ctx context.Context, a Auth) error {
	_, err := repeated(ctx, c, func(conn *zk.Conn) (struct{}, error) {
		return struct{}{}, conn.AddAuth(a.Scheme, a.Credentials)
	})
	return wrap("add auth", a.Scheme, err)
}

func drain(events <-chan zk.Event) {
	for range events { // they were given to onEvent
	}
}

// Close ends the session, so that its ephemeral nodes are gone, and all work in the background. It takes a second or two if
// there is no connection: then the ensemble ends the session by its timeout.
func (c *Client) Close() {
	c.mu.Lock()
	again := c.mu.closing
	c.mu.closing = true
	c.mu.Unlock()
	if !again {
		c.cancel()
		close(c.closed)
		c.conn.Close()
		c.mu.Lock()
		c.mu.session.end()
		c.setStateLocked(Lost)
		socket := c.mu.socket
		c.mu.Unlock()
		if socket != nil {
			socket.Close() // package zk may wait long for a server that is silent
		}
	}
	c.background.Wait()
}

// Closed is closed when Close is called.
func (c *Client) Closed() <-chan struct{} { return c.closed }

// Conn returns the connection below, for what this package does not offer. Its paths are absolute.
func (c *Client) Conn() *zk.Conn { return c.conn }

// Background is the context of work that is to end with the client.
func (c *Client) Background() context.Context { return c.ctx }

// goBackground runs what Close waits for. It does not, and returns false, when the client is closed.
func (c *Client) goBackground(run func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.goBackgroundLocked(run)
}

func (c *Client) goBackgroundLocked(run func()) bool {
	if c.mu.closing {
		return false
	}
	c.background.Add(1)
	go func() {
		defer c.background.Done()
		run()
	}()
	return true
}

// dial makes the connections of package zk.
func (c *Client) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	select {
	case <-c.closed:
		return nil, ErrClosed
	default:
	}
	socket, err := c.opts.Dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closing {
		return nil, errors.Join(ErrClosed, socket.Close())
	}
	c.mu.socket = socket
	return &watchedConn{Conn: socket, handshake: c.granted, watching: c.watched.Load}, nil
}

// granted takes up what the server has granted in a handshake.
func (c *Client) granted(id int64, timeout time.Duration, sent time.Time) *lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == 0 || timeout <= 0 {
		return nil
	}
	if c.mu.granted == nil || c.mu.granted.id != id {
		c.mu.granted = &lease{id: id}
	}
	c.mu.granted.negotiate(timeout, sent)
	return c.mu.granted
}

// onEvent follows the states of package zk, which calls it on the goroutine that connects.
func (c *Client) onEvent(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		c.resume()
	case zk.StateDisconnected:
		c.suspend()
	case zk.StateExpired:
		c.lose(c.Session())
	}
}

// resume goes on with a session that the server has granted or knows again. It may be called before zk.Connect has returned.
func (c *Client) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closing {
		return
	}
	var id int64
	if c.mu.granted != nil {
		id = c.mu.granted.id
	} else if id = c.conn.SessionID(); id == 0 {
		return // it has expired since
	}
	first := c.mu.state == Connecting
	if s := c.mu.session; s.id == id && !s.Over() {
		if c.mu.state.IsConnected() { // told twice, see Wrap
			return
		}
	} else {
		c.loseLocked(s)
		c.mu.session = c.newSessionLocked(id)
	}
	if first {
		c.setStateLocked(Connected)
	} else {
		c.setStateLocked(Reconnected)
	}
}

func (c *Client) newSessionLocked(id int64) *Session {
	s := &Session{id: id, timeout: c.opts.SessionTimeout, done: make(chan struct{})}
	if c.mu.granted != nil && c.mu.granted.id == id {
		s.lease = c.mu.granted
		c.goBackgroundLocked(func() { c.watchLease(s) })
	}
	return s
}

// suspend is the end of a connection. Without a lease it is that of the session, too.
func (c *Client) suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.state.IsConnected() {
		return
	}
	c.setStateLocked(Suspended)
	if c.mu.session.lease == nil {
		c.loseLocked(c.mu.session)
	}
}

// lose ends a session, if it is the present one and not over yet.
func (c *Client) lose(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.session == s {
		c.loseLocked(s)
	}
}

func (c *Client) loseLocked(s *Session) {
	s.end()
	if c.mu.state != Connecting {
		c.setStateLocked(Lost)
	}
}
