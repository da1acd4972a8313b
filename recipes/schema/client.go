package schema

import (
	"context"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Client is a recipes.Client whose requests are checked before they are sent. What it does not offer is that client's, and
// unchecked: recipes that stand on it, and its connection.
type Client struct {
	*unchecked
	schema *Schema
}

// unchecked hides the embedded client's name, so that it is only reached by Unchecked.
type unchecked = recipes.Client

// Wrap checks the requests that are made by the client it returns. The client below may still be used without checks.
func Wrap(c *recipes.Client, s *Schema) *Client { return &Client{c, s} }

// Schema returns the rules.
func (c *Client) Schema() *Schema { return c.schema }

// Unchecked returns the client below.
func (c *Client) Unchecked() *recipes.Client { return c.unchecked }

// Get is that of recipes.Client, as all methods below are, after the check.
func (c *Client) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	if err := c.schema.CheckRead(path, false); err != nil {
		return nil, nil, err
	}
	return c.unchecked.Get(ctx, path)
}

// GetW reads with a watch.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	if err := c.schema.CheckRead(path, true); err != nil {
		return nil, nil, nil, err
	}
	return c.unchecked.GetW(ctx, path)
}

// Exists reads without a watch.
func (c *Client) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	if err := c.schema.CheckRead(path, false); err != nil {
		return nil, err
	}
	return c.unchecked.Exists(ctx, path)
}

// ExistsW reads with a watch.
func (c *Client) ExistsW(ctx context.Context, path string) (*zk.Stat, <-chan zk.Event, error) {
	if err := c.schema.CheckRead(path, true); err != nil {
		return nil, nil, err
	}
	return c.unchecked.ExistsW(ctx, path)
}

// Children reads without a watch.
func (c *Client) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	if err := c.schema.CheckRead(path, false); err != nil {
		return nil, nil, err
	}
	return c.unchecked.Children(ctx, path)
}

// ChildrenW reads with a watch.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	if err := c.schema.CheckRead(path, true); err != nil {
		return nil, nil, nil, err
	}
	return c.unchecked.ChildrenW(ctx, path)
}

// Create makes a node.
func (c *Client) Create(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	if err := c.schema.CheckCreate(path, data, flags); err != nil {
		return "", err
	}
	return c.unchecked.Create(ctx, path, data, flags)
}

// CreateProtected makes an ephemeral node. The rule is that of the path as it is given here. Missing parents that it makes
// are not checked.
func (c *Client) CreateProtected(ctx context.Context, s *recipes.Session, path string, data []byte, flags int32) (*recipes.Node, error) {
	if err := c.schema.CheckCreate(path, data, flags); err != nil {
		return nil, err
	}
	return c.unchecked.CreateProtected(ctx, s, path, data, flags)
}

// EnsurePath makes missing nodes. The check is that of creating the last one as a container; its parents are not checked.
func (c *Client) EnsurePath(ctx context.Context, path string) error {
	if err := c.schema.CheckCreate(path, nil, zk.FlagContainer); err != nil {
		return err
	}
	return c.unchecked.EnsurePath(ctx, path)
}

// Set replaces the data of a node.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	if err := c.schema.CheckSet(path, data); err != nil {
		return nil, err
	}
	return c.unchecked.Set(ctx, path, data, version)
}

// Delete deletes a node.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	if err := c.schema.CheckDelete(path); err != nil {
		return err
	}
	return c.unchecked.Delete(ctx, path, version)
}

// DeleteSurely deletes a node in the background. A violation is returned at once.
func (c *Client) DeleteSurely(path string) error {
	if err := c.schema.CheckDelete(path); err != nil {
		return err
	}
	c.unchecked.DeleteSurely(path)
	return nil
}

// Txn begins a transaction whose operations are checked.
func (c *Client) Txn() *Txn { return &Txn{schema: c.schema, txn: c.unchecked.Txn()} }

// Txn is a recipes.Txn whose operations are checked as they are added. The first violation is what Commit returns.
type Txn struct {
	schema *Schema
	txn    *recipes.Txn
	err    error
}

func (t *Txn) add(err error, add func()) *Txn {
	if t.err == nil {
		t.err = err
	}
	if t.err == nil {
		add()
	}
	return t
}

// Check makes the transaction depend on a version. No rule forbids that.
func (t *Txn) Check(path string, version int32) *Txn {
	return t.add(nil, func() { t.txn.Check(path, version) })
}

// Create makes a node.
func (t *Txn) Create(path string, data []byte, flags int32) *Txn {
	return t.add(t.schema.CheckCreate(path, data, flags), func() { t.txn.Create(path, data, flags) })
}

// Set replaces the data of a node.
func (t *Txn) Set(path string, data []byte, version int32) *Txn {
	return t.add(t.schema.CheckSet(path, data), func() { t.txn.Set(path, data, version) })
}

// Delete deletes a node.
func (t *Txn) Delete(path string, version int32) *Txn {
	return t.add(t.schema.CheckDelete(path), func() { t.txn.Delete(path, version) })
}

// Commit sends the transaction unless an operation is a violation.
func (t *Txn) Commit(ctx context.Context) ([]zk.MultiResponse, error) {
	if t.err != nil {
		return nil, t.err
	}
	return t.txn.Commit(ctx)
}
