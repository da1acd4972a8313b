package storage

import (
	"math/bits"
	"sync"
	"time"
)

// syncBuckets is how many buckets the histogram of sync durations has: bucket i counts those below 2^i microseconds, the
// last one the rest (over half a minute).
const syncBuckets = 26

// Stats is what the store counted since it was opened.
type Stats struct {
	// Syncs counts the syncs of commits; SyncsSlow those that took Config.SyncWarn or longer.
	Syncs, SyncsSlow uint64
	// SyncTotal, SyncMax and SyncLast are durations of these syncs.
	SyncTotal, SyncMax, SyncLast time.Duration
	// SyncHistogram counts durations: index i those below 2^i microseconds that are in no bucket before.
	SyncHistogram [syncBuckets]uint64
	// Records and LogBytes count what was made durable in logs, without padding; LogFiles the logs that were begun.
	Records, LogBytes, LogFiles uint64
	// Snapshots counts those written.
	Snapshots uint64
}

// statsKeeper guards Stats.
type statsKeeper struct {
	mu struct {
		sync.Mutex
		Stats
		warn time.Duration
	}
}

func (k *statsKeeper) init(warn time.Duration) { k.mu.warn = warn }

// SetSyncWarn changes Config.SyncWarn while the store is in use; 0 is the default. Any goroutine may call it.
func (s *Store) SetSyncWarn(warn time.Duration) {
	if warn <= 0 {
		warn = syncWarnDefault
	}
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	s.stats.mu.warn = warn
}

// Stats returns the counters. Any goroutine may ask.
func (s *Store) Stats() Stats {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	return s.stats.mu.Stats
}

// ResetSlowSyncs sets SyncsSlow to zero, as the four-letter word srst wants.
func (s *Store) ResetSlowSyncs() { s.stats.add(func(st *Stats) { st.SyncsSlow = 0 }) }

func (k *statsKeeper) add(f func(*Stats)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(&k.mu.Stats)
}

func (k *statsKeeper) synced(d time.Duration) {
	bucket := min(bits.Len64(uint64(max(d.Microseconds(), 0))), syncBuckets-1)
	k.add(func(st *Stats) {
		st.Syncs++
		st.SyncTotal += d
		st.SyncMax = max(st.SyncMax, d)
		st.SyncLast = d
		st.SyncHistogram[bucket]++
		if d >= k.mu.warn {
			st.SyncsSlow++
		}
	})
}

// Sizes returns the bytes of all files in the two version-2 folders. When both are the same folder, so are the numbers.
func (s *Store) Sizes() (snapBytes, logBytes int64) {
	size := func(dir string) (sum int64) {
		names, err := s.fs.List(dir)
		if err != nil {
			return 0
		}
		for _, name := range names {
			if info, err := s.fs.Stat(dir + "/" + name); err == nil && !info.Dir {
				sum += info.Size
			}
		}
		return sum
	}
	snapBytes = size(s.snapDir)
	if s.logDir == s.snapDir {
		return snapBytes, snapBytes
	}
	return snapBytes, size(s.logDir)
}
