// Package client is a complete and small client of the ZooKeeper protocol, for tools and tests. It knows the whole set
// of operations, and it has no policy: it does not reconnect, does not set watches again and does not retry.
//
// The main path is Dial, Client.Go, Client.receive and Client.Close. Below it, Conn carries single frames.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

var (
	// ErrClosed is the reason why a connection ended that this side closed.
	ErrClosed = errors.New("client: closed")
	// ErrSilent is the reason why a connection ended whose server was not heard for a whole session timeout.
	ErrSilent = errors.New("client: server is silent")
	// ErrEventsOverflow is the reason why a connection ended whose events nobody read. An event that is lost cannot be
	// got again, so going on is no choice.
	ErrEventsOverflow = errors.New("client: event queue is full")
	// ErrProtocol is the reason why a connection ended whose server sent something that made no sense.
	ErrProtocol = errors.New("client: protocol violation")
)

// Options say how to connect. The zero value asks for a new session.
type Options struct {
	// Timeout is the session timeout to ask for, TimeoutDefault if 0. Negative values are sent as they are.
	Timeout time.Duration
	// Session and Password are those of the session to re-attach to; Session 0 asks for a new one.
	Session  zxid.SessionID
	Password []byte
	// ReadOnly accepts a server that is cut off from its ensemble.
	ReadOnly bool
	// NoReadOnlyField leaves out the field for ReadOnly, as clients of ZooKeeper 3.3 and some others do.
	NoReadOnlyField bool
	// LastZxidSeen is the highest zxid that the session has seen. A server that is behind it refuses.
	LastZxidSeen zxid.Zxid
	// NoPings switches off the pings that keep the session alive, and with them the detection of silent servers.
	NoPings bool
	// OnEvent is called with every watch event, in order and before the replies that came after it. It runs on the
	// connection's only reader: it must not block and must not wait for a call. If it is nil, events go to Client.Events.
	OnEvent func(Event)
	// EventsQueuedMax bounds the queue of Client.Events, EventsQueuedMaxDefault if 0.
	EventsQueuedMax int
	// FrameBytesMax bounds the frames that are taken from the server, FrameBytesMaxDefault if 0.
	FrameBytesMax int
	// TLS encrypts the connection; nil leaves it plain. Unless it has a ServerName, the server's certificate has to be for the
	// host of the address.
	TLS *tls.Config
	// Dial makes the connection in place of all that.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Event is a watch event.
type Event struct {
	Type  wire.EventType
	State int32
	Path  string
	// Zxid is that of the change, or -1 for an event by which setWatches told of an earlier one.
	Zxid zxid.Zxid
}

// Client is a session on one connection. Its methods may be called from any goroutine. When the connection is lost, all
// calls fail, and what remains of the client are its session id and password, with which a new one can be dialled.
type Client struct {
	conn      *Conn
	opt       Options
	connected wire.ConnectResponse
	events    chan Event
	done      chan struct{} // closed when the connection is over
	wake      chan struct{} // the writer has something to do
	wg        sync.WaitGroup

	start    time.Time
	sentMs   atomic.Int64 // time of the last frame out and in, in milliseconds since start
	heardMs  atomic.Int64
	lastZxid atomic.Int64

	mu struct {
		sync.Mutex
		err  error // why the connection is over; nil while it is not
		xid  int32
		out  jute.Encoder  // frames to be written
		room chan struct{} // closed and replaced when out was taken
		// fifo holds the calls whose replies come in the order of the requests, aside those that may overtake them.
		fifo  callQueue
		aside []*Call
	}
}

// Dial connects to one server and establishes the session. The context bounds this, not the life of the client. If the
// session to re-attach to does not exist any more, the error is wire.CodeSessionExpired.
func Dial(ctx context.Context, addr string, opt Options) (*Client, error) {
	dial := opt.Dial
	switch {
	case dial != nil:
	case opt.TLS != nil:
		dial = (&tls.Dialer{Config: opt.TLS}).DialContext
	default:
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := newClient(nc, opt)
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	c.connected, err = c.conn.Handshake(c.connectRequest())
	if !stop() && err == nil {
		err = ctx.Err()
	}
	switch {
	case err != nil:
		nc.Close()
		return nil, fmt.Errorf("client: handshake with %s: %w", addr, errors.Join(err, ctx.Err()))
	case c.connected.TimeoutMs <= 0 || c.connected.SessionID == 0:
		nc.Close()
		return nil, wire.CodeSessionExpired
	}
	c.run()
	return c, nil
}

func newClient(nc net.Conn, opt Options) *Client {
	c := &Client{
		conn:   NewConn(nc),
		opt:    opt,
		events: make(chan Event, orDefault(opt.EventsQueuedMax, EventsQueuedMaxDefault)),
		done:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
		start:  time.Now(),
	}
	c.conn.frameBytesMax = orDefault(opt.FrameBytesMax, FrameBytesMaxDefault)
	c.mu.room = make(chan struct{})
	c.lastZxid.Store(int64(opt.LastZxidSeen))
	return c
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

func (c *Client) connectRequest() *wire.ConnectRequest {
	timeout := c.opt.Timeout
	if timeout == 0 {
		timeout = TimeoutDefault
	}
	password := c.opt.Password
	if password == nil {
		password = make([]byte, wire.PasswordBytes)
	}
	return &wire.ConnectRequest{
		LastZxidSeen: c.opt.LastZxidSeen,
		TimeoutMs:    int32(max(math.MinInt32, min(timeout.Milliseconds(), math.MaxInt32))),
		SessionID:    c.opt.Session,
		Password:     password,
		ReadOnly:     c.opt.ReadOnly,
		HasReadOnly:  !c.opt.NoReadOnlyField,
	}
}

func (c *Client) run() {
	c.wg.Go(c.receive)
	c.wg.Go(c.write)
	if !c.opt.NoPings {
		c.wg.Go(c.ping)
	}
}

// Session returns the session's id.
func (c *Client) Session() zxid.SessionID { return c.connected.SessionID }

// Password returns what is needed beside the id to re-attach to the session.
func (c *Client) Password() []byte { return c.connected.Password }

// Timeout returns the session timeout that was negotiated.
func (c *Client) Timeout() time.Duration {
	return time.Duration(c.connected.TimeoutMs) * time.Millisecond
}

// Connected returns the server's answer to the ConnectRequest.
func (c *Client) Connected() wire.ConnectResponse { return c.connected }

// LastZxid returns the highest zxid seen in replies on this connection, or else that of Options.LastZxidSeen.
func (c *Client) LastZxid() zxid.Zxid { return zxid.Zxid(c.lastZxid.Load()) }

// LocalAddr returns this side's address.
func (c *Client) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// Events returns the watch events, unless there is an Options.OnEvent. An event is in the channel before the call that
// was answered after it is done. If nobody reads it and it runs full, the connection fails. It is never closed.
func (c *Client) Events() <-chan Event { return c.events }

// Done returns a channel that is closed when the connection is over.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection works, then the reason for its end.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.err
}

// Close ends the session: the server removes its ephemeral nodes. It returns once the server has answered and everything
// of this client has stopped; the connection is gone even if that fails.
func (c *Client) Close(ctx context.Context) error {
	err := c.call(ctx, wire.OpCloseSession, nil, nil)
	c.fail(ErrClosed)
	c.wg.Wait()
	return err
}

// Abandon cuts the connection, as a crash of the client would, and lets the session live on until it expires or somebody
// re-attaches to it. It returns when everything of this client has stopped.
func (c *Client) Abandon() {
	c.conn.Reset()
	c.fail(ErrClosed)
	c.wg.Wait()
}

// fail ends the connection, if it has not ended yet, and all calls with it.
func (c *Client) fail(reason error) {
	c.mu.Lock()
	if c.mu.err != nil {
		c.mu.Unlock()
		return
	}
	c.mu.err = reason
	calls := append(c.mu.fifo.takeAll(), c.mu.aside...)
	c.mu.aside = nil
	close(c.done)
	c.mu.Unlock()
	c.conn.Close()
	for _, call := range calls {
		call.finish(lost(reason))
	}
}

// lost makes the error of a call whose connection ended: the caller cannot know whether the server did what was asked.
func lost(reason error) error { return fmt.Errorf("%w: %w", wire.CodeConnectionLoss, reason) }

// nowMs is the time on this client's monotonic clock.
func (c *Client) nowMs() int64 { return time.Since(c.start).Milliseconds() }

// ping keeps the session alive: it speaks when nothing was sent for a third of the timeout, and ends the connection when
// nothing was heard for all of it.
func (c *Client) ping() {
	// A ping is only worth sending if it need not wait until earlier requests have been written.
	noWait, cancel := context.WithCancel(context.Background())
	cancel()
	timeout := int64(c.connected.TimeoutMs)
	interval := max(timeout/pingsPerTimeout, 1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-timer.C:
		}
		now := c.nowMs()
		if now-c.heardMs.Load() > timeout {
			c.fail(ErrSilent)
			return
		}
		if now-c.sentMs.Load() >= interval {
			c.begin(noWait, &Call{Op: wire.OpPing}, nil)
		}
		timer.Reset(time.Duration(max(c.sentMs.Load()+interval-now, 1)) * time.Millisecond)
	}
}
