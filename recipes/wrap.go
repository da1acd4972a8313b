package recipes

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// wrapLookWait is how often a connection that somebody else has made is asked for its state, at least.
const wrapLookWait = 100 * time.Millisecond

// Wrap stands on a connection that exists, and takes over its channel of events: nobody else may receive from it. The
// client cannot look at that connection's frames. It therefore knows no lease, and takes a session for lost as soon as the
// connection breaks. The timeout in the options should be the one that was given to zk.Connect; Dial and Logger do not count.
// The identities are told to the server in the background, the namespace is not made. Close closes the connection.
func Wrap(conn *zk.Conn, events <-chan zk.Event, o Options) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := newClient(o)
	c.conn = conn
	if conn.State() == zk.StateHasSession { // its event may have been received before
		c.onEvent(zk.Event{Type: zk.EventSession, State: zk.StateHasSession})
	}
	c.goBackground(func() { c.followEvents(events) })
	c.goBackground(func() {
		for _, a := range o.Auth {
			if err := c.AddAuth(c.ctx, a); err != nil {
				o.Logger.Printf("recipes: %v", err)
			}
		}
	})
	return c, nil
}

// followEvents follows the states of the connection until it is closed. Package zk drops an event for which there is no room
// in the channel, which fills with old ones and with notifications: so the connection is asked, too.
func (c *Client) followEvents(events <-chan zk.Event) {
	look := time.NewTicker(min(wrapLookWait, c.opts.SessionTimeout/20))
	defer look.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			c.onEvent(e)
		case <-look.C:
			c.look()
		}
	}
}

// look takes up what the connection says of itself.
func (c *Client) look() {
	if c.conn.State() == zk.StateHasSession {
		c.resume()
	} else {
		c.suspend()
	}
}
