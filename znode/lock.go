package znode

import "sync"

// The order of locks in this package: the tree's lock first (its shards in ascending order), then those of the watch
// tables. Whoever holds one of the latter takes none of the former.

// shardedLock is a reader-writer lock whose readers do not meet on one counter: a reader takes one shard, a writer all.
type shardedLock struct {
	shards [lockShards]struct {
		sync.RWMutex
		_ [128 - 24]byte // a pair of cache lines each, as they are fetched together
	}
}

func (l *shardedLock) rlock(shard uint32)   { l.shards[shard%lockShards].RLock() }
func (l *shardedLock) runlock(shard uint32) { l.shards[shard%lockShards].RUnlock() }

func (l *shardedLock) lock() {
	for i := range l.shards {
		l.shards[i].Lock()
	}
}

func (l *shardedLock) unlock() {
	for i := range l.shards {
		l.shards[i].Unlock()
	}
}

// RLock keeps changes out until RUnlock of the same shard. Any number serves as a shard; callers that run beside each
// other should use different ones.
func (t *Tree) RLock(shard uint32) { t.lock.rlock(shard) }

// RUnlock ends what RLock began.
func (t *Tree) RUnlock(shard uint32) { t.lock.runlock(shard) }

// Lock keeps all readers out until Unlock. Changes need it, unless nobody else knows the tree yet. The one goroutine
// that changes the tree may read without a lock.
func (t *Tree) Lock() { t.lock.lock() }

// Unlock ends what Lock began.
func (t *Tree) Unlock() { t.lock.unlock() }
