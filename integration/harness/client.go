//go:build linux

package harness

import (
	"errors"
	"fmt"
	"time"
)

const (
	// retryPause is between two attempts to connect. It is part of what a failover costs a client.
	retryPause = 5 * time.Millisecond
	// greetTimeout bounds one attempt: a server that is suspended accepts connections and says nothing.
	greetTimeout = time.Second
)

// ErrNoServer says that no server took the client in within the limit of Connect.
var ErrNoServer = errors.New("no server took the client in")

// Client is a session that goes from server to server like a real client, only faster: after the loss of its connection it
// tries one address after the other every few milliseconds. It has one request outstanding and is not safe for concurrent use.
type Client struct {
	Addrs     []string
	TimeoutMs int32
	OnEvent   func(path string, zxid int64) // see Raw.OnEvent

	SessionID int64
	ZxidSeen  int64 // the highest of all replies
	Expired   int   // sessions that a server no longer knew
	Losses    int   // connections that broke
	At        int   // index of the server in Addrs that is, or was last, connected

	password [16]byte
	xid      int32
	raw      *Raw
}

// Connected says whether there is a connection; it may have broken without the client knowing.
func (c *Client) Connected() bool { return c.raw != nil }

// Connect goes through the addresses, beginning with the one connected last, until a server takes the client in. A session that
// has expired is replaced by a new one. It does nothing when connected.
func (c *Client) Connect(limit time.Duration) error {
	for deadline := time.Now().Add(limit); c.raw == nil; {
		err := c.attempt(min(greetTimeout, max(time.Until(deadline), retryPause)))
		if err == nil {
			return nil
		}
		c.At = (c.At + 1) % len(c.Addrs)
		if time.Now().After(deadline) {
			return fmt.Errorf("%w within %v: %w", ErrNoServer, limit, err)
		}
		time.Sleep(retryPause)
	}
	return nil
}

func (c *Client) attempt(limit time.Duration) error {
	raw, err := Greet(c.Addrs[c.At], Greeting{TimeoutMs: c.TimeoutMs, SessionID: c.SessionID, Password: c.password, ZxidSeen: c.ZxidSeen}, limit)
	if err != nil {
		return err
	}
	if raw.TimeoutMs <= 0 {
		raw.Close()
		c.Expired++
		c.SessionID, c.password = 0, [16]byte{}
		return errors.New("the session has expired")
	}
	raw.OnEvent = c.OnEvent
	c.raw, c.SessionID, c.password = raw, raw.SessionID, raw.Password
	return nil
}

// MoveTo drops the connection and connects to that server only.
func (c *Client) MoveTo(at int, limit time.Duration) error {
	c.Drop()
	all := c.Addrs
	c.Addrs, c.At = []string{all[at]}, 0
	err := c.Connect(limit)
	c.Addrs, c.At = all, at
	return err
}

// NextXid numbers requests over all connections, so that (session, xid) names one request for good.
func (c *Client) NextXid() int32 { c.xid++; return c.xid }

// Do sends one request, which must carry xid, and waits for its answer. After an error the connection is gone, and whether the
// request was carried out is not known.
func (c *Client) Do(xid int32, frame []byte, limit time.Duration) (Reply, error) {
	if c.raw == nil {
		return Reply{}, errors.New("not connected")
	}
	_ = c.raw.conn.SetDeadline(time.Now().Add(limit))
	reply, err := c.raw.Call(frame)
	if err == nil && reply.Xid != xid {
		err = fmt.Errorf("reply to xid %d, expected %d", reply.Xid, xid)
	}
	if err != nil {
		c.Losses++
		c.Drop()
		return Reply{}, err
	}
	c.ZxidSeen = max(c.ZxidSeen, reply.Zxid)
	return reply, nil
}

// Ping keeps the session alive and lets notifications through.
func (c *Client) Ping(limit time.Duration) error {
	_, err := c.Do(xidPing, AppendPing(nil), limit)
	return err
}

// Drop closes the connection; the session lives on until its timeout.
func (c *Client) Drop() {
	if c.raw != nil {
		c.raw.Close()
		c.raw = nil
	}
}

// End closes the session, if there is a connection.
func (c *Client) End(limit time.Duration) {
	if c.raw != nil {
		_, _ = c.Do(c.NextXid(), AppendClose(nil, c.xid), limit) // the session would expire anyhow
	}
	c.Drop()
}
