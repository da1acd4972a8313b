package znode

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"zabra/wire"
)

// WatcherID names an attached Watcher. 0 is never one.
type WatcherID uint32

// WatchMode says how long a watch lives and what it reaches. A watcher may have several modes at one path.
type WatchMode uint8

const (
	// WatchStandard is gone with the first event at its path.
	WatchStandard WatchMode = 1 << iota
	// WatchPersistent stays until it is removed.
	WatchPersistent
	// WatchRecursive stays until it is removed and also reaches the data events of everything below its path.
	WatchRecursive
)

// WatchTable is one of the two tables in which a path can be watched.
type WatchTable uint8

const (
	// TableData holds watches for creation, deletion and change of a node itself.
	TableData WatchTable = iota
	// TableChild holds watches for creation and deletion of a node's children, and for its own deletion.
	TableChild

	watchTables = 2
)

// The kinds of watches that checkWatches and removeWatches ask for.
const (
	WatchTypeChildren   = 1
	WatchTypeData       = 2
	WatchTypeAny        = 3
	WatchTypePersistent = 4
	WatchTypeRecursive  = 5
)

// watchShardCount is a power of two. Watches are set by the goroutines of all connections at once.
const watchShardCount = 64

// Watches holds who watches which path. Watches belong to connections and are keyed by the exact text of the path, so a
// path need not exist, nor be valid, to be watched.
//
// Attach, Detach, Add, Has, Remove and the queries are safe from any goroutine. NodeCreated, NodeDeleted and
// NodeDataChanged belong to the one goroutine that applies transactions. A read that sets a watch must do both under the
// tree's read lock, otherwise a change may slip in between.
//
// Lock order: a path's shard, then the registry's or a watcher's lock. No lock is held while a Watcher is notified.
type Watches struct {
	shards   [watchShardCount]watchShard
	registry watcherRegistry
	// recursive counts the watches with mode WatchRecursive: while it is 0, a change need not look at the ancestors.
	recursive atomic.Int64
	counts    [watchTables]watchCounts
	onFire    func(typ wire.EventType, watchers int) // see Config.Fired

	// reached and others hold the watchers of a trigger while it runs, and are kept for the next.
	reached, others []recipient
}

type watchCounts struct{ connections, paths, watches atomic.Int64 }

type watchShard struct {
	mu    sync.Mutex
	paths [watchTables]map[string]*watchedPath
}

// watchedPath is a path with at least one watch in one table. Watches on the same path cost 8 bytes each here and one
// map slot of 8 bytes in the watcher's own set.
type watchedPath struct {
	path string
	// refs are ordered by id, which is the order in which events go out. Removed ones stay, without modes, until they are
	// the majority: thousands of connections that watch one path may go at once.
	refs []watchRef
	dead uint32
}

type watchRef struct {
	id    WatcherID
	modes WatchMode
}

// watcherState is what is known of an attached watcher.
type watcherState struct {
	id WatcherID
	w  Watcher

	mu       sync.Mutex
	detached bool
	// watched has exactly the paths where the watcher has a live ref; it is iterated only to forget them all.
	watched [watchTables]map[*watchedPath]struct{}
	// peak is how large the set was since it was made. A set that becomes empty is kept for the next watch, as most clients
	// set a watch again when it fired, unless it is a large one.
	peak [watchTables]int
}

// watchedKeptMax is the largest set that is kept when it becomes empty.
const watchedKeptMax = 64

type recipient struct {
	id    WatcherID
	state *watcherState
}

// NewWatches returns tables without watches.
func NewWatches() *Watches { return &Watches{} }

// Attach registers a watcher. Ids ascend with the order of attachment; events go out in the order of ids.
func (w *Watches) Attach(watcher Watcher) WatcherID {
	return w.registry.add(watcher)
}

