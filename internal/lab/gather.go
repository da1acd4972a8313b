package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"zabra/recipes"
)

// newPlaces gives a run a node of its own, so that runs do not meet. It is made as a container: if the lab ends without
// cleaning up, the server does.
func newPlaces() places {
	var id [4]byte
	_, _ = rand.Read(id[:]) // it never fails
	return places{root: "/zabra-lab-" + hex.EncodeToString(id[:])}
}

// gather connects all clients and lets them line up, the holder first.
func (l *line) gather(ctx context.Context) error {
	if err := reach(ctx, l.cfg.Server); err != nil {
		return err
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	l.summary.Note = l.cfg.Meter.missing(l.cfg.Meter.look(ctx))
	if l.summary.Note != "" {
		l.board.Say(l.summary.Note)
	}
	all, err := l.connectAll(ctx, l.cfg.Waiters+1)
	if err != nil {
		l.waiting = append(l.waiting, all...) // to be closed
		return err
	}
	for i, m := range all {
		l.watch(m)
		if err := l.enter(ctx, m); err != nil {
			l.waiting = append(l.waiting, all[i+1:]...)
			return err
		}
		if i == 0 {
			l.crown(m)
		}
	}
	l.summary.SessionTimeoutMs = l.lab.c.Session().Timeout().Milliseconds()
	return nil
}

// reach tells at once if nobody is there. Package zk would try for ever.
func reach(ctx context.Context, server string) error {
	d := net.Dialer{Timeout: connectTimeMax}
	nc, err := d.DialContext(ctx, "tcp", server)
	if err != nil {
		return err
	}
	return nc.Close()
}

// settle connects the lab's own client and makes the lab's nodes.
func (l *line) settle(ctx context.Context) error {
	lab := &member{name: "the lab's own client", link: newLink(l.changed)}
	var err error
	if lab.c, err = connect(ctx, l.cfg, lab.link); err != nil {
		return err
	}
	l.lab = lab
	return lab.c.EnsurePath(ctx, l.names.presence())
}

// connectAll makes n clients, some at a time. After an error it returns those that were made.
func (l *line) connectAll(ctx context.Context, n int) ([]*member, error) {
	all, errs := make([]*member, n), make([]error, n)
	room := make(chan struct{}, connectingMax)
	var wg sync.WaitGroup
	for i := range n {
		name := l.name()
		wg.Add(1)
		go func() {
			defer wg.Done()
			room <- struct{}{}
			defer func() { <-room }()
			all[i], errs[i] = newMember(ctx, l.cfg, &l.names, name, l.changed)
		}()
	}
	wg.Wait()
	var made []*member
	for _, m := range all {
		if m != nil {
			made = append(made, m)
		}
	}
	for _, err := range errs {
		if err != nil {
			return made, fmt.Errorf("%d of %d clients: %w", n-len(made), n, err) // they hardly differ
		}
	}
	return made, nil
}

// name is that of the next client.
func (l *line) name() string {
	l.named++
	digits := len(strconv.Itoa(l.cfg.Waiters + 1))
	return fmt.Sprintf("c%0*d", digits, l.named)
}

// replace lets a new client come for one that was killed.
func (l *line) replace(ctx context.Context) error {
	m, err := newMember(ctx, l.cfg, &l.names, l.name(), l.changed)
	if err != nil {
		return err
	}
	l.watch(m)
	return l.enter(ctx, m)
}

// watch ends the run when a session is lost that nobody meant to end: what is counted would be something else then.
func (l *line) watch(m *member) {
	session := m.c.Session()
	l.running.Add(1)
	go func() {
		defer l.running.Done()
		select {
		case <-session.Done():
			l.fail(m, fmt.Errorf("%w: the machine is too slow for a session timeout of %v, or the connection is", recipes.ErrSessionLost, session.Timeout()))
		case <-l.ctx.Done():
		}
	}()
}

// close ends all sessions and removes the lab's nodes.
func (l *line) close() {
	l.mu.Lock()
	l.mu.closing = true
	l.mu.Unlock()
	l.cancel()
	// The holder comes last, lest the herd runs for the lock once more for each that goes.
	closeAll(l.waiting)
	if l.holder != nil {
		l.holder.c.Close()
	}
	l.running.Wait()
	if l.lab != nil {
		if l.lab.c.State().IsConnected() { // otherwise the server is gone, and waiting for it no use
			l.remove()
		}
		l.lab.c.Close()
	}
}

func closeAll(members []*member) {
	var wg sync.WaitGroup
	for _, m := range members {
		wg.Add(1)
		go func() {
			defer wg.Done()
			m.c.Close()
		}()
	}
	wg.Wait()
}

// remove takes the lab's nodes away. What cannot be removed yet, because a killed client's session still stands, are empty
// containers in the end, which the server removes.
func (l *line) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var errs []error
	for _, path := range []string{l.names.lock(), l.names.presence(), l.names.root} {
		errs = append(errs, l.lab.c.Delete(ctx, path, -1))
	}
	_ = errors.Join(errs...) // there is nobody to tell, and nothing to do
}
