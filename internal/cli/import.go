package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

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
	// refused is whether the server would not create it or set its data.
	refused bool
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
	sent, err := c.createNodes(nodes, hold)
	left := c.finishACLs(nodes[:sent], finishMax)
	if left != nil && c.ctx.Err() != nil {
		printError(c.err, left) // of a command that was interrupted nothing else is told
	}
	if err := errors.Join(err, left); err != nil {
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
// list may not let this session make any. It is nil if the server does not tell the address.
func (c *call) holdingACL() ([]wire.ACL, error) {
	zk, err := c.sess.connection(c.ctx, false)
	var who []wire.ClientInfo
	if err == nil {
		who, err = zk.WhoAmI(c.ctx)
	}
	if errors.Is(err, wire.CodeUnimplemented) { // servers before 3.7, which close the connection behind the answer
		err = c.sess.answers(c.ctx)
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

// createNodes makes the nodes, or sets their data if they exist. It returns how many of them a server may have heard of.
func (c *call) createNodes(nodes []*importedNode, hold []wire.ACL) (sent int, err error) {
	bar := c.bar("nodes imported", len(nodes))
	defer bar.end()
	done := 0
	err = c.sess.pipeline(c.ctx, len(nodes), func(i int) (wire.Op, wire.Record) {
		sent = i + 1
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
		if answer.Err != nil {
			nodes[i].refused = true
			return &opError{path: nodes[i].path, err: answer.Err}
		}
		done++
		bar.add(1)
		return nil
	})
	if err != nil {
		err = fmt.Errorf("%w\nthe import ended after %d of %d nodes", err, done, len(nodes))
	}
	return sent, err
}

// finishACLs gives the nodes those lists that they could not have before, however the import went: after Ctrl-C as well,
// and after a connection loss as soon as there is a server again, which is waited for as long as waitMax. What one node
// refuses does not keep the others from theirs. The last nodes get them first: what is left undone in the end are the first
// ones of the file, so that another import comes to them before it comes to one that has its list and may refuse.
func (c *call) finishACLs(nodes []*importedNode, waitMax time.Duration) error {
	late := slices.DeleteFunc(slices.Clone(nodes), func(n *importedNode) bool { return n.refused || !n.exists && !n.held() })
	slices.Reverse(late)
	bar := c.bar("access control lists set", len(late))
	defer bar.end()
	var without []*importedNode
	var cause error
	refused := func(n *importedNode, err error) {
		without = append(without, n)
		cause = cmp.Or(cause, err)
	}
	for len(late) > 0 {
		n, err := c.setLists(late[:min(len(late), finishLists)], waitMax, refused)
		bar.add(n)
		late = late[n:]
		if n == 0 {
			refused(late[0], &opError{err: err})
			without = append(without, late[1:]...)
			break
		}
	}
	if len(without) == 0 {
		return nil
	}
	again := "--force with the same file and path"
	if c.args[0] != "-" {
		again = "--force " + strings.Join(c.args, " ")
	}
	first := without[len(without)-1]
	return fmt.Errorf("%d nodes do not have their own access control lists, %s first: %w\n"+
		"parents among them may be open to this client's address only: import %s sets them", len(without), first.path, cause, again)
}

// setLists sets lists until all are answered, or the connection is lost behind the first, and returns how many were. It is
// none only if there is no server to be had for so long, or not with this session.
func (c *call) setLists(nodes []*importedNode, waitMax time.Duration, refused func(*importedNode, error)) (done int, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), waitMax)
	defer cancel()
	for {
		_, err := c.sess.connection(ctx, false)
		if errors.Is(err, wire.CodeConnectionLoss) && ctx.Err() == nil {
			fmt.Fprintf(c.err, "waiting up to %v for a server, to set the access control lists of nodes that were imported\n", waitMax)
			_, err = c.sess.connection(ctx, true)
		}
		if err == nil {
			err = c.sess.pipeline(ctx, len(nodes), func(i int) (wire.Op, wire.Record) {
				return wire.OpSetACL, &wire.SetACLRequest{Path: []byte(c.sess.inside(nodes[i].path)), ACL: nodes[i].acl, Version: -1}
			}, func(i int, answer *client.Call) error {
				done++
				if err := answer.Err; err != nil && !errors.Is(err, wire.CodeNoNode) { // it may never have been made
					refused(nodes[i], &opError{path: nodes[i].path, err: err})
				}
				return nil
			})
		}
		if err == nil || done > 0 || !errors.Is(err, wire.CodeConnectionLoss) || ctx.Err() != nil {
			return done, err
		}
		sleep(ctx, reconnectPauseMin)
	}
}
