package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"zabra/server/client"
	"zabra/wire"
)

func ls(c *call) error {
	path := c.args[0]
	watch := c.oldWatch("ls", "ls [-w] path")
	if c.flags.has("R") {
		return c.listAll(path)
	}
	var names []string
	var st wire.Stat
	read := func() error {
		return c.sess.do(c.ctx, path, func(zk *client.Client, inside string) (err error) {
			names, st, err = zk.GetChildren2(c.ctx, inside, watch)
			return err
		})
	}
	var err error
	if watch {
		err = c.sess.watch(watchChild, path, read)
	} else {
		err = read()
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, list(names))
	if c.flags.has("s") {
		printStat(c.out, &st)
	}
	return nil
}

// listAll prints the paths of a subtree. What cannot be read is told, and the rest is listed.
func (c *call) listAll(path string) error {
	trouble, tell := c.collect()
	_, err := c.sess.walk(c.ctx, path, walkOptions{trouble: tell, visit: func(level []*node) error {
		var text strings.Builder
		for _, n := range level {
			text.WriteString(n.path + "\n")
		}
		_, err := io.WriteString(c.out, text.String())
		return err
	}})
	return errors.Join(err, trouble())
}

// collect makes a function for walk that tells of every node that cannot be read, and one that says afterwards whether
// there was any.
func (c *call) collect() (result func() error, tell func(*opError) error) {
	count := 0
	result = func() error {
		if count > 0 {
			return errTold
		}
		return nil
	}
	return result, func(err *opError) error {
		count++
		printError(c.err, err)
		return nil
	}
}

// deleteAll removes a subtree, the leaves first. Each request removes a number of nodes or none of them.
func deleteAll(c *call) error {
	size := deleteBatchDefault
	if text, ok := c.flags.value("b"); ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return errors.New("-b argument must be an int value")
		}
		size = int(n)
	}
	path := c.args[0]
	top, err := c.sess.walk(c.ctx, path, walkOptions{})
	switch {
	case err != nil:
		return err
	case c.sess.inside(path) == "/":
		return &opError{path: path, err: wire.CodeBadArguments}
	case size < 1:
		return errors.New("-b argument must be greater than zero")
	}
	nodes := top.flatten()
	slices.Reverse(nodes)
	batches := slices.Collect(slices.Chunk(nodes, size))
	bar := c.bar("deleted", len(nodes))
	defer bar.end()
	failed := false
	err = c.sess.pipeline(c.ctx, len(batches), func(i int) (wire.Op, wire.Record) {
		ops := make([]wire.MultiOp, len(batches[i]))
		for k, n := range batches[i] {
			ops[k] = client.DeleteOp(c.sess.inside(n.path), -1)
		}
		return wire.OpMulti, client.MultiRequest(ops...)
	}, func(i int, answer *client.Call) error {
		bar.add(len(batches[i]))
		failed = failed || !multiOK(answer)
		return nil
	})
	if err == nil && failed {
		err = errors.New("Failed to delete some node(s) in the subtree!")
	}
	return err
}

// multiOK reports whether a multi was done.
func multiOK(answer *client.Call) bool { return multiError(answer) == nil }

// multiError returns what made a multi fail.
func multiError(answer *client.Call) error {
	if answer.Err != nil {
		return answer.Err
	}
	results, err := client.MultiResults(answer.Body)
	if err != nil {
		return err
	}
	for i, r := range results {
		if r.Op == wire.OpError && r.Err != wire.CodeOK && r.Err != wire.CodeRuntimeInconsistency {
			return &client.MultiError{Index: i, Code: r.Err}
		}
	}
	return nil
}
