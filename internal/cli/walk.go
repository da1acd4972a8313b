package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"zabra/server/client"
	"zabra/wire"
)

// node is a node of a subtree that was walked.
type node struct {
	path     string
	stat     wire.Stat
	children []*node
	// gone is whether the node was removed after its parent had been read.
	gone bool
}

// pipeline sends n requests, several of them on their way at a time, and hands the answers to take in order. It ends with
// the first error of take; an answer that is an error of the server is for take to judge.
func (s *session) pipeline(ctx context.Context, n int, request func(i int) (wire.Op, wire.Record), take func(i int, answer *client.Call) error) error {
	zk, err := s.connection(ctx, false)
	if err != nil {
		return &opError{err: err}
	}
	flight := make([]*client.Call, 0, inFlightMax)
	sent := 0
	for done := range n {
		for ; sent < n && len(flight) < inFlightMax; sent++ {
			flight = append(flight, zk.Go(request(sent)))
		}
		first := flight[0]
		flight = slices.Delete(flight, 0, 1)
		if err := first.Wait(ctx); ctx.Err() != nil || errors.Is(err, wire.CodeConnectionLoss) {
			return &opError{err: err}
		}
		if err := take(done, first); err != nil {
			return err
		}
	}
	return nil
}

// walkOptions say what happens on a walk. All of them may be left out.
type walkOptions struct {
	// visit gets each level, sorted by parent and name.
	visit func(level []*node) error
	// trouble gets the nodes whose children cannot be read. Without it, or if it returns an error, the walk ends there.
	trouble func(*opError) error
	// skip leaves out a node and what is below it.
	skip func(path string) bool
	// depth is how many levels below root are visited; 0 for all.
	depth int
}

// walk visits root and everything below it, level by level. The subtree stays in memory, without the data. A node that is
// removed meanwhile is left out.
func (s *session) walk(ctx context.Context, root string, opt walkOptions) (*node, error) {
	if err := checkPath(root); err != nil {
		return nil, err
	}
	top, count := &node{path: root}, 0
	level := []*node{top}
	for depth := 0; len(level) > 0 && (opt.depth == 0 || depth <= opt.depth); depth++ {
		if count += len(level); count > treeNodesMax {
			return nil, fmt.Errorf("%s has more than %d nodes below it, walk a smaller subtree", root, treeNodesMax)
		}
		alive, err := s.readLevel(ctx, top, level, opt.trouble)
		if err != nil {
			return nil, err
		}
		if opt.visit != nil {
			if err := opt.visit(alive); err != nil {
				return nil, err
			}
		}
		level = nil
		for _, n := range alive {
			if opt.skip != nil {
				n.children = slices.DeleteFunc(n.children, func(child *node) bool { return opt.skip(child.path) })
			}
			level = append(level, n.children...)
		}
	}
	return top, nil
}

// readLevel asks for the children of each node and returns the nodes that exist.
func (s *session) readLevel(ctx context.Context, root *node, level []*node, trouble func(*opError) error) ([]*node, error) {
	alive := make([]*node, 0, len(level))
	request := func(i int) (wire.Op, wire.Record) {
		return wire.OpGetChildren2, &wire.PathWatchRequest{Path: []byte(s.inside(level[i].path))}
	}
	err := s.pipeline(ctx, len(level), request, func(i int, answer *client.Call) error {
		n := level[i]
		var reply wire.Children2Reply
		err := answer.Err
		if err == nil {
			err = answer.Decode(&reply)
		}
		switch {
		case errors.Is(err, wire.CodeNoNode) && n != root: // removed since its parent was read
			n.gone = true
			return nil
		case err != nil && trouble != nil && !errors.Is(err, wire.CodeNoNode):
			alive = append(alive, n)
			return trouble(&opError{path: n.path, err: err})
		case err != nil:
			return &opError{path: n.path, err: err}
		}
		n.stat = reply.Stat
		n.children = make([]*node, len(reply.Children))
		for i, name := range reply.Children {
			n.children[i] = &node{path: join(n.path, string(name))}
		}
		slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.path, b.path) })
		alive = append(alive, n)
		return nil
	})
	return alive, err
}

// flatten lists a subtree without the nodes that are gone, parents before children.
func (n *node) flatten() []*node {
	all := []*node{n}
	for i := 0; i < len(all); i++ {
		for _, child := range all[i].children {
			if !child.gone {
				all = append(all, child)
			}
		}
	}
	return all
}
