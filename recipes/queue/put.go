package queue

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// put adds an entry whose name begins with prefix.
func (t *Taker) put(ctx context.Context, prefix string, data []byte) error {
	if len(data) > entryBytesMax {
		return fmt.Errorf("queue: an entry of %d bytes, at most %d", len(data), entryBytesMax)
	}
	length, err := t.Len(ctx)
	if err != nil {
		return err
	}
	if length >= t.opt.LengthMax {
		return fmt.Errorf("%w: %s has %d entries", ErrFull, t.entries, length)
	}
	session, err := t.client.AwaitSession(ctx)
	if err != nil {
		return err
	}
	put, err := detach(ctx, func() error { return t.putNow(ctx, session, path.Join(t.entries, prefix), data) }, func(error) {})
	if err != nil {
		return fmt.Errorf("queue: put into %s: %w: %w", t.entries, ErrUnknown, err)
	}
	return put
}

// putNow adds the entry together with an ephemeral mark, in one transaction. If the reply is lost, the mark tells whether it
// happened, for as long as the session lives. It runs to its end even when ctx does not: only so the mark is surely deleted.
func (t *Taker) putNow(ctx context.Context, session *recipes.Session, name string, data []byte) error {
	mark := path.Join(t.puts, newGUID())
	for failures := 0; ; failures++ {
		_, err := t.client.Txn().Create(mark, nil, zk.FlagEphemeral).Create(name, data, zk.FlagSequence).Commit(context.Background())
		switch {
		case err == nil:
			t.client.DeleteSurely(mark)
			return nil
		case errors.Is(err, zk.ErrNoNode):
			if err = t.ensure(context.Background()); err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
		case errors.Is(err, ErrUnknown) && !errors.Is(err, recipes.ErrClosed):
			if happened, known := t.marked(session, mark); happened || !known || ctx.Err() != nil {
				return unlessNil(happened, err)
			}
		case passing(err) && !errors.Is(err, recipes.ErrClosed): // it was refused together with the session
			if session, err = t.client.AwaitSession(ctx); err != nil {
				return err
			}
		default:
			return err
		}
		if failures > 0 {
			pause(t.client, failures)
		}
	}
}

// marked tells whether a put has happened, if that can be known.
func (t *Taker) marked(session *recipes.Session, mark string) (happened, known bool) {
	if t.client.Sync(context.Background(), t.puts) != nil {
		return false, false
	}
	stat, err := t.client.Exists(context.Background(), mark)
	if err != nil {
		return false, false
	}
	if stat != nil {
		t.client.DeleteSurely(mark)
		return true, true
	}
	// A mark that is not there was never made, or has gone with its session.
	return false, t.client.Conn().SessionID() == session.ID()
}

func unlessNil(happened bool, err error) error {
	if happened {
		return nil
	}
	return err
}
