package lab

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// count is what one row counts: it stands from the moment before something happens until everybody waits again.
type count struct {
	l      *line
	before reading
	waited []*member
	all    []*member // these, the holder and the lab's own client
	began  time.Time
}

// begin marks how far everything is.
func (l *line) begin(ctx context.Context) *count {
	c := &count{l: l, waited: slices.Clone(l.waiting), all: append(slices.Clone(l.waiting), l.holder, l.lab)}
	c.before = l.cfg.Meter.look(ctx)
	for _, m := range c.all {
		m.setMark()
	}
	c.began = time.Now()
	return c
}

// end makes the row and shows it. The lab's own requests are none of the row's; those of useful, the winner and the one who
// released, are not futile.
func (c *count) end(ctx context.Context, row Row, useful ...*member) {
	meter := c.l.cfg.Meter
	after := meter.look(ctx)
	row.Waiters = len(c.waited)
	for _, m := range c.waited {
		if counts, _ := m.since(); counts.events > 0 {
			row.WakeUps++
		}
	}
	pings := int64(0)
	for _, m := range c.all {
		counts, _ := m.since()
		pings += counts.pings
	}
	if n, known := meter.notified(c.before, after); known {
		row.Notifications = &n
	}
	if n, known := meter.requests(c.before, after, pings); known {
		own, _ := c.l.lab.since()
		n -= own.requests
		futile := n
		for _, m := range useful {
			counts, _ := m.since()
			futile -= counts.requests
		}
		row.Requests, row.Futile = &n, &futile
	}
	c.l.summary.add(row)
	c.l.board.Row(row)
}

// handOver is one round: the holder releases the lock or is killed, and another one gets it.
func (l *line) handOver(ctx context.Context, n int) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	old, row := l.holder, Row{Round: n, Cause: Released}
	if l.wish.killHolder {
		row.Cause, row.Killed = HolderKilled, old.name
		l.sayKilled(old, "the holder")
	}
	c := l.begin(ctx)
	if l.wish.killHolder {
		l.wish.killHolder = false
		l.kill(old)
	} else if err := old.release(ctx); err != nil {
		return fmt.Errorf("%s: %w", old.name, err)
	}
	if err := l.await(ctx, nil, func() (bool, error) { return l.winner() != nil, nil }); err != nil {
		return err
	}
	winner := l.winner()
	row.Winner, row.HandOverMs = winner.name, ms(winner.acquired.Sub(c.began))
	l.crown(winner)
	if err := l.await(ctx, nil, func() (bool, error) { return l.atRest(l.cfg.Mode == Herd), nil }); err != nil {
		return err
	}
	c.end(ctx, row, winner, old)
	if row.Cause == HolderKilled {
		return l.replace(ctx)
	}
	old.release = nil
	return l.enter(ctx, old)
}

// atRest tells whether all wait for an event, and with woken whether each of them has had one since the mark.
func (l *line) atRest(woken bool) bool {
	for _, m := range l.waiting {
		if counts, waits := m.since(); !waits || woken && counts.events == 0 {
			return false
		}
	}
	return true
}

// loseWaiter kills the one in the middle of the line and returns when its session has ended and everybody waits again. In the
// queue its end is an event for the one behind it.
func (l *line) loseWaiter(ctx context.Context, n int) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	at := len(l.waiting) / 2
	victim := l.waiting[at]
	var behind *member
	if l.cfg.Mode == Queue && at+1 < len(l.waiting) {
		behind = l.waiting[at+1]
	}
	l.sayKilled(victim, "a waiter")
	c := l.begin(ctx)
	l.kill(victim)
	l.waiting = slices.Delete(l.waiting, at, at+1)
	tick := time.NewTicker(pollTime)
	defer tick.Stop()
	gone := false
	var took time.Duration
	err := l.await(ctx, tick.C, func() (bool, error) {
		if !gone {
			stat, err := l.lab.c.Exists(ctx, victim.present)
			if stat != nil || err != nil {
				return false, err
			}
			gone, took = true, time.Since(c.began)
		}
		if behind != nil {
			if counts, _ := behind.since(); counts.events == 0 {
				return false, nil
			}
		}
		return l.atRest(false), nil
	})
	if err != nil {
		return err
	}
	c.end(ctx, Row{Round: n, Cause: WaiterKilled, Killed: victim.name, HandOverMs: ms(took)})
	return l.replace(ctx)
}

func (l *line) sayKilled(m *member, what string) {
	l.board.Say(fmt.Sprintf("%s, %s, is killed: its connection is cut and its session is not closed. The server ends it after %v of silence.",
		m.name, what, m.c.Session().Timeout()))
}

// bounded is for what comes to an end by itself, unless something is wrong.
func (l *line) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	most := handOverTime + 3*time.Duration(l.summary.SessionTimeoutMs)*time.Millisecond
	return context.WithTimeoutCause(ctx, most, fmt.Errorf("the line did not come to rest within %v", most))
}
