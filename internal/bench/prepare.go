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
	if err := r.claim(c); err != nil {
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
		return r.marked(c, r.dir())
	case Watch:
		return r.numberedNodes(c, r.dir(), r.Watches)
	}
	return nil
}

// mark is the data of every node that this package makes directly below the root, and so tells them from the nodes of
// others.
const mark = "made by zabra bench"

// claim makes the root. One that exists is taken only if it is empty, or if all that stands in it carries the mark: then
// it is from fill, from a run that kept its nodes or could not remove them, or from one that is under way. In any other,
// nodes of the workload could be somebody's.
func (r *run) claim(c *control) error {
	made := len(r.made)
	if err := r.marked(c, r.Root); err != nil || len(r.made) > made {
		return err
	}
	children, err := childrenOf(c, r.Root)
	if err != nil {
		return err
	}
	for _, child := range children {
		ours, err := isMarked(c, child)
		if err != nil {
			return err
		}
		if !ours {
			return fmt.Errorf("%s is not from zabra bench, nothing was changed: choose a --root that does not exist, or is empty", child)
		}
	}
	return nil
}

// isMarked tells whether a node carries the mark. One that was removed meanwhile is nobody's.
func isMarked(c *control, path string) (bool, error) {
	code, body, err := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: []byte(path)})
	switch {
	case err != nil:
		return false, err
	case code == wire.CodeNoNode:
		return true, nil
	case code == wire.CodeNoAuth: // who made it has locked others out, as this package never does
		return false, nil
	case code != wire.CodeOK:
		return false, fmt.Errorf("data of %s: %w", path, code)
	}
	var reply wire.DataReply
	d := jute.NewDecoder(body, len(body))
	if reply.Decode(&d); d.Err() != nil {
		return false, fmt.Errorf("data of %s: %w", path, d.Err())
	}
	return string(reply.Data) == mark, nil
}

// folder makes one node, unless it is there, and remembers what this run has made.
func (r *run) folder(c *control, path string) error {
	_, err := r.create(c, 1, nil, func(int) string { return path })
	return err
}

// marked is folder for a node that carries the mark.
func (r *run) marked(c *control, path string) error {
	_, err := r.create(c, 1, []byte(mark), func(int) string { return path })
	return err
}

// plainFolders makes a marked node with n numbered folders.
func (r *run) plainFolders(c *control, dir string, n int) error {
	if err := r.marked(c, dir); err != nil {
		return err
	}
	_, err := r.create(c, n, nil, func(i int) string { return fmt.Sprintf("%s/%0*d", dir, numberDigits, i) })
	return err
}

// numberedNodes makes a marked node with n numbered ones that have data.
func (r *run) numberedNodes(c *control, dir string, n int) error {
	if err := r.marked(c, dir); err != nil {
		return err
	}
	return r.nodes(c, n, func(i int) string { return fmt.Sprintf("%s/%0*d", dir, numberDigits, i) })
}

// listedFolders makes the folders that Children lists. They are this run's alone: those of another may have other names.
func (r *run) listedFolders(c *control) error {
	if err := r.plainFolders(c, r.dir(), r.folders()); err != nil {
		return err
	}
	per := r.ChildrenPerNode
	_, err := r.create(c, r.folders()*per, nil, func(i int) string {
		return fmt.Sprintf("%s/%0*d/%0*d", r.dir(), numberDigits, i/per, numberDigits, i%per)
	})
	return err
}

// nodes makes n nodes with the data of the run. Those that an earlier run has left get the data, too.
func (r *run) nodes(c *control, n int, path func(i int) string) error {
	exist, err := r.create(c, n, r.data, path)
	if err != nil {
		return err
	}
	return c.all(len(exist), func(i int) (wire.Op, wire.Record) {
		return wire.OpSetData, &wire.SetDataRequest{Path: []byte(path(exist[i])), Data: r.data, Version: -1}
	}, func(i int, code wire.Code) error {
		if code != wire.CodeOK {
			return fmt.Errorf("set %s: %w", path(exist[i]), code)
		}
		return nil
	})
}

// create makes n nodes and remembers them. It returns which of them exist already.
func (r *run) create(c *control, n int, data []byte, path func(i int) string) (exist []int, err error) {
	err = c.all(n, func(i int) (wire.Op, wire.Record) {
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
	return exist, err
}

// tidy removes what the run has made. Nodes that somebody else has put below stay, with those above them.
func (r *run) tidy(ctx context.Context) error {
	if r.Keep || len(r.made) == 0 || r.Workload == Fill {
		return nil
	}
	if err := r.removeMade(ctx); err != nil {
		return fmt.Errorf("nodes of this run stay below %s, remove them with zabra cli deleteall: cleaning up: %w", r.Root, err)
	}
	return nil
}

func (r *run) removeMade(ctx context.Context) error {
	c, err := r.dialAny(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	// What a workload creates itself is not in the list, but all below a node of the run alone.
	if slices.Contains(r.made, r.dir()) {
		if err := removeTree(c, r.dir()); err != nil {
			return err
		}
	}
	slices.Reverse(r.made) // what is below goes first
	return removeAll(c, r.made, func(string) {})
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
