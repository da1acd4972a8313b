package znode

import (
	"cmp"
	"slices"
	"sync"
)

// registryShardCount is a power of two: every registration of a watch looks its watcher up.
const registryShardCount = 16

// watcherRegistry maps ids to attached watchers.
type watcherRegistry struct {
	mu     sync.Mutex // guards last
	last   WatcherID
	shards [registryShardCount]registryShard
}

type registryShard struct {
	mu       sync.RWMutex
	watchers map[WatcherID]*watcherState
}

func (r *watcherRegistry) shard(id WatcherID) *registryShard { return &r.shards[id%registryShardCount] }

// add gives watcher the next id. After four thousand million attachments the ids start over and those still in use are
// passed by.
func (r *watcherRegistry) add(watcher Watcher) WatcherID {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		r.last++
		if r.last == 0 || r.get(r.last) != nil {
			continue
		}
		sh := r.shard(r.last)
		sh.mu.Lock()
		defer sh.mu.Unlock()
		if sh.watchers == nil {
			sh.watchers = make(map[WatcherID]*watcherState)
		}
		sh.watchers[r.last] = &watcherState{id: r.last, w: watcher}
		return r.last
	}
}

func (r *watcherRegistry) get(id WatcherID) *watcherState {
	sh := r.shard(id)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.watchers[id]
}

// remove takes a watcher out and returns it, or nil if there is none with this id.
func (r *watcherRegistry) remove(id WatcherID) *watcherState {
	sh := r.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.watchers[id]
	delete(sh.watchers, id)
	if len(sh.watchers) == 0 {
		sh.watchers = nil
	}
	return s
}

// all returns the attached watchers in the order of their ids.
func (r *watcherRegistry) all() []*watcherState {
	var all []*watcherState
	for i := range r.shards {
		sh := &r.shards[i]
		sh.mu.RLock()
		for _, s := range sh.watchers {
			all = append(all, s)
		}
		sh.mu.RUnlock()
	}
	slices.SortFunc(all, func(a, b *watcherState) int { return cmp.Compare(a.id, b.id) })
	return all
}
