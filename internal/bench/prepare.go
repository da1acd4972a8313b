package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"zabra/jute"
	"zabra/wire"
)

// prepare makes what the workload needs and waits until every server knows it.
func (r *run) prepare(ctx context.Context) error {
	c, err := r.dialControl(ctx, 0)
	if err != nil {
		return err
	}
	defer c.close()
	if err := r.prepareNodes(c); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	for i := range r.Servers {
		if err := r.level(ctx, i); err != nil {
			return fmt.Errorf("waiting for %s to be level with the others: %w", r.Servers[i], err)
		}
	}
	return nil
}

// level waits until a server knows all that was written before.
func (r *run) level(ctx context.Context, server int) error {
	c, err := r.dialControl(ctx, server)
	if err != nil {
		return err
	}
	defer c.close()
	code, _, err := c.call(wire.OpSync, &wire.PathRequest{Path: []byte(r.Root)})
	if err == nil {
		err = code.Err()
	}
	return err
}

func (r *run) prepareNodes(c *control) error {
	for i := range r.Root {
		if i > 0 && r.Root[i] == '/' {
			if err := r.folder(c, r.Root[:i]); err != nil {
				return err
			}
		}
	}
	if err := r.folder(c, r.Root); err != nil {
		return err
	}
	switch r.Workload {
	case Get, Set, Exists, Mixed, Multi:
		return r.numberedNodes(c, r.Root+nodesDir, r.Nodes)
	case Children:
		return r.listedFolders(c)
	case Create:
		return r.plainFolders(c, r.dir(), r.Sessions)
	case Fill:
		return r.plainFolders(c, r.Root+fillDir, (r.Nodes+foldersNodes-1)/foldersNodes)
	case Lock:
		return r.folder(c, r.dir())
	case Watch:
		if err := r.folder(c, r.dir()); err != nil {
			return err
		}
		return r.numberedNodes(c, r.dir(), r.Watches)
	}
	return nil
}

// folder makes one node, unless it is there, and remembers what this run has made.
func (r *run) folder(c *control, path string) error {
	return r.nodes(c, 1, nil, func(int) string { return path })
}

// plainFolders makes a folder with n numbered folders.
func (r *run) plainFolders(c *control, dir string, n int) error {
	if err := r.folder(c, dir); err != nil {
		return err
	}
	return r.nodes(c, n, nil, func(i int) string { return fmt.Sprintf("%s/%0*d", dir, numberDigits, i) })
}

// numberedNodes makes a folder with n numbered nodes that have data.
func (r *run) numberedNodes(c *control, dir string, n int) error {
	if err := r.folder(c, dir); err != nil {
		return err
	}
	return r.nodes(c, n, r.data, func(i int) string { return fmt.Sprintf("%s/%0*d", dir, numberDigits, i) })
}

// listedFolders makes the folders that Children lists. They may be there with other children, from a run that has kept
// them: those would make other answers, so they go.
func (r *run) listedFolders(c *control) error {
	dir := r.Root + foldersDir
	if err := removeTree(c, dir); err != nil {
		return err
	}
	if err := r.plainFolders(c, dir, r.folders()); err != nil {
		return err
	}
	per := r.ChildrenPerNode
	return r.nodes(c, r.folders()*per, nil, func(i int) string {
		return fmt.Sprintf("%s/%0*d/%0*d", dir, numberDigits, i/per, numberDigits, i%per)
	})
}

// nodes makes n nodes. Those that exist get the data.
func (r *run) nodes(c *control, n int, data []byte, path func(i int) string) error {
	var exist []int
	err := c.all(n, func(i int) (wire.Op, wire.Record) {
		return wire.OpCreate, &wire.CreateRequest{Path: []byte(path(i)), Data: data, ACL: wire.OpenACL}
	}, func(i int, code wire.Code) error {
		switch code {
		case wire.CodeOK:
			r.made = append(r.made, path(i))
		case wire.CodeNodeExists:
			exist = append(exist, i)
		default:
			return fmt.Errorf("create %s: %w", path(i), code)
		}
		return nil
	})
	if err != nil || data == nil {
		return err
	}
	return c.all(len(exist), func(i int) (wire.Op, wire.Record) {
		return wire.OpSetData, &wire.SetDataRequest{Path: []byte(path(exist[i])), Data: data, Version: -1}
	}, func(i int, code wire.Code) error {
		if code != wire.CodeOK {
			return fmt.Errorf("set %s: %w", path(exist[i]), code)
		}
		return nil
	})
}

// tidy removes what the run has made. Nodes that somebody else has put below stay, with those above them.
func (r *run) tidy(ctx context.Context) error {
	if r.Keep || len(r.made) == 0 || r.Workload == Fill {
		return nil
	}
	c, err := r.dialAny(ctx)
	if err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	defer c.close()
	// What a workload creates itself is not in the list, but all below a node of the run alone.
	if slices.Contains(r.made, r.dir()) {
		if err := removeTree(c, r.dir()); err != nil {
			return fmt.Errorf("cleaning up: %w", err)
		}
	}
	slices.Reverse(r.made) // what is below goes first
	if err := removeAll(c, r.made, func(string) {}); err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	return nil
}

// dialAny opens a session on the first server that gives one: a run may have outlived some.
func (r *run) dialAny(ctx context.Context) (*control, error) {
	var errs []error
	for i := range r.addrs {
		c, err := r.dialControl(ctx, i)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// removeTree removes a node with all that is below it. That it is not there is fine.
func removeTree(c *control, path string) error {
	children, err := childrenOf(c, path)
	if err != nil {
		return err
	}
	// Nearly all are leaves: who is not tells by its answer.
	var inner []string
	if err := removeAll(c, children, func(path string) { inner = append(inner, path) }); err != nil {
		return err
	}
	for _, child := range inner {
		if err := removeTree(c, child); err != nil {
			return err
		}
	}
	return removeAll(c, []string{path}, func(string) {})
}

// removeAll removes nodes; those that have children are handed over.
func removeAll(c *control, paths []string, notEmpty func(path string)) error {
	return c.all(len(paths), func(i int) (wire.Op, wire.Record) {
		return wire.OpDelete, &wire.PathVersionRequest{Path: []byte(paths[i]), Version: -1}
	}, func(i int, code wire.Code) error {
		switch code {
		case wire.CodeOK, wire.CodeNoNode:
		case wire.CodeNotEmpty:
			notEmpty(paths[i])
		default:
			return fmt.Errorf("delete %s: %w", paths[i], code)
		}
		return nil
	})
}

func childrenOf(c *control, path string) ([]string, error) {
	code, body, err := c.call(wire.OpGetChildren, &wire.PathWatchRequest{Path: []byte(path)})
	if err != nil {
		return nil, err
	}
	if code != wire.CodeOK && code != wire.CodeNoNode {
		return nil, fmt.Errorf("children of %s: %w", path, code)
	}
	if code == wire.CodeNoNode {
		return nil, nil
	}
	var reply wire.ChildrenReply
	d := jute.NewDecoder(body, len(body))
	if reply.Decode(&d); d.Err() != nil {
		return nil, fmt.Errorf("children of %s: %w", path, d.Err())
	}
	paths := make([]string, len(reply.Children))
	for i, name := range reply.Children {
		paths[i] = path + "/" + string(name)
	}
	return paths, nil
}
