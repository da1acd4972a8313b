package node

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// run keeps the node in place until ctx ends or the client is closed.
func (n *Node) run(ctx context.Context) {
	defer close(n.done)
	states := n.c.States(ctx)
	policy := recipes.Exponential(retryFirst, retryMost)
	for attempt := 0; ctx.Err() == nil; {
		err := n.round(ctx, states)
		if err == nil {
			attempt = 0
			continue
		}
		if ctx.Err() == nil && !errors.Is(err, recipes.ErrUnknown) {
			n.publish(func() { n.mu.err = err })
		}
		if errors.Is(err, recipes.ErrClosed) || errors.Is(err, recipes.ErrPath) {
			return
		}
		wait, _ := policy(attempt)
		_ = n.c.Sleep(ctx, wait) // the next round tells why
		attempt++
	}
	n.leave()
	n.publish(func() { n.mu.path, n.mu.err = "", context.Cause(ctx) })
}

// round makes the node if it has to be made, looks at it, and waits until something happens.
func (n *Node) round(ctx context.Context, states <-chan recipes.State) error {
	if _, err := n.c.AwaitSession(ctx); err != nil {
		return err
	}
	if n.at == "" {
		if err := n.create(ctx); err != nil || n.at == "" {
			return err
		}
	}
	// Not exists, which would leave a watch behind on a node that has gone meanwhile.
	data, stat, changed, err := n.c.GetW(ctx, n.at)
	if errors.Is(err, zk.ErrNoNode) {
		n.gone()
		return nil
	}
	if err == nil {
		err = n.seen(ctx, data, stat)
	}
	if err != nil {
		return err
	}
	return n.hold(ctx, states, changed)
}

// gone notes that the node has to be made.
func (n *Node) gone() {
	n.at, n.guid, n.czxid, n.written = "", "", 0, 0
	n.seenOnce, n.other, n.ours = false, false, false
	n.publish(func() { n.mu.path, n.mu.own, n.mu.err = "", false, nil })
}

// seen takes up what the node is like, and writes into it what it should have.
func (n *Node) seen(ctx context.Context, data []byte, stat *zk.Stat) error {
	own := stat.EphemeralOwner != 0 && stat.EphemeralOwner == n.c.Session().ID()
	n.seenOnce, n.other, n.ours = true, false, own || stat.EphemeralOwner == 0
	if n.opts.Mode.ephemeral() != (stat.EphemeralOwner != 0) {
		n.other, n.ours = true, false
		n.publish(func() { n.mu.path, n.mu.err = "", ErrKind })
		return nil
	}
	anew := stat.Czxid != n.czxid
	n.czxid = stat.Czxid
	want, revision := n.wanted()
	if anew {
		n.written = 0
	}
	if bytes.Equal(data, want) {
		n.written = revision // it was made with that, or a reply was lost
	}
	n.publish(func() { n.mu.own = own })
	if err := n.write(ctx); err != nil {
		return err
	}
	if anew && n.opts.OnMade != nil {
		n.opts.OnMade(n.at)
	}
	return nil
}

func (n *Node) wanted() ([]byte, int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.data, n.mu.revision
}

// write gives the node the data if it has not got it. Writing it again after a lost reply does no harm.
func (n *Node) write(ctx context.Context) error {
	data, revision := n.wanted()
	if n.written != revision {
		_, err := n.c.Set(ctx, n.at, data, -1)
		if errors.Is(err, zk.ErrNoNode) {
			return nil // the watch tells that, too
		}
		if err != nil {
			return err
		}
		n.written = revision
	}
	n.publish(func() { n.mu.path, n.mu.written, n.mu.made, n.mu.err = n.at, revision, true, nil })
	return nil
}

// hold waits until the node may have changed. Meanwhile it writes new data, which is such a change.
func (n *Node) hold(ctx context.Context, states <-chan recipes.State, changed <-chan zk.Event) error {
	for {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.wake:
			if n.other {
				continue
			}
			if err := n.write(ctx); err != nil {
				return err
			}
		case state, open := <-states:
			if !open && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !open {
				return recipes.ErrClosed
			}
			if stands, err := n.stands(ctx, state); err != nil || !stands {
				return err
			}
		}
	}
}

// stands looks at the node again after a reconnect, lest a watch was lost while the connection changed.
func (n *Node) stands(ctx context.Context, state recipes.State) (bool, error) {
	if state != recipes.Reconnected {
		return true, nil
	}
	stat, err := n.c.Exists(ctx, n.at)
	return stat != nil && stat.Czxid == n.czxid, err
}
