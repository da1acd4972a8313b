package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// errQuit is the wish of somebody at the keyboard.
var errQuit = errors.New("lab: quit")

// line is the clients and who of them has the lock.
type line struct {
	cfg     *Config
	board   Board
	names   places
	ctx     context.Context // of all that waits for the lock
	cancel  context.CancelFunc
	wake    chan struct{} // holds one entry after anything has changed
	running sync.WaitGroup

	// The rest belongs to the goroutine of Run, apart from what mu guards.
	lab     *member // looks after the lab's nodes and is not in the line
	holder  *member
	waiting []*member // in the order in which they came
	named   int       // names that were given out
	summary Summary
	paused  bool
	wish    struct{ killWaiter, killHolder bool }

	mu struct {
		sync.Mutex
		failure error
		closing bool
	}
}

// Run lets the lock be handed over as often as the configuration says, shows each hand-over on the board, and returns what came
// of it. It ends early, with a summary, when ctx does or at KeyQuit. The lab's nodes are removed.
func Run(ctx context.Context, c Config, b Board) (*Summary, error) {
	if err := errors.Join(c.Check(), CheckServer(c.Server)); err != nil {
		return nil, err
	}
	l := &line{
		cfg: &c, board: b, wake: make(chan struct{}, 1), names: newPlaces(),
		summary: Summary{Mode: c.Mode, Waiters: c.Waiters, Server: c.Server, Counters: c.Meter.name},
	}
	l.ctx, l.cancel = context.WithCancel(ctx)
	defer l.close()
	b.Begin(&c)
	err := l.gather(l.ctx)
	if err == nil {
		err = l.rounds(l.ctx)
	}
	if errors.Is(err, errQuit) || ctx.Err() != nil {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return &l.summary, b.End(&l.summary)
}

// rounds is the run, once everybody is in line.
func (l *line) rounds(ctx context.Context) error {
	for n := 1; n <= l.cfg.Rounds; n++ {
		l.wish.killWaiter = l.wish.killWaiter || due(n, l.cfg.KillWaiterEvery)
		l.wish.killHolder = l.wish.killHolder || due(n, l.cfg.KillHolderEvery)
		if err := l.hold(ctx); err != nil {
			return err
		}
		for l.wish.killWaiter {
			l.wish.killWaiter = false
			if err := l.loseWaiter(ctx, n); err != nil {
				return err
			}
			if err := l.hold(ctx); err != nil {
				return err
			}
		}
		if err := l.handOver(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func due(round, every int) bool { return every > 0 && round%every == 0 }

// hold returns when the holder has had the lock for long enough, or somebody is to be killed.
func (l *line) hold(ctx context.Context) error {
	l.show()
	over := time.Now().Add(l.cfg.Hold)
	timer := time.NewTimer(l.cfg.Hold)
	defer timer.Stop()
	return l.await(ctx, timer.C, func() (bool, error) {
		asked := l.wish.killWaiter || l.wish.killHolder && l.paused
		return asked || !l.paused && !time.Now().Before(over), nil
	})
}

// await returns when the condition holds, which is looked at whenever something changes or tick tells. Meanwhile it serves
// the keyboard.
func (l *line) await(ctx context.Context, tick <-chan time.Time, cond func() (bool, error)) error {
	for {
		if err := l.failed(); err != nil {
			return err
		}
		if held, err := cond(); held || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.wake:
		case <-tick:
		case key := <-l.cfg.Keys:
			if err := l.press(key); err != nil {
				return err
			}
		}
	}
}

// press takes up a key. Kills wait until the present round is over.
func (l *line) press(key Key) error {
	switch key {
	case KeyQuit:
		return errQuit
	case KeyPause:
		l.paused = !l.paused
	case KeyKillHolder:
		l.wish.killHolder = true
	case KeyKillWaiter:
		l.wish.killWaiter = true
	default:
		return nil
	}
	l.show()
	return nil
}

// show tells the board how things are.
func (l *line) show() {
	now := Now{Waiting: len(l.waiting), Paused: l.paused, KillHolder: l.wish.killHolder, KillWaiter: l.wish.killWaiter}
	if l.holder != nil {
		now.Holder = l.holder.name
	}
	l.board.Now(now)
}

// changed has the conditions looked at again. Any goroutine may call it.
func (l *line) changed() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// fail notes the first failure of a client that was not killed.
func (l *line) fail(m *member, err error) {
	l.mu.Lock()
	if l.mu.failure == nil && !l.mu.closing && !m.link.isCut() {
		l.mu.failure = fmt.Errorf("%s: %w", m.name, err)
	}
	l.mu.Unlock()
	l.changed()
}

func (l *line) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.failure
}

// enter lets a client wait for the lock, and returns when it does, or has it.
func (l *line) enter(ctx context.Context, m *member) error {
	l.waiting = append(l.waiting, m)
	l.running.Add(1)
	go func() {
		defer l.running.Done()
		release, err := m.acquire(l.ctx)
		if err != nil {
			l.fail(m, err)
			return
		}
		l.mu.Lock()
		m.release, m.acquired = release, time.Now()
		l.mu.Unlock()
		l.changed()
	}()
	return l.await(ctx, nil, func() (bool, error) {
		_, waits := m.link.state()
		return waits || l.winner() == m, nil
	})
}

// winner is the one of those who waited that has the lock now; nil for nobody.
func (l *line) winner() *member {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.waiting {
		if m.release != nil {
			return m
		}
	}
	return nil
}

// crown makes the winner the holder.
func (l *line) crown(m *member) {
	l.waiting = slices.DeleteFunc(l.waiting, func(o *member) bool { return o == m })
	l.holder = m
}

// kill cuts a client off, as if its machine had lost its power: its session is not closed.
func (l *line) kill(m *member) {
	m.link.kill()
	l.running.Add(1)
	go func() {
		defer l.running.Done()
		m.c.Close() // for what is left in this process; nothing of it reaches the server
	}()
}
