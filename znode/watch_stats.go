package znode

import (
	"cmp"
	"fmt"
	"slices"
)

// Counts returns how many watchers watch how many paths with how many watches in the data table. Child watches are not
// among them: these are the numbers of the wchs command.
func (w *Watches) Counts() (connections, paths, watches int) {
	c := &w.counts[TableData]
	return int(c.connections.Load()), int(c.paths.Load()), int(c.watches.Load())
}

// Total returns the number of watches in both tables, the metric watch_count. A persistent watch counts twice, as it
// stands in both.
func (w *Watches) Total() int {
	return int(w.counts[TableData].watches.Load() + w.counts[TableChild].watches.Load())
}

// VisitByPath calls f for each path of the data table, in the order of the paths, with those who watch it, in the order
// of their ids, until f returns false. It works on a copy, made shard by shard, and is meant for people, not for
// programs.
func (w *Watches) VisitByPath(f func(path string, watchers []Watcher) bool) {
	type watched struct {
		path string
		ids  []WatcherID
	}
	var all []watched
	for i := range w.shards {
		sh := &w.shards[i]
		sh.mu.Lock()
		for path, wp := range sh.paths[TableData] { // order: sorted below
			e := watched{path: path}
			for _, ref := range wp.refs {
				if ref.modes != 0 {
					e.ids = append(e.ids, ref.id)
				}
			}
			all = append(all, e)
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b watched) int { return cmp.Compare(a.path, b.path) })
	for _, e := range all {
		var watchers []Watcher
		for _, id := range e.ids {
			if s := w.registry.get(id); s != nil {
				watchers = append(watchers, s.w)
			}
		}
		if len(watchers) > 0 && !f(e.path, watchers) {
			return
		}
	}
}

// VisitByWatcher calls f for each watcher with a watch in the data table, in the order of the ids, with the paths that it
// watches, in their order, until f returns false.
func (w *Watches) VisitByWatcher(f func(watcher Watcher, paths []string) bool) {
	for _, s := range w.registry.all() {
		s.mu.Lock()
		paths := make([]string, 0, len(s.watched[TableData]))
		for wp := range s.watched[TableData] {
			paths = append(paths, wp.path)
		}
		s.mu.Unlock()
		slices.Sort(paths)
		if len(paths) > 0 && !f(s.w, paths) {
			return
		}
	}
}

// Check verifies that the tables, the watchers' own sets and the counters agree. It must not run beside changes.
func (w *Watches) Check() error {
	var paths, watches, recursive, known, connections [watchTables]int
	for i := range w.shards {
		for table, m := range w.shards[i].paths {
			for path, wp := range m { // order: any broken path is enough
				alive, rec, err := w.checkPath(WatchTable(table), wp)
				if err != nil {
					return fmt.Errorf("watched path %q, table %d: %w", path, table, err)
				}
				if wp.path != path || w.shard(hashString(path)) != &w.shards[i] {
					return fmt.Errorf("watched path %q is stored under %q or in the wrong shard", wp.path, path)
				}
				paths[table]++
				watches[table] += alive
				recursive[table] += rec
			}
		}
	}
	for _, s := range w.registry.all() {
		for table := range s.watched {
			known[table] += len(s.watched[table])
			if len(s.watched[table]) > 0 {
				connections[table]++
			}
		}
	}
	for table := range w.counts {
		c := &w.counts[table]
		got := [...]int{known[table], int(c.watches.Load()), int(c.paths.Load()), int(c.connections.Load())}
		want := [...]int{watches[table], watches[table], paths[table], connections[table]}
		if got != want {
			return fmt.Errorf("table %d: known, watches, paths, connections are %v, should be %v", table, got, want)
		}
	}
	if n := w.recursive.Load(); int(n) != recursive[TableData] || recursive[TableChild] != 0 {
		return fmt.Errorf("recursive watches: counted %d, found %v", n, recursive)
	}
	return nil
}

func (w *Watches) checkPath(table WatchTable, wp *watchedPath) (alive, recursive int, err error) {
	for i, ref := range wp.refs {
		if i > 0 && wp.refs[i-1].id >= ref.id {
			return 0, 0, fmt.Errorf("ref %d of %v is out of order", i, wp.refs)
		}
		if ref.modes == 0 {
			continue
		}
		alive++
		if ref.modes&WatchRecursive != 0 {
			recursive++
		}
		s := w.registry.get(ref.id)
		if s == nil {
			return 0, 0, fmt.Errorf("watcher %d is not attached", ref.id)
		}
		if _, ok := s.watched[table][wp]; !ok {
			return 0, 0, fmt.Errorf("watcher %d does not know of its watch", ref.id)
		}
	}
	if alive == 0 || alive+int(wp.dead) != len(wp.refs) {
		return 0, 0, fmt.Errorf("%d alive and %d dead of %d refs", alive, wp.dead, len(wp.refs))
	}
	return alive, recursive, nil
}
