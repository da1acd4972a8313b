package server

import (
	"sync"
	"sync/atomic"
)

// meter counts what the shell does. What concerns requests and data is counted by the replica.
type meter struct {
	// Since the start or the last srst.
	bytesIn            atomic.Int64
	words              atomic.Int64 // four-letter words received
	wordsAnswered      atomic.Int64
	rejected           atomic.Int64
	sessionlessExpired atomic.Int64
	closedNotServing   atomic.Int64
	unrecoverable      atomic.Int64
	snapshotErrors     atomic.Int64
	fsync              summary // ms
	batch              summary // transactions per sync
	snapshot           summary // ms
	deficit            summary // tokens

	// Fixed at the start.
	recoverMs int64
	replayed  int64

	wordRefused atomic.Bool // a word that is not enabled was told of
}

// reset is srst. The facts of the start stay.
func (m *meter) reset() {
	for _, n := range []*atomic.Int64{&m.bytesIn, &m.words, &m.wordsAnswered, &m.rejected, &m.sessionlessExpired, &m.closedNotServing,
		&m.unrecoverable, &m.snapshotErrors} {
		n.Store(0)
	}
	for _, s := range []*summary{&m.fsync, &m.batch, &m.snapshot, &m.deficit} {
		s.reset()
	}
}

// summary sums up a series of numbers.
type summary struct {
	mu sync.Mutex
	summed
}

type summed struct{ count, sum, min, max int64 }

func (s *summary) add(v int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == 0 || v < s.min {
		s.min = v
	}
	s.max = max(s.max, v)
	s.count++
	s.sum += v
}

func (s *summary) get() summed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.summed
}

func (s *summary) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summed = summed{}
}

// one is the summary of a single number.
func one(v int64) summed { return summed{1, v, v, v} }
