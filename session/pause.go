package session

import "sort"

// pauseMinMs is the shortest gap, in milliseconds, that can count as a pause. Anything below is the scheduler's jitter.
const pauseMinMs = 50

// pauses remembers when this server itself stood still: a stopped process, a frozen virtual machine, an overloaded host.
// While it stood still it heard nobody, so that silence must not end a session.
//
// A pause is noticed by a gap between two calls of Advance that is longer than the rhythm asked for. How long? Clients
// make themselves heard at least every third of their timeout T, as every known client library does. So a client that
// was heard up to the beginning of a pause has been silent for at most T/3 plus the pause; a pause of up to 2T/3 cannot
// end its session and may pass unnoticed. With T at its usual minimum of two ticks that is 4/3 of a tick, and the
// rhythm, one call per tick, leaves a third of a tick for jitter. Where shorter timeouts are allowed, the shortest one
// counts instead.
//
// The rule for a session that was last heard before a pause: it gets its whole timeout again from the end of the first
// such pause. During further pauses, until it is heard, its clock only stands still. So a living client always has a
// full timeout to come back after the server did, and a dead one is gone after at most twice its timeout of waking time,
// even if the server stumbles again and again.
//
// The rule is a function of the time a session was last heard and of this list; no session is visited for a pause.
type pauses struct {
	list    []pause
	totalMs int64 // sum of all pauses there ever were

	tickMs     int64
	shortestMs int64 // of the timeouts ever seen
	longestMs  int64
	rhythmMs   int64 // Advance is to be called at least this often
	pauseMs    int64 // a longer gap is a pause
}

type pause struct {
	endMs   int64
	totalMs int64 // value of pauses.totalMs at the end of this pause
}

func newPauses(tickMs int64) pauses {
	p := pauses{tickMs: tickMs, shortestMs: 2 * tickMs}
	p.tune()
	return p
}

// noteTimeout takes a session's timeout into account.
func (p *pauses) noteTimeout(ms int64) {
	p.longestMs = max(p.longestMs, ms)
	if ms > 0 && ms < p.shortestMs {
		p.shortestMs = ms
		p.tune()
	}
}

func (p *pauses) tune() {
	p.rhythmMs = max(p.shortestMs/2, pauseMinMs/2)
	p.pauseMs = max(p.shortestMs*2/3, pauseMinMs)
}

// advance is told about two successive calls of Advance.
func (p *pauses) advance(beforeMs, nowMs int64) {
	gap := nowMs - beforeMs
	if gap > p.pauseMs {
		// What the rhythm allows is waking time, so that there is some even if every gap is a pause.
		p.totalMs += gap - p.rhythmMs
		p.list = append(p.list, pause{endMs: nowMs, totalMs: p.totalMs})
	}
	p.forget(nowMs)
}

// forget drops the pauses before which no session that still lives can have been heard last.
func (p *pauses) forget(nowMs int64) {
	n := 0
	for n < len(p.list) && p.awakeSince(p.list[n], nowMs) > 2*(p.longestMs+p.tickMs) {
		n++
	}
	if n > 0 {
		p.list = append(p.list[:0], p.list[n:]...)
	}
}

// awakeSince returns for how long the server has been awake since a pause.
func (p *pauses) awakeSince(since pause, nowMs int64) int64 {
	return nowMs - since.endMs - (p.totalMs - since.totalMs)
}

// heard returns the time at which a session that was last heard at lastMs counts as last heard.
func (p *pauses) heard(lastMs int64) int64 {
	if n := len(p.list); n == 0 || p.list[n-1].endMs <= lastMs {
		return lastMs
	}
	first := p.list[sort.Search(len(p.list), func(i int) bool { return p.list[i].endMs > lastMs })]
	return first.endMs + p.totalMs - first.totalMs
}
