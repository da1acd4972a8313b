package tools

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"zabra/internal/storage/vfs"
)

// CompareOptions are those of CompareSnapshots.
type CompareOptions struct {
	// Left and Right are the snapshots.
	Left, Right string
	// Bytes and Nodes are thresholds: a node is named if the data or the number of nodes at and below it differ by more.
	Bytes, Nodes int64
	// Debug tells of every comparison; Interactive asks before each step and reads from Answers.
	Debug, Interactive bool
	Answers            io.Reader
}

// treeNode is a node with what it and the nodes below it add up to. The root's path is empty here, as in ZooKeeper's tool.
type treeNode struct {
	path        string
	size, count int64 // bytes of data with its own, nodes without it
	children    []*treeNode
}

// treeInfo is a whole tree by depth.
type treeInfo struct {
	nodes  map[string]*treeNode
	layers [][]*treeNode // sorted by path
	size   int64
}

func newTreeInfo(s *snapshot) *treeInfo {
	t := &treeInfo{nodes: map[string]*treeNode{}}
	root := t.add(s, "", 0)
	t.size = root.size
	for _, layer := range t.layers {
		slices.SortFunc(layer, func(a, b *treeNode) int { return strings.Compare(a.path, b.path) })
	}
	return t
}

func (t *treeInfo) add(s *snapshot, path string, depth int) *treeNode {
	id, _ := s.tree.Find([]byte(path))
	n := &treeNode{path: path, size: int64(len(s.tree.Data(id)))}
	t.nodes[path] = n
	if depth == len(t.layers) {
		t.layers = append(t.layers, nil)
	}
	t.layers[depth] = append(t.layers[depth], n)
	for _, name := range s.children(id) {
		child := t.add(s, path+"/"+name, depth+1)
		n.children = append(n.children, child)
		n.size += child.size
		n.count += child.count + 1
	}
	return n
}

func (t *treeInfo) layer(depth int) []*treeNode {
	if depth >= len(t.layers) {
		return nil
	}
	return t.layers[depth]
}

func (t *treeInfo) print(p *printer) {
	p.printf("Node count: %d\nTotal size: %d\nMax depth: %d\n", len(t.nodes), t.size, len(t.layers))
	for depth, layer := range t.layers {
		p.printf("Count of nodes at depth %d: %d\n", depth, len(layer))
	}
	p.printf("\n")
}

// comparison is a run of CompareSnapshots.
type comparison struct {
	*printer
	opt         CompareOptions
	left, right *treeInfo
	answers     *bufio.Scanner
}

// CompareSnapshots prints which nodes of two snapshots differ in the amount of data or in the number of nodes at and below
// them, level by level, as ZooKeeper's SnapshotComparer does. It compares sizes, not content.
func CompareSnapshots(o Output, opt CompareOptions) (err error) {
	c := &comparison{printer: o.buffered(), opt: opt}
	defer func() { err = errors.Join(err, c.end()) }()
	if opt.Interactive {
		c.answers = bufio.NewScanner(opt.Answers)
	}
	if !o.JSON {
		c.printf("Successfully parsed options!\n")
	}
	if c.left, err = c.load(opt.Left); err != nil {
		return err
	}
	if c.right, err = c.load(opt.Right); err != nil {
		return err
	}
	if !o.JSON {
		c.left.print(c.printer)
		c.right.print(c.printer)
	}
	c.walk()
	return nil
}

func (c *comparison) load(file string) (*treeInfo, error) {
	began := time.Now()
	s, err := readSnapshot(vfs.OS{}, file)
	if err != nil {
		return nil, err
	}
	read := time.Since(began)
	began = time.Now()
	t := newTreeInfo(s)
	if !c.JSON {
		c.printf("Deserialized snapshot in %s in %f seconds\n", filepath.Base(file), read.Seconds())
		c.printf("Processed data tree in %f seconds\n", time.Since(began).Seconds())
	}
	return t, nil
}

// depths is how many levels there are to compare.
func (c *comparison) depths() int { return max(len(c.left.layers), len(c.right.layers)) }

func (c *comparison) walk() {
	if !c.opt.Interactive {
		c.thresholds()
	}
	for depth := 0; depth < c.depths(); {
		if !c.opt.Interactive {
			c.level(depth)
			depth++
			continue
		}
		step, ok := c.step(depth)
		if !ok {
			return // no more answers
		}
		depth += step
	}
	if !c.JSON {
		c.printf("All layers compared.\n")
	}
}

func (c *comparison) thresholds() {
	if !c.JSON {
		c.printf("Printing analysis for nodes difference larger than %d bytes or node count difference larger than %d.\n",
			c.opt.Bytes, c.opt.Nodes)
	}
}

func (c *comparison) level(depth int) {
	if !c.JSON {
		c.printf("Analysis for depth %d\n", depth)
	}
	c.lists(c.left.layer(depth), c.right.layer(depth))
}

