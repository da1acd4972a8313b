package znode

// snapshotLoader is the half of reading that builds the tree.
type snapshotLoader struct {
	t    *Tree
	acls map[int64]uint32 // positions by the snapshot's ids
	size int64            // of the snapshot as far as is known, 0 if not
	// branch are the ancestors of the last node, by level, and itself.
	branch  []Node
	touched uint64
}

// loadNodes takes over what the parser makes of the rest of the snapshot. The first error counts, by the place in the
// file, whichever half finds it.
func (l *snapshotLoader) loadNodes(p *snapshotParser, ahead Ahead) error {
	take, stop := ahead.start(snapshotSlots, p.fill)
	defer stop()
	for slot, ok := take(); ok; slot, ok = take() {
		if err := l.load(&p.batches[slot]); err != nil {
			return err
		}
	}
	return p.src.err
}

// load adds the nodes of one batch.
func (l *snapshotLoader) load(b *snapshotBatch) error {
	l.reserve(b)
	for rest := b.nodes; len(rest) > 0; {
		n, err := l.place(rest)
		if err != nil {
			return err
		}
		l.touch(rest[:n])
		for i := range rest[:n] {
			if err := l.insert(&rest[i]); err != nil {
				return err
			}
		}
		rest = rest[n:]
	}
	l.t.digest += b.digest
	return nil
}

// reserve has the child index grow at once to the size that all nodes will need, instead of step by step. What it goes by
// is a guess: the nodes so far are as long as those to come. It is never more than a small multiple of the nodes that
// there are, so that a wrong size of the file cannot make it take much memory.
func (l *snapshotLoader) reserve(b *snapshotBatch) {
	nodes := l.t.nodes.live + len(b.nodes)
	if l.size < b.end || b.end == 0 || nodes <= l.t.index.room() {
		return
	}
	guess := float64(nodes) * float64(l.size) / float64(b.end)
	l.t.index.reserve(&l.t.nodes, int(min(guess, float64(nodes*reserveFactorMax))))
}

// place finds the parents of nodes and gives them their ids. It returns how many it did: a node whose parent is not an
// ancestor of the one before has to wait until those before it are in the tree.
func (l *snapshotLoader) place(nodes []parsedNode) (int, error) {
	t := l.t
	for i := range nodes {
		n := &nodes[i]
		level := n.parent
		switch {
		case level == parentNone:
			n.id = rootNode
			l.branch = append(l.branch[:0], rootNode)
			continue
		case level >= 0:
			n.above = l.branch[level]
		case i > 0:
			return i, nil
		default:
			above, ok := t.Find(n.path[:n.nameAt-1])
			if !ok {
				return 0, n.orphan()
			}
			n.above, level = above, 0
		}
		n.hash = t.index.hash(n.above, n.name())
		n.id = t.nodes.alloc()
		l.branch = append(l.branch[:level+1], n.id)
	}
	return len(nodes), nil
}

// touch looks at the places in the child index where nodes will go. That is memory all over the heap. In a loop of their
// own the processor waits for many of these places at a time, and insert finds them in its cache.
func (l *snapshotLoader) touch(nodes []parsedNode) {
	x, sum := &l.t.index, uint64(0)
	for i := range nodes {
		sum += x.touch(nodes[i].hash)
	}
	l.touched += sum
}

// insert adds a node that has its place.
func (l *snapshotLoader) insert(p *parsedNode) error {
	t := l.t
	switch {
	case p.id == rootNode:
		if !p.broken {
			l.setRoot(p)
		}
		return nil
	case t.claim(p.hash, p.above, p.name(), p.id) != noNode:
		return snapshotError(p.offset, "node %q occurs twice", p.path)
	case p.broken:
		return nil // the error that says why follows
	}
	n := t.nodes.at(p.id)
	n.setStored(&p.st)
	n.parent, n.hash, n.acl, n.crc = p.above, p.hash, t.acls.loadNode(p.acl, l.acls), p.crc
	t.fillBlob(n, p.name(), p.data)
	t.enter(p.above, p.id, len(p.path)+len(p.data))
	return nil
}

// setRoot gives the root, which is there already, what the snapshot says of it.
func (l *snapshotLoader) setRoot(p *parsedNode) {
	t := l.t
	root := t.begin(rootNode, nil)
	t.replaceData(rootNode, nil, p.data)
	root.setStored(&p.st)
	root.acl = t.acls.loadNode(p.acl, l.acls)
	t.end(root, nil)
}
