package barrier

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Leave leaves, and returns when all members that were there when it was called have left. The member's node is gone then,
// and "ready" too if this was the last one. If Leave fails, for example because ctx ends, the node is deleted in the
// background; Leave may be called again to go on waiting. It fails with recipes.ErrSessionLost if the session had ended
// before: then the others did not wait for this member.
func (m *Member) Leave(ctx context.Context) error {
	err := m.leave(ctx)
	if err != nil {
		m.leaving = true
		m.d.c.DeleteSurely(m.node.Path)
		return fmt.Errorf("barrier %s: %w", m.d.path, err)
	}
	return nil
}

func (m *Member) leave(ctx context.Context) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	var r reader
	for {
		var names []string
		err := r.read(ctx, m.d.c, m.d.path, func() (err error) {
			names, err = m.d.present(ctx)
			return err
		})
		if err != nil {
			return err
		}
		present := slices.Contains(names, m.own)
		if !present && !m.leaving {
			return m.missing()
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !m.others[name] })
		if len(names) == 0 && !present {
			return m.tidy(ctx)
		}
		if err := m.step(ctx, names, present); err != nil {
			return err
		}
	}
}

// begin notes who has to leave.
func (m *Member) begin(ctx context.Context) error {
	if m.others != nil {
		return nil
	}
	ready, err := m.d.c.Exists(ctx, m.d.ready)
	if err != nil {
		return err
	}
	names, err := m.d.present(ctx)
	if err != nil {
		return err
	}
	if !m.leaving && !slices.Contains(names, m.own) {
		return m.missing()
	}
	if ready != nil {
		m.opened = ready.Czxid
	}
	m.others = map[string]bool{}
	for _, name := range names {
		m.others[name] = name != m.own
	}
	return nil
}

// step does what is the member's part while others are there, or itself is, and returns when it is time to look again.
// The member with the smallest name waits for the one with the largest, and goes last; everybody else goes and waits for
// the one with the smallest.
func (m *Member) step(ctx context.Context, others []string, present bool) error {
	if len(others) == 0 {
		_, err := m.remove(ctx, true)
		return err
	}
	first := present && m.own < others[0]
	other := others[0]
	if first {
		other = others[len(others)-1]
	}
	_, _, gone, err := m.d.c.GetW(ctx, path.Join(m.d.path, other))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	var over <-chan struct{} // once the node is deleted, the session does not count
	switch {
	case first:
		over = m.node.Session.Done()
	case present:
		if sure, err := m.remove(ctx, !slices.ContainsFunc(others, notKazoo)); !sure {
			return err
		}
	}
	_, err = await(ctx, m.d.c, gone, over)
	return err
}

// remove deletes the member's node, and with it "ready" if that is wanted and exists: in one transaction, so that it is never
// the one of a later round. It tells whether the node is gone; if the reply is lost it is not sure of that, and does not fail.
func (m *Member) remove(ctx context.Context, withReady bool) (sure bool, err error) {
	m.leaving = true
	err = zk.ErrNoNode
	if withReady {
		_, err = m.d.c.Txn().Delete(m.node.Path, -1).Delete(m.d.ready, -1).Commit(ctx)
	}
	if errors.Is(err, zk.ErrNoNode) {
		err = m.d.c.Delete(ctx, m.node.Path, -1)
	}
	switch {
	case err == nil || errors.Is(err, zk.ErrNoNode):
		return true, nil
	case ctx.Err() == nil && errors.Is(err, recipes.ErrUnknown):
		return false, nil
	}
	return false, err
}

// notKazoo tells of a member's name that it is not one of kazoo's, which are 32 hexadecimal digits. When only such members
// are left, "ready" has to go before them: the first of them takes it for a member that has not left yet.
func notKazoo(name string) bool {
	return len(name) != 32 || strings.Trim(name, "0123456789abcdef") != ""
}

// tidy deletes the "ready" of this round, if it is still there: the last member died, or is just about to delete it.
func (m *Member) tidy(ctx context.Context) error {
	for m.opened != 0 {
		ready, err := m.d.c.Exists(ctx, m.d.ready)
		if err != nil {
			return err
		}
		if ready == nil || ready.Czxid != m.opened {
			break
		}
		if err := m.d.sweep(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reader reads what has to be new enough: all that was committed before the first read is seen, and later reads never see
// less, even after the session has ended and the next one has begun at a server that is behind.
type reader struct{ session *recipes.Session }

// read makes the reads of the function again until all of them were made in one session.
func (r *reader) read(ctx context.Context, c *recipes.Client, path string, reads func() error) error {
	for {
		s, err := c.AwaitSession(ctx)
		if err != nil {
			return err
		}
		if s != r.session {
			if err := c.Sync(ctx, path); err != nil {
				return err
			}
		}
		if err := reads(); err != nil {
			return err
		}
		if c.Session() == s {
			r.session = s
			return nil
		}
	}
}
