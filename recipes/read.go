package recipes

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// All reads are repeated after a lost connection, as Options.Retry says. A watch is a channel that receives one event and is
// closed; it lives across reconnects, and receives zk.EventNotWatching when the session expires or the client is closed.
// The paths of events are absolute.

type answer struct {
	data     []byte
	children []string
	stat     *zk.Stat
	watch    <-chan zk.Event
}

// read makes a read of an absolute path.
func (c *Client) read(ctx context.Context, what, p string, do func(*zk.Conn, string) (answer, error)) (answer, error) {
	if err := checkPath(p); err != nil {
		return answer{}, err
	}
	a, err := repeated(ctx, c, func(conn *zk.Conn) (answer, error) { return do(conn, c.Path(p)) })
	if err != nil {
		return answer{}, wrap(what, p, err)
	}
	return a, nil
}

// Get returns the data of a node.
func (c *Client) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	a, err := c.read(ctx, "get", path, func(conn *zk.Conn, p string) (a answer, err error) {
		a.data, a.stat, err = conn.Get(p)
		return a, err
	})
	return a.data, a.stat, err
}

// GetW returns the data of a node and watches it for changes of the data and deletion.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	a, err := c.read(ctx, "get", path, func(conn *zk.Conn, p string) (a answer, err error) {
		c.watched.Store(true)
		a.data, a.stat, a.watch, err = conn.GetW(p)
		return a, err
	})
	return a.data, a.stat, a.watch, err
}

// Exists returns the stat of a node, nil if there is none.
func (c *Client) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	a, err := c.read(ctx, "exists", path, func(conn *zk.Conn, p string) (answer, error) {
		found, stat, err := conn.Exists(p)
		return answer{stat: only(stat, found)}, err
	})
	return a.stat, err
}

// ExistsW returns the stat of a node, nil if there is none, and watches it for creation, changes of the data and deletion.
func (c *Client) ExistsW(ctx context.Context, path string) (*zk.Stat, <-chan zk.Event, error) {
	a, err := c.read(ctx, "exists", path, func(conn *zk.Conn, p string) (answer, error) {
		c.watched.Store(true)
		found, stat, watch, err := conn.ExistsW(p)
		return answer{stat: only(stat, found), watch: watch}, err
	})
	return a.stat, a.watch, err
}

func only(stat *zk.Stat, found bool) *zk.Stat {
	if !found {
		return nil
	}
	return stat
}

// Children returns the names of a node's children, in no order, and the node's stat.
func (c *Client) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	a, err := c.read(ctx, "children", path, func(conn *zk.Conn, p string) (a answer, err error) {
		a.children, a.stat, err = conn.Children(p)
		return a, err
	})
	return a.children, a.stat, err
}

// ChildrenW returns the names of a node's children, and watches it for new and deleted ones and for its own deletion.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	a, err := c.read(ctx, "children", path, func(conn *zk.Conn, p string) (a answer, err error) {
		c.watched.Store(true)
		a.children, a.stat, a.watch, err = conn.ChildrenW(p)
		return a, err
	})
	return a.children, a.stat, a.watch, err
}

// Sync returns when this client's server has seen everything that was committed when Sync was called.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := c.read(ctx, "sync", path, func(conn *zk.Conn, p string) (answer, error) {
		_, err := conn.Sync(p)
		return answer{}, err
	})
	return err
}
