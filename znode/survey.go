package znode

// Survey looks at the nodes in a stretch of the tree's memory: at count places from the place from on, in no order that
// means anything. It returns the place to go on at, 0 at the end. The caller holds the read lock and gives it back
// between two stretches, so that nobody waits for the whole; a node that is created or deleted meanwhile is seen or not.
// Begin with 0.
func (t *Tree) Survey(from Node, count int, f func(id Node)) (next Node) {
	s := &t.nodes
	from = max(from, rootNode)
	for id := from; id != s.end; id++ {
		if int(id-from) == count {
			return id
		}
		if id == rootNode || s.at(id).parent != noNode { // one that was freed has no parent
			f(id)
		}
	}
	return noNode
}

// VisitWidths calls f for each watched path of a table with the number of its watchers, in no certain order. One shard is
// locked at a time, also while f is called, which must not call back.
func (w *Watches) VisitWidths(table WatchTable, f func(path string, watchers int)) {
	for i := range w.shards {
		sh := &w.shards[i]
		sh.mu.Lock()
		for path, wp := range sh.paths[table] { // order: the caller looks for the largest
			f(path, len(wp.refs)-int(wp.dead))
		}
		sh.mu.Unlock()
	}
}
