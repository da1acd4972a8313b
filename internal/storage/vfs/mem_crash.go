package vfs

import (
	"bytes"
	"math/rand/v2"
	"path"
	"slices"
)

// CrashClone returns the file system as a power cut at this moment might leave it. What was synced is there. Each page
// written since shows its synced content, the newest one, or one in between; each file whose length changed has an old
// or a new length; each directory operation since the last SyncDir happened or did not. All choices come from rng.
// m goes on unchanged and shares nothing that changes with the clone.
func (m *Mem) CrashClone(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := map[string]*memNode{}
	for name, n := range m.mu.durable {
		entries[name] = n
	}
	for _, op := range m.mu.pending {
		if rng.IntN(2) == 0 {
			op.apply(entries)
		}
	}
	cp := newCopier(func(n *memNode) *memNode { return n.crash(rng) })
	c := NewMem()
	cp.entries(c.mu.entries, entries)
	cp.entries(c.mu.durable, entries)
	return c
}

// Clone returns the file system as the next process finds it after this one was killed: nothing is lost, but what was
// not synced is not durable in the clone either.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	cp := newCopier((*memNode).clone)
	c := NewMem()
	cp.entries(c.mu.entries, m.mu.entries)
	cp.entries(c.mu.durable, m.mu.durable)
	for _, op := range m.mu.pending {
		if op.node != nil {
			op.node = cp.node(op.node)
		}
		c.mu.pending = append(c.mu.pending, op)
	}
	return c
}

// copier copies trees of nodes, each node once, in an order that does not depend on maps.
type copier struct {
	copies   map[*memNode]*memNode
	copyNode func(*memNode) *memNode
}

func newCopier(copyNode func(*memNode) *memNode) *copier {
	return &copier{copies: map[*memNode]*memNode{}, copyNode: copyNode}
}

func (cp *copier) node(n *memNode) *memNode {
	if cp.copies[n] == nil {
		cp.copies[n] = cp.copyNode(n)
	}
	return cp.copies[n]
}

// entries copies from into to. What lies in a directory that is not there is left out.
func (cp *copier) entries(to, from map[string]*memNode) {
	names := make([]string, 0, len(from))
	for name := range from {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names { // a directory sorts before what is in it
		if p := to[path.Dir(name)]; p != nil && p.dir {
			to[name] = cp.node(from[name])
		}
	}
}

// crash returns a copy of n as the disk may hold it.
func (n *memNode) crash(rng *rand.Rand) *memNode {
	c := &memNode{dir: n.dir, pages: map[int64]*memPage{}, size: n.size}
	if n.size != n.durableSize || len(n.sizes) > 0 {
		outcomes := append([]int64{n.durableSize, n.size}, n.sizes...)
		c.size = outcomes[rng.IntN(len(outcomes))]
	}
	c.durableSize = c.size
	for _, page := range n.sortedPages() {
		content := n.pages[page].crash(rng)
		if content == nil || page*pageBytes >= c.size {
			continue
		}
		if rest := c.size - page*pageBytes; rest < pageBytes {
			content = bytes.Clone(content)
			clear(content[rest:])
		}
		c.pages[page] = &memPage{now: content, durable: content}
	}
	return c
}

// crash returns one of the contents that a crash may leave, nil for zeros. Synced content is never written again (touch
// copies it first), so it may be shared.
func (p *memPage) crash(rng *rand.Rand) []byte {
	if !p.dirty {
		return p.durable
	}
	switch pick := rng.IntN(4 + len(p.older)); {
	case pick < 2:
		return p.durable
	case pick < 4:
		return bytes.Clone(p.now)
	default:
		return p.older[pick-4]
	}
}

func (n *memNode) clone() *memNode {
	c := &memNode{dir: n.dir, pages: map[int64]*memPage{}, size: n.size, durableSize: n.durableSize,
		sizes: slices.Clone(n.sizes)}
	for page, p := range n.pages {
		cp := &memPage{now: bytes.Clone(p.now), durable: bytes.Clone(p.durable), dirty: p.dirty}
		for _, o := range p.older {
			cp.older = append(cp.older, bytes.Clone(o))
		}
		c.pages[page] = cp
	}
	return c
}

func (n *memNode) sortedPages() []int64 {
	pages := make([]int64, 0, len(n.pages))
	for page := range n.pages {
		pages = append(pages, page)
	}
	slices.Sort(pages)
	return pages
}
