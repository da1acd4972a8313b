package recipes

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// All writes are sent at most once. When ctx ends, or the reply is lost, they fail with ErrUnknown.

// Create makes a node and returns its path, which has a number at its end for a sequential one. flags are those of package
// zk: zk.FlagPersistent, zk.FlagEphemeral, zk.FlagSequence, their sum, or zk.FlagContainer. The parent has to exist.
//
// An ephemeral node that must belong to a certain session is better made by CreateProtected: a request that waits while the
// session expires is carried out under the next one.
func (c *Client) Create(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	made, err := sentOnce(ctx, c, func(conn *zk.Conn) (string, error) {
		if flags == zk.FlagContainer {
			return conn.CreateContainer(c.Path(path), data, flags, c.opts.ACL)
		}
		return conn.Create(c.Path(path), data, flags, c.opts.ACL)
	})
	if err != nil {
		return "", wrap("create", path, err)
	}
	return c.below(made), nil
}

// Set replaces the data of a node if it has that version; -1 stands for any.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	stat, err := sentOnce(ctx, c, func(conn *zk.Conn) (*zk.Stat, error) { return conn.Set(c.Path(path), data, version) })
	if err != nil {
		return nil, wrap("set", path, err)
	}
	return stat, nil
}

// Delete deletes a node without children if its data has that version; -1 stands for any.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	if err := checkPath(path); err != nil {
		return err
	}
	return wrap("delete", path, c.deleteOnce(ctx, c.Path(path), version))
}

func (c *Client) deleteOnce(ctx context.Context, absolute string, version int32) error {
	_, err := sentOnce(ctx, c, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, conn.Delete(absolute, version) })
	return err
}

// DeleteSurely deletes a node in the background, in any version, and does not give up before it is gone or the client is
// closed. It gives up on what trying again cannot change, such as a node with children.
func (c *Client) DeleteSurely(path string) {
	if checkPath(path) == nil {
		c.goBackground(func() { c.deleteSurely(c.Path(path)) })
	}
}

func (c *Client) deleteSurely(absolute string) {
	for attempt := 0; ; attempt++ {
		err := c.deleteOnce(c.ctx, absolute, -1)
		if err == nil || errors.Is(err, zk.ErrNoNode) || !passing(err) {
			return
		}
		c.persist(attempt)
	}
}

// persist waits between two attempts of work in the background that must not be given up.
func (c *Client) persist(attempt int) {
	again, err := c.pause(c.ctx, attempt)
	if !again && err == nil {
		// The policy is for calls that somebody waits for.
		_ = c.Sleep(c.ctx, retryMostDefault)
	}
}
