package cache

import (
	"time"

	"zabra/recipes"
)

// Node is a copy of one node. All methods may be called from any goroutine, and go on answering after Close.
type Node struct{ *mirror }

// NewNode begins to follow the node at path, which need not exist. It returns at once; Ready waits.
func NewNode(c *recipes.Client, path string, o Options) (*Node, error) {
	m, err := start(c, path, 0, false, o)
	if err != nil {
		return nil, err
	}
	return &Node{m}, nil
}

// Get returns the node, or false if it does not exist (or is not known yet).
func (n *Node) Get() (Entry, bool) { return n.get(n.root.path) }

// Children is a copy of the children of one node, without the node itself.
type Children struct{ *mirror }

// NewChildren begins to follow the children of the node at path, which need not exist. It returns at once; Ready waits.
func NewChildren(c *recipes.Client, path string, o Options) (*Children, error) {
	m, err := start(c, path, 1, true, o)
	if err != nil {
		return nil, err
	}
	return &Children{m}, nil
}

// Get returns the child of that name, or false if there is none.
func (c *Children) Get(name string) (Entry, bool) { return c.get(join(c.root.path, name)) }

// List returns all children as they are known at this moment, by name. The slice is the caller's.
func (c *Children) List() []Entry {
	list, _ := c.children(c.root.path)
	return list
}

// Tree is a copy of a node and all that is below it, or as far down as Options.DepthMax.
type Tree struct{ *mirror }

// NewTree begins to follow the node at path, which need not exist, and all below. It returns at once; Ready waits.
func NewTree(c *recipes.Client, path string, o Options) (*Tree, error) {
	depthMax := -1
	if o.DepthMax > 0 {
		depthMax = o.DepthMax
	}
	m, err := start(c, path, depthMax, false, o)
	if err != nil {
		return nil, err
	}
	return &Tree{m}, nil
}

// Get returns the node at path, or false if it does not exist or is not held.
func (t *Tree) Get(path string) (Entry, bool) { return t.get(path) }

// Children returns the children of the node at path as they are known at this moment, by name, or false if that node
// itself does not exist or is not held. The slice is the caller's.
func (t *Tree) Children(path string) ([]Entry, bool) { return t.children(path) }

// All returns all nodes as they are known at this moment: each node before its children, and those by name. The slice is
// the caller's.
func (t *Tree) All() (all []Entry) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var walk func(*node)
	walk = func(n *node) {
		if n.present {
			all = append(all, n.entry)
		}
		for _, kid := range n.sortedKids() {
			walk(kid)
		}
	}
	walk(t.root)
	return all
}

func (m *mirror) get(path string) (Entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := m.byPath[path]
	if n == nil || !n.present || n.silent {
		return Entry{}, false
	}
	return n.entry, true
}

func (m *mirror) children(path string) ([]Entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := m.byPath[path]
	if n == nil || !n.present {
		return nil, false
	}
	list := make([]Entry, 0, len(n.kids))
	for _, kid := range n.sortedKids() {
		if kid.present {
			list = append(list, kid.entry)
		}
	}
	return list, true
}

// Size returns the number of nodes that are held, and the bytes of their paths and data.
func (m *mirror) Size() (nodes int, bytes int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.shown, m.bytes
}

// AsOf returns the last moment at which the contents were in step with the server, and the highest zxid that they show.
// As long as the connection stands and nothing is left to read, that is now. The time is zero before the first fill is
// complete. See the package comment for what a dead connection means that nobody has noticed yet.
func (m *mirror) AsOf() (time.Time, int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.inStep {
		return time.Now(), m.zxid
	}
	return m.asOf, m.zxid
}

// Age returns how long ago the contents were in step with the server; 0 if they are. It returns false before the first
// fill is complete.
func (m *mirror) Age() (time.Duration, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.inStep:
		return 0, true
	case m.asOf.IsZero():
		return 0, false
	default:
		return time.Since(m.asOf), true
	}
}

// Err returns why the cache has stopped, if it has: ErrClosed, or ErrTooLarge with the bound and the path. Otherwise it
// returns the error of a node that the server refuses to show, if there is one.
func (m *mirror) Err() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.err != nil {
		return m.err
	}
	for _, err := range m.faults {
		return err
	}
	return nil
}

// Done is closed when the cache does not follow the server any more; Err says why.
func (m *mirror) Done() <-chan struct{} { return m.follow.Done() }
