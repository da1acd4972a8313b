package tools

import (
	"errors"
	"fmt"
	"strings"

	"zabra/internal/storage/vfs"
)

// subtree is what Summarize tells of a node: how many nodes are below it, and how many bytes of data it and they have.
type subtree struct {
	path     string
	depth    int
	children int
	data     int64
}

// Summarize prints for every node that has children how many nodes are below it and how much data, down to depth levels
// below the node start (0: all levels), as ZooKeeper's SnapshotRecursiveSummary does; siblings come by name.
func Summarize(o Output, file, start string, depth int) (err error) {
	s, err := readSnapshot(vfs.OS{}, file)
	if err != nil {
		return err
	}
	if _, ok := s.tree.Find([]byte(start)); !ok {
		return fmt.Errorf("the snapshot has no node %s", start)
	}
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	var found []*subtree
	s.sum(start, 0, depth, &found)
	for _, t := range found {
		if o.JSON {
			p.object(map[string]any{"path": t.path, "depth": t.depth, "children": t.children, "data": t.data})
			continue
		}
		mark := strings.Repeat("--", t.depth)
		p.printf("%s %s\n%s   children: %d\n%s   data: %d\n", mark, t.path, mark, t.children, mark, t.data)
	}
	if !o.JSON {
		p.printf("\n")
	}
	return nil
}

// sum adds up a subtree and notes those of its nodes that are to be printed, in the order of printing.
func (s *snapshot) sum(path string, depth, depthMax int, found *[]*subtree) *subtree {
	n, ok := s.tree.Find([]byte(path))
	if !ok {
		return &subtree{}
	}
	t := &subtree{path: path, depth: depth, data: int64(len(s.tree.Data(n)))}
	children := s.children(n)
	if (len(children) > 0 || depth == 0) && (depthMax == 0 || depth <= depthMax) {
		*found = append(*found, t)
	}
	for _, name := range children {
		below := s.sum(strings.TrimSuffix(path, "/")+"/"+name, depth+1, depthMax, found)
		t.children += below.children + 1
		t.data += below.data
	}
	return t
}
