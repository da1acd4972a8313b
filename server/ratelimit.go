package server

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"zabra/server/admin"
)

// rateLimit lets one call pass in a time. The first one always does.
type rateLimit struct {
	mu     sync.Mutex
	passed bool
	lastMs int64 // monotonic
}

// wait returns how long a call at nowMs has to wait until intervalMs have gone by since the last one that passed: 0 lets it
// pass.
func (l *rateLimit) wait(nowMs, intervalMs int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.lastMs + intervalMs - nowMs; l.passed && left > 0 {
		return left
	}
	l.passed, l.lastMs = true, nowMs
	return 0
}

// limited refuses a call that comes too soon after the last one (admin.rateLimiterIntervalInMS), and counts it.
func (s *Server) limited(l *rateLimit, refused *atomic.Int64) *admin.Response {
	const msPerSecond = 1000
	left := l.wait(s.clock.now().MonoMs, int64(s.cfg.Admin.RateLimitMs))
	if left == 0 {
		return nil
	}
	refused.Add(1)
	seconds := (left + msPerSecond - 1) / msPerSecond
	return &admin.Response{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {strconv.FormatInt(seconds, 10)}}}
}