// Detach forgets a watcher and all its watches. Detaching twice does nothing.
func (w *Watches) Detach(id WatcherID) {
	s := w.registry.remove(id)
	if s == nil {
		return
	}
	s.mu.Lock()
	s.detached = true
	watched := s.watched
	s.watched = [watchTables]map[*watchedPath]struct{}{}
	s.mu.Unlock()
	for table := range watched {
		if len(watched[table]) > 0 {
			w.counts[table].connections.Add(-1)
		}
		for wp := range watched[table] { // order: all of them are forgotten
			sh := w.shard(hashString(wp.path))
			sh.mu.Lock()
			if i, ok := wp.find(id); ok {
				w.clearModes(sh, WatchTable(table), wp, i, wp.refs[i].modes)
			}
			sh.mu.Unlock()
		}
	}
}

// Add sets a watch for a watcher. Setting it again changes nothing; further modes are added to those that the watcher has
// at the path. A watcher that is detached gets none.
func (w *Watches) Add(id WatcherID, table WatchTable, path []byte, mode WatchMode) {
	s := w.registry.get(id)
	if s == nil {
		return
	}
	sh := w.shard(hashBytes(path))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	wp := sh.paths[table][string(path)]
	if wp == nil {
		wp = &watchedPath{path: string(path)}
	}
	i, found := wp.find(id)
	if !found || wp.refs[i].modes == 0 {
		if !w.remember(s, table, wp) {
			return
		}
		w.counts[table].watches.Add(1)
	}
	switch {
	case !found:
		wp.refs = slices.Insert(wp.refs, i, watchRef{id: id})
	case wp.refs[i].modes == 0:
		wp.dead--
	}
	if mode&^wp.refs[i].modes&WatchRecursive != 0 {
		w.recursive.Add(1)
	}
	wp.refs[i].modes |= mode
	if len(wp.refs) == 1 && !found {
		if sh.paths[table] == nil {
			sh.paths[table] = make(map[string]*watchedPath)
		}
		sh.paths[table][wp.path] = wp
		w.counts[table].paths.Add(1)
	}
}

// AddWatch sets what an addWatch request asks for: a persistent watch in both tables, or a recursive one, which needs
// only the data table.
func (w *Watches) AddWatch(id WatcherID, path []byte, recursive bool) {
	if recursive {
		w.Add(id, TableData, path, WatchRecursive)
		return
	}
	w.Add(id, TableChild, path, WatchPersistent)
	w.Add(id, TableData, path, WatchPersistent)
}

// Has answers checkWatches: whether the watcher has a watch of the given type (WatchTypeChildren to
// WatchTypeRecursive) at exactly this path.
func (w *Watches) Has(id WatcherID, path []byte, typ int32) bool {
	sh := w.shard(hashBytes(path))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.has(id, path, typ)
}

func (sh *watchShard) has(id WatcherID, path []byte, typ int32) bool {
	data, child := sh.modes(TableData, path, id), sh.modes(TableChild, path, id)
	switch typ {
	case WatchTypeChildren:
		return child&WatchStandard != 0
	case WatchTypeData:
		return data&WatchStandard != 0
	case WatchTypeAny:
		return data|child != 0
	case WatchTypePersistent:
		return data&WatchPersistent != 0
	case WatchTypeRecursive:
		return data&WatchRecursive != 0
	}
	return false
}

// Remove answers removeWatches: it takes the watches of the given type away from the watcher at exactly this path and
// reports whether there were any. Nobody is notified.
func (w *Watches) Remove(id WatcherID, path []byte, typ int32) bool {
	sh := w.shard(hashBytes(path))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !sh.has(id, path, typ) {
		return false
	}
	var gone [watchTables]WatchMode
	switch typ {
	case WatchTypeChildren:
		gone[TableChild] = WatchStandard
	case WatchTypeData:
		gone[TableData] = WatchStandard
	case WatchTypeAny:
		all := WatchStandard | WatchPersistent | WatchRecursive
		gone[TableData], gone[TableChild] = all, all
	case WatchTypePersistent:
		gone[TableData], gone[TableChild] = WatchPersistent, WatchPersistent
	case WatchTypeRecursive:
		gone[TableData] = WatchRecursive
	}
	for table, modes := range gone {
		wp := sh.paths[table][string(path)]
		if wp == nil {
			continue
		}
		if i, ok := wp.find(id); ok {
			w.clearModes(sh, WatchTable(table), wp, i, modes)
		}
	}
	return true
}

