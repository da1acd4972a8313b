package server

import (
	"sync"
	"sync/atomic"

	"zabra/internal/histogram"
)

// meter counts what the shell does. What concerns requests and data is counted by the replica.
//
// Counters are never set back: srst notes how far they are (see since), because Prometheus is not to see it.
type meter struct {
	bytesIn            atomic.Int64
	rejected           atomic.Int64
	dropped            atomic.Int64 // connections that the other side has ended
	sessionlessExpired atomic.Int64
	closedNotServing   atomic.Int64
	unrecoverable      atomic.Int64
	logged             atomic.Int64 // transactions that were made durable

	// Snapshots: those that were asked for too soon after another, and the same for restores.
	snapshotErrors, restoreErrors           atomic.Int64
	snapshotRateLimited, restoreRateLimited atomic.Int64

	// Security. authFailed counts certificates, auth requests and logins that were refused, those of other servers
	// included, unsuccessfulHandshake TLS handshakes that failed, tlsHandshakeExceeded those that were refused because too many were going on, insecureAdmin plain requests to
	// the admin server, nonMTLSLocal and nonMTLSRemote plain connections of clients from this machine and from others.
	authFailed, unsuccessfulHandshake, tlsHandshakeExceeded atomic.Int64
	insecureAdmin, nonMTLSLocal, nonMTLSRemote              atomic.Int64
	// outstandingTLSHandshakes is how many TLS handshakes are going on.
	outstandingTLSHandshakes atomic.Int64

	fsync, snapshot, restore histogram.Histogram // ms
	fsyncUs                  histogram.Histogram // microseconds
	batch                    histogram.Histogram // transactions per sync
	deficit                  histogram.Histogram // tokens that the throttle of sessions lacked
	log                      logMeter
	fired                    firedMeter

	// Since the start or the last srst: parts of gauges.
	words         atomic.Int64 // four-letter words received
	wordsAnswered atomic.Int64

	// Fixed at the start.
	recoverMs      int64
	snapshotLoadMs int64
	replayMs       int64
	replayed       int64

	// wordRefused is set once a four-letter word was refused because it is not enabled; that is told once.
	wordRefused atomic.Bool

	since baseline
}

// reset is srst. The facts of the start stay.
func (m *meter) reset() {
	m.words.Store(0)
	m.wordsAnswered.Store(0)
	for _, h := range []*histogram.Histogram{&m.fsync, &m.snapshot, &m.restore, &m.fsyncUs, &m.batch, &m.deficit} {
		h.Reset()
	}
	m.log.reset()
	m.fired.reset()
}

// baseline is how far the counters were at the last srst.
type baseline struct {
	mu     sync.Mutex
	values map[counterKey]int64
}

// counterKey names a counter.
type counterKey struct{ name, label string }

// of returns what a counter has counted since the last srst.
func (b *baseline) of(name, label string, total int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return total - b.values[counterKey{name, label}]
}

// set notes a new baseline.
func (b *baseline) set(values map[counterKey]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.values = values
}
