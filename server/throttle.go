package server

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"zabra/conf"
	"zabra/server/replica"
)

// throttleOf is what the replica has to know of the limits of an overloaded server.
func throttleOf(cfg *conf.Config) replica.Throttle {
	t := &cfg.Throttle
	out := replica.Throttle{
		RequestsMax: t.RequestsMax, DropStale: t.DropStale, StaleByConnection: t.StaleByConnection, StaleByLatency: t.StaleByLatency,
		OpWaitMs: int64(t.OpWaitMs), LargeBytesMax: t.LargeRequestsBytesMax,
	}
	if t.LargeRequestBytes >= 0 {
		out.LargeAboveBytes = max(t.LargeRequestBytes, 1)
	}
	return out
}

// limitsOf are the limits of a running replica.
func limitsOf(cfg *conf.Config) replica.Limits {
	return replica.Limits{OutstandingMax: cfg.GlobalOutstandingLimit, EnforceQuota: cfg.EnforceQuota, Throttle: throttleOf(cfg)}
}

// sessionThrottle is the bucket that requests for a session, new or to be taken up again, get their tokens from. While it is
// empty they are refused. Since clients who are refused come again, it may also refuse some at random, the more the longer it
// stays empty, which spreads them.
type sessionThrottle struct {
	dropped atomic.Int64

	mu struct {
		sync.Mutex
		rules  conf.SessionThrottle
		tokens int
		// filledMs and adjustedMs are when tokens were added and the probability was adjusted, monotonic.
		filledMs, adjustedMs int64
		// probability is that of a refusal at random.
		probability float64
	}
}

// configure takes up new rules. A bucket that is new, or larger than before, is full.
func (t *sessionThrottle) configure(nowMs int64, rules conf.SessionThrottle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rules.Tokens > t.mu.rules.Tokens {
		t.mu.tokens, t.mu.filledMs, t.mu.adjustedMs = rules.Tokens, nowMs, nowMs
	}
	t.mu.tokens = min(t.mu.tokens, rules.Tokens)
	if rules.Tokens == 0 || rules.FreezeMs < 0 {
		t.mu.probability = 0
	}
	t.mu.rules = rules
}

// take asks for a session's tokens. chance is between 0 and 1, drawn anew for each call. missing is what a full bucket would
// have had more.
func (t *sessionThrottle) take(nowMs int64, renewal bool, chance float64) (missing int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rules := &t.mu.rules
	if rules.Tokens == 0 {
		return 0, true
	}
	if steps := (nowMs - t.mu.filledMs) / int64(rules.FillMs); steps > 0 {
		added := min(steps, int64(rules.Tokens)) * int64(rules.FillCount)
		t.mu.tokens = int(min(int64(t.mu.tokens)+added, int64(rules.Tokens)))
		t.mu.filledMs += steps * int64(rules.FillMs)
	}
	missing = rules.Tokens - t.mu.tokens
	if rules.FreezeMs >= 0 {
		t.adjustLocked(nowMs, missing)
	}
	price := 1
	switch {
	case rules.Weighted && renewal:
		price = rules.RenewalWeight
	case rules.Weighted:
		price = rules.GlobalWeight
	}
	if chance < t.mu.probability || price > t.mu.tokens {
		t.dropped.Add(1)
		return missing, false
	}
	t.mu.tokens -= price
	return missing, true
}

// adjustLocked moves the probability of a refusal, at most once in FreezeMs: up while the bucket is empty, down while it is
// about full.
func (t *sessionThrottle) adjustLocked(nowMs int64, missing int) {
	rules := &t.mu.rules
	if nowMs-t.mu.adjustedMs < int64(rules.FreezeMs) {
		return
	}
	t.mu.adjustedMs = nowMs
	switch {
	case missing == rules.Tokens:
		t.mu.probability = min(t.mu.probability+rules.DropIncrease, 1)
	case float64(missing) <= math.Round(float64(rules.Tokens)*rules.DecreaseRatio):
		t.mu.probability = max(t.mu.probability-rules.DropDecrease, 0)
	}
}

// dropProbability is the gauge of that name.
func (t *sessionThrottle) dropProbability() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.probability
}

// errSessionThrottled ends a connection whose session is one too many.
var errSessionThrottled = errors.New("more sessions are asked for than connection_throttle_tokens allows; the connection is closed, " +
	"and the client will come again. If that goes on, raise connection_throttle_tokens or connection_throttle_fill_count, or add servers")

// Where a request for a session has the id of the one that it wants to take up again.
const (
	connectIDOffset = 16
	connectIDBytes  = 8
)

// admitSession lets a request for a session in, or not.
func (c *conn) admitSession(frame []byte) error {
	if c.s.live.Load().Throttle.Sessions.Tokens == 0 {
		return nil
	}
	renewal := len(frame) >= connectIDOffset+connectIDBytes && binary.BigEndian.Uint64(frame[connectIDOffset:]) != 0
	missing, ok := c.s.sessions.take(c.s.clock.now().MonoMs, renewal, rand.Float64())
	c.s.meter.deficit.Add(int64(missing))
	if ok {
		return nil
	}
	c.s.meter.rejected.Add(1)
	return errSessionThrottled
}

// largeError ends a connection whose request does not fit into the budget of large ones.
type largeError struct{ bytes, max int }

func (e *largeError) Error() string { return replica.LargeRequestsReason }

// reserveLarge makes sure, as soon as the length of a frame is known, that there is room for it in the budget of large requests.
// Who has no session yet has nothing of that budget: it would be the strangers' to use up.
func (c *conn) reserveLarge() error {
	if c.large > 0 || !c.greeted || c.s.live.Load().Throttle.LargeRequestBytes < 0 {
		return nil
	}
	n := c.in.announced()
	reserved, ok := c.s.replica.ReserveLarge(n)
	if !ok {
		return &largeError{bytes: n, max: c.s.live.Load().Throttle.LargeRequestsBytesMax}
	}
	c.large = reserved
	return nil
}

// releaseLarge gives back what reserveLarge has taken: the frame is complete, and the replica counts it, or it never will be.
func (c *conn) releaseLarge() {
	if c.large > 0 {
		c.s.replica.ReleaseLarge(c.large)
		c.large = 0
	}
}

// refuseThrottled describes refusals of this file; ok is false for any other.
func refuseThrottled(f *refusal, err error) (ok bool) {
	var large *largeError
	switch {
	case errors.As(err, &large):
		f.kind, f.bytes, f.limit, f.why = "large request", large.bytes, large.max, large.Error()
	case errors.Is(err, errSessionThrottled):
		f.kind, f.why = "session throttle", err.Error()
	default:
		return false
	}
	return true
}
