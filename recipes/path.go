package recipes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// checkPath tells why a path cannot be one. The server checks the characters of its elements.
func checkPath(p string) error {
	if !strings.HasPrefix(p, "/") || p != path.Clean(p) {
		return fmt.Errorf("%w: %q has to be absolute, without empty elements, dots or a slash at the end", ErrPath, p)
	}
	return nil
}

// Path returns the absolute path of one below the namespace.
func (c *Client) Path(p string) string {
	if p == "/" && c.opts.Namespace != "" {
		return c.opts.Namespace
	}
	return c.opts.Namespace + p
}

// below is the inverse of Path.
func (c *Client) below(absolute string) string {
	if p := strings.TrimPrefix(absolute, c.opts.Namespace); p != "" {
		return p
	}
	return "/"
}

// EnsurePath makes the missing nodes of a path: as containers, which the server removes some time after their last child,
// or as ordinary nodes where it knows no containers. Their data is empty.
func (c *Client) EnsurePath(ctx context.Context, p string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	return wrap("make", p, c.ensure(ctx, c.Path(p), c.createContainer))
}

// maker makes a node of an absolute path, without data.
type maker func(conn *zk.Conn, absolute string) (string, error)

// ensure makes the missing nodes of an absolute path. It tries the last one first: mostly nothing else is missing.
func (c *Client) ensure(ctx context.Context, absolute string, create maker) error {
	if absolute == "/" {
		return nil
	}
	for {
		_, err := repeated(ctx, c, func(conn *zk.Conn) (string, error) { return create(conn, absolute) })
		switch {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoAuth): // which servers say before they look whether the node exists
			return c.unlessThere(ctx, absolute, err)
		case !errors.Is(err, zk.ErrNoNode):
			return err
		}
		if err := c.ensure(ctx, path.Dir(absolute), create); err != nil {
			return err
		}
	}
}

// unlessThere returns the error of a create, or nil if the node is there anyway.
func (c *Client) unlessThere(ctx context.Context, absolute string, refused error) error {
	found, err := repeated(ctx, c, func(conn *zk.Conn) (bool, error) {
		found, _, err := conn.Exists(absolute)
		return found, err
	})
	switch {
	case err != nil:
		return err
	case found:
		return nil
	}
	return refused
}

func (c *Client) createContainer(conn *zk.Conn, absolute string) (string, error) {
	if !c.withoutContainers.Load() {
		p, err := conn.CreateContainer(absolute, nil, zk.FlagContainer, c.opts.ACL)
		if !unimplemented(err) {
			return p, err
		}
		c.withoutContainers.Store(true)
	}
	return c.createPersistent(conn, absolute)
}

func (c *Client) createPersistent(conn *zk.Conn, absolute string) (string, error) {
	return conn.Create(absolute, nil, zk.FlagPersistent, c.opts.ACL)
}

const (
	// sequenceDigits is how many characters the server appends at least.
	sequenceDigits = 10
	// sequenceFirstNegative is the absolute value of the number that follows the largest one.
	sequenceFirstNegative = -math.MinInt32
)

// Sequence returns the number at the end of a sequential node's name, by which such nodes are ordered whatever their names
// begin with; -1 for a name without one. The server's counter has 32 bits with a sign and goes on below zero after the
// largest number: names from there ("lock--2147483648") count as the numbers that follow, so the order is that of creation.
// Such a name has to begin with something that ends in a dash, as those of all recipes here do.
func Sequence(name string) int64 {
	number := name[len(strings.TrimRight(name, "0123456789")):]
	if len(number) == sequenceDigits-1 && strings.HasSuffix(name, "-"+number) {
		return belowZero(number)
	}
	if len(number) < sequenceDigits {
		return -1
	}
	number = number[len(number)-sequenceDigits:]
	n, _ := strconv.ParseInt(number, 10, 64) // ten digits always are a number
	switch {
	case n > sequenceFirstNegative:
		return -1
	case n == sequenceFirstNegative, strings.HasSuffix(name, "--"+number):
		return belowZero(number)
	}
	return n
}

// belowZero returns what a number of the counter's negative half counts as.
func belowZero(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64)
	return 2*sequenceFirstNegative - n
}