// step asks what to show and shows it. The questions are, byte for byte, those of ZooKeeper's tool as it was recorded, and the
// tests compare them: programs that answer them wait for these lines. It returns by how many levels to go on, and false at the
// end of the input.
func (c *comparison) step(depth int) (int, bool) {
	c.printf("Current depth is %d\n", depth)
	c.printf("- Press enter to move to print current depth layer;\n- Type a number to jump to and print all nodes at a given depth;\n" +
		"- Enter an ABSOLUTE path to print the immediate subtree of a node. Path must start with '/'.\n")
	c.flush()
	if !c.answers.Scan() {
		return 0, false
	}
	answer := c.answers.Text()
	c.thresholds()
	number, err := strconv.Atoi(answer)
	deepest := c.depths() - 1
	switch {
	case answer == "":
		c.level(depth)
		c.printf("\n")
		return 1, true
	case strings.HasPrefix(answer, "/"):
		c.subtree(answer)
	case err != nil:
		c.printf("Input %s is not valid. Depth must be in range [0, %d]. Path must be an absolute path which starts with '/'.\n",
			answer, deepest)
	case number < 0 || number > deepest:
		c.printf("Depth must be in range [0, %d]\n", deepest)
		return 0, true
	default:
		c.level(number)
	}
	c.printf("\n")
	return 0, true
}

func (c *comparison) subtree(path string) {
	c.printf("Analysis for node %s\n", path)
	path = strings.TrimSuffix(path, "/")
	left, right := c.left.nodes[path], c.right.nodes[path]
	if left == nil && right == nil {
		c.printf("Path %s is neither found in left tree nor right tree.\n", path)
		return
	}
	c.lists(childrenOf(left), childrenOf(right))
}

func childrenOf(n *treeNode) []*treeNode {
	if n == nil {
		return nil
	}
	return n.children
}

// lists compares two lists that are sorted by path.
func (c *comparison) lists(left, right []*treeNode) {
	for len(left) > 0 || len(right) > 0 {
		order := 0
		switch {
		case len(left) == 0:
			order = 1
		case len(right) == 0:
			order = -1
		default:
			order = strings.Compare(left[0].path, right[0].path)
			c.debugf("Comparing %s to %s\n", left[0].path, right[0].path)
			c.debugf("%s\n", [...]string{"left is less", "same", "right is less"}[order+1])
		}
		switch order {
		case 0:
			c.both(left[0], right[0])
			left, right = left[1:], right[1:]
		case -1:
			c.one("left", left[0])
			left = left[1:]
		default:
			c.one("right", right[0])
			right = right[1:]
		}
	}
}

func (c *comparison) both(left, right *treeNode) {
	size, nodes := right.size-left.size, right.count-left.count
	switch {
	case !c.differs(size, nodes):
		c.filteredf("Filtered node %s of left size %d, right size %d\n", left.path, left.size, right.size)
	case c.JSON:
		c.object(map[string]any{"path": cmp.Or(left.path, "/"), "in": "both", "bytes": size, "nodes": nodes})
	default:
		c.printf("Node %s found in both trees. Delta: %d bytes, %d descendants\n", left.path, size, nodes)
	}
}

func (c *comparison) one(side string, n *treeNode) {
	switch {
	case !c.differs(n.size, n.count):
		c.filteredf("Filtered %s node %s of size %d\n", side, n.path, n.size)
	case c.JSON:
		c.object(map[string]any{"path": cmp.Or(n.path, "/"), "in": side, "bytes": n.size, "nodes": n.count})
	default:
		c.printf("Node %s found only in %s tree. Descendant size: %d. Descendant count: %d\n", n.path, side, n.size, n.count)
	}
}

func (c *comparison) differs(size, nodes int64) bool {
	return max(size, -size) > c.opt.Bytes || max(nodes, -nodes) > c.opt.Nodes
}

func (c *comparison) debugf(format string, args ...any) {
	if c.opt.Debug && !c.JSON {
		c.printf(format, args...)
	}
}

// filteredf tells of what is below the thresholds, when somebody wants to know.
func (c *comparison) filteredf(format string, args ...any) {
	if (c.opt.Debug || c.opt.Interactive) && !c.JSON {
		c.printf(format, args...)
	}
}

// Check refuses options that do not go together.
func (opt CompareOptions) Check(o Output) error {
	if opt.Left == "" || opt.Right == "" {
		return errors.New("Missing required options: l, r. Name the left and the right snapshot.")
	}
	if o.JSON && opt.Interactive {
		return errors.New("-i asks, and --json prints for programs: give one of them")
	}
	if opt.Bytes < 0 || opt.Nodes < 0 {
		return fmt.Errorf("the thresholds -b %d and -n %d must not be negative", opt.Bytes, opt.Nodes)
	}
	return nil
}