// modes returns the modes of a watcher's watches at a path; 0 for none.
func (sh *watchShard) modes(table WatchTable, path []byte, id WatcherID) WatchMode {
	wp := sh.paths[table][string(path)]
	if wp == nil {
		return 0
	}
	if i, ok := wp.find(id); ok {
		return wp.refs[i].modes
	}
	return 0
}

// find returns where the ref of id is, dead or alive, or where it would have to be.
func (wp *watchedPath) find(id WatcherID) (int, bool) {
	if n := len(wp.refs); n == 0 || wp.refs[n-1].id < id {
		return n, false
	}
	return slices.BinarySearchFunc(wp.refs, id, func(r watchRef, id WatcherID) int { return cmp.Compare(r.id, id) })
}

// clearModes takes modes away from the ref at position i of wp, and the ref and wp itself if nothing is left of them.
// The caller holds the shard's lock.
func (w *Watches) clearModes(sh *watchShard, table WatchTable, wp *watchedPath, i int, modes WatchMode) {
	ref := &wp.refs[i]
	if ref.modes&modes == 0 {
		return
	}
	if ref.modes&modes&WatchRecursive != 0 {
		w.recursive.Add(-1)
	}
	if ref.modes &^= modes; ref.modes != 0 {
		return
	}
	w.forget(ref.id, table, wp)
	wp.dead++
	w.counts[table].watches.Add(-1)
	w.shrink(sh, table, wp)
}

// shrink drops dead refs when they are the majority, and the path when nobody watches it any more.
func (w *Watches) shrink(sh *watchShard, table WatchTable, wp *watchedPath) {
	if int(wp.dead) == len(wp.refs) {
		delete(sh.paths[table], wp.path)
		if len(sh.paths[table]) == 0 {
			sh.paths[table] = nil // a Go map never gives memory back otherwise
		}
		wp.refs, wp.dead = nil, 0
		w.counts[table].paths.Add(-1)
		return
	}
	if int(wp.dead) <= len(wp.refs)/2 {
		return
	}
	alive := make([]watchRef, 0, len(wp.refs)-int(wp.dead))
	for _, r := range wp.refs {
		if r.modes != 0 {
			alive = append(alive, r)
		}
	}
	wp.refs, wp.dead = alive, 0
}

// remember notes in the watcher's own set that it watches wp. It reports false if the watcher was detached meanwhile.
func (w *Watches) remember(s *watcherState, table WatchTable, wp *watchedPath) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.detached {
		return false
	}
	if s.watched[table] == nil {
		s.watched[table] = make(map[*watchedPath]struct{})
		s.peak[table] = 0
	}
	s.watched[table][wp] = struct{}{}
	n := len(s.watched[table])
	if n == 1 {
		w.counts[table].connections.Add(1)
	}
	s.peak[table] = max(s.peak[table], n)
	return true
}

// forget is the reverse of remember. For a watcher that Detach is clearing there is nothing left to do.
func (w *Watches) forget(id WatcherID, table WatchTable, wp *watchedPath) {
	s := w.registry.get(id)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.detached {
		return
	}
	delete(s.watched[table], wp)
	if len(s.watched[table]) > 0 {
		return
	}
	w.counts[table].connections.Add(-1)
	if s.peak[table] > watchedKeptMax {
		s.watched[table] = nil // a Go map never gives memory back otherwise
	}
}

func (w *Watches) shard(hash uint32) *watchShard { return &w.shards[hash%watchShardCount] }

// The hash of a path is FNV-1a: it can be continued from a path to those below it.
const (
	hashSeed  uint32 = 2166136261
	hashPrime uint32 = 16777619
)

func hashBytes(path []byte) uint32 { return hashMore(hashSeed, path) }

func hashMore(h uint32, b []byte) uint32 {
	for _, c := range b {
		h = (h ^ uint32(c)) * hashPrime
	}
	return h
}

func hashString(path string) uint32 {
	h := hashSeed
	for i := 0; i < len(path); i++ {
		h = (h ^ uint32(path[i])) * hashPrime
	}
	return h
}
