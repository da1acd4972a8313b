package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"zabra/server/client"
	"zabra/wire"
)

// importedNode is a node of a file, with the path that it gets.
type importedNode struct {
	path   string
	data   []byte
	acl    []wire.ACL
	parent bool // the file has children of it
	exists bool
	keep   bool // it stays as it is
}

// readExport reads a whole export, to be put below root; with an empty root, where it came from.
func readExport(r io.Reader, root string) ([]*importedNode, error) {
	d := json.NewDecoder(bufio.NewReader(r))
	var head struct {
		exportHead
		Nodes []*exportNode `json:"nodes"`
	}
	if err := d.Decode(&head); err != nil {
		return nil, fmt.Errorf("not an export: %w", err)
	}
	if head.Format != exportFormat || head.Version != exportVersion {
		return nil, fmt.Errorf("not an export of version %d: format %q, version %d", exportVersion, head.Format, head.Version)
	}
	if root == "" {
		root = head.Root
	}
	if err := checkPath(root); err != nil {
		return nil, err
	}
	return placeNodes(head.Nodes, root)
}

// placeNodes checks the nodes of a file and gives them their paths.
func placeNodes(nodes []*exportNode, root string) ([]*importedNode, error) {
	known := map[string]*importedNode{}
	var out []*importedNode
	for i, n := range nodes {
		if n == nil {
			return nil, fmt.Errorf("node %d of the file is null", i)
		}
		path := root
		if n.Path != "" {
			path = strings.TrimSuffix(root, "/") + n.Path
		}
		if err := checkPath(path); err != nil {
			return nil, fmt.Errorf("node %q: %w", n.Path, err)
		}
		data, err := n.data()
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", n.Path, err)
		}
		acl, err := n.acl()
		if err != nil {
			return nil, err
		}
		parent := known[parentOf(path)]
		if known[path] != nil || i > 0 && parent == nil || i == 0 && n.Path != "" {
			return nil, fmt.Errorf("node %q: each node stands in a file once and behind its parent, the root first", n.Path)
		}
		if parent != nil {
			parent.parent = true
		}
		known[path] = &importedNode{path: path, data: data, acl: acl}
		out = append(out, known[path])
	}
	if len(out) == 0 {
		return nil, errors.New("the file has no nodes")
	}
	return out, nil
}

// importFile puts a subtree from a file into the tree.
func importFile(c *call) error {
	var in io.Reader = c.opt.Stdin
	if name := c.args[0]; name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	root := ""
	if len(c.args) > 1 {
		root = c.args[1]
	}
	nodes, err := readExport(in, root)
	if err != nil {
		return fmt.Errorf("%s: %w", c.args[0], err)
	}
	if err := c.findExisting(nodes); err != nil {
		return err
	}
	hold, err := c.holdingACL()
	if err != nil {
		return err
	}
	root = nodes[0].path
	nodes = slices.DeleteFunc(nodes, func(n *importedNode) bool { return n.keep })
	if err := c.createNodes(nodes, hold); err != nil {
		// What is there gets its own lists all the same, even after Ctrl-C.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), finishMax)
		defer cancel()
		c.ctx = ctx
		return errors.Join(err, c.finishACLs(nodes, true))
	}
	if err := c.finishACLs(nodes, false); err != nil {
		return err
	}
	overwritten := 0
	for _, n := range nodes {
		if n.exists {
			overwritten++
		}
	}
	fmt.Fprintf(c.err, "imported %d nodes below %s, %d of them existed\n", len(nodes), root, overwritten)
	return nil
}

// findExisting marks the nodes that exist, and refuses them unless they may be overwritten. The root of the tree exists
// always: it is no reason to refuse, and stays as it is.
func (c *call) findExisting(nodes []*importedNode) error {
	var found []string
	err := c.sess.pipeline(c.ctx, len(nodes), func(i int) (wire.Op, wire.Record) {
		return wire.OpExists, &wire.PathWatchRequest{Path: []byte(c.sess.inside(nodes[i].path))}
	}, func(i int, answer *client.Call) error {
		switch {
		case answer.Err == nil:
			nodes[i].exists = true
			if nodes[i].path == "/" {
				nodes[i].keep = !c.flags.has("force")
			} else {
				found = append(found, nodes[i].path)
			}
		case !errors.Is(answer.Err, wire.CodeNoNode):
			return &opError{path: nodes[i].path, err: answer.Err}
		}
		return nil
	})
	if err == nil && len(found) > 0 && !c.flags.has("force") {
		err = fmt.Errorf("%d of the nodes exist, %s first; nothing was imported, --force overwrites them", len(found), found[0])
	}
	return err
}

// holdingACL lets only this session's own address in. Parents have it while their children are made, because their own
// list may not let this session make any.
func (c *call) holdingACL() ([]wire.ACL, error) {
	zk, err := c.sess.connection(c.ctx, false)
	var who []wire.ClientInfo
	if err == nil {
		who, err = zk.WhoAmI(c.ctx)
	}
	if err != nil {
		return nil, &opError{err: err}
	}
	for _, w := range who {
		if w.Scheme == "ip" {
			return []wire.ACL{{Perms: wire.PermAll, Scheme: "ip", ID: w.User}}, nil
		}
	}
	return nil, nil
}

// held reports whether a node has another list than its own while the import runs.
func (n *importedNode) held() bool {
	return n.parent && !n.exists && !slices.ContainsFunc(n.acl, func(a wire.ACL) bool {
		return a.Scheme == "world" && a.ID == "anyone" && a.Perms&wire.PermCreate != 0
	})
}

// createNodes makes the nodes, or sets their data if they exist.
func (c *call) createNodes(nodes []*importedNode, hold []wire.ACL) error {
	bar := c.bar("nodes imported", len(nodes))
	defer bar.end()
	return c.sess.pipeline(c.ctx, len(nodes), func(i int) (wire.Op, wire.Record) {
		n := nodes[i]
		path := []byte(c.sess.inside(n.path))
		if n.exists {
			return wire.OpSetData, &wire.SetDataRequest{Path: path, Data: n.data, Version: -1}
		}
		acl := n.acl
		if n.held() && hold != nil {
			acl = hold
		}
		return wire.OpCreate, &wire.CreateRequest{Path: path, Data: n.data, ACL: acl, Flags: wire.FlagPersistent}
	}, func(i int, answer *client.Call) error {
		bar.add(1)
		if answer.Err != nil {
			return fmt.Errorf("%w\nthe import ended after %d of %d nodes", &opError{path: nodes[i].path, err: answer.Err}, i, len(nodes))
		}
		return nil
	})
}

// finishACLs sets the lists that could not be set before. After a failure some nodes may not exist.
func (c *call) finishACLs(nodes []*importedNode, failed bool) error {
	late := slices.DeleteFunc(slices.Clone(nodes), func(n *importedNode) bool { return !n.exists && !n.held() })
	return c.sess.pipeline(c.ctx, len(late), func(i int) (wire.Op, wire.Record) {
		return wire.OpSetACL, &wire.SetACLRequest{Path: []byte(c.sess.inside(late[i].path)), ACL: late[i].acl, Version: -1}
	}, func(i int, answer *client.Call) error {
		if answer.Err == nil || failed && errors.Is(answer.Err, wire.CodeNoNode) {
			return nil
		}
		return fmt.Errorf("access control lists from this node on are not set: %w", &opError{path: late[i].path, err: answer.Err})
	})
}
