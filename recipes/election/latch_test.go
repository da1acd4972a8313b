package election

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestLatchTakesTurns(t *testing.T) {
	w := recipestest.Start(t)
	c, ctx := w.Client(t), bounded(t)
	a, err := StartLatch(c, where, "a")
	require.NoError(t, err)
	defer a.Close()
	first, err := a.Await(ctx)
	require.NoError(t, err)
	require.NoError(t, first.Err())
	require.Same(t, first, a.Term())
	again, err := a.Await(ctx)
	require.NoError(t, err)
	require.Same(t, first, again)
	stat, err := c.Exists(ctx, first.Path())
	require.NoError(t, err)
	require.Equal(t, stat.Czxid, first.Token())

	b, err := StartLatch(c, where, "b")
	require.NoError(t, err)
	lined(t, c, "a", "b")
	require.Nil(t, b.Term())
	list, err := Participants(ctx, c, where)
	require.NoError(t, err)
	require.Equal(t, "a", list[0].ID)
	require.True(t, list[0].Leader)
	require.Equal(t, first.Token(), list[0].Token)
	require.Equal(t, first.Path(), list[0].Path)
	require.Equal(t, c.Session().ID(), list[0].Session)
	require.Equal(t, "b", list[1].ID)
	require.False(t, list[1].Leader)
	leader, found, err := Leader(ctx, c, where)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, list[0], leader)

	first.Relinquish()
	<-first.Lost()
	require.ErrorIs(t, first.Err(), ErrRelinquished)
	second, err := b.Await(ctx)
	require.NoError(t, err)
	require.Greater(t, second.Token(), first.Token())
	lined(t, c, "b", "a")

	b.Close()
	b.Close()
	<-second.Lost()
	require.ErrorIs(t, second.Err(), ErrClosed)
	require.ErrorIs(t, second.Context().Err(), context.Canceled)
	_, err = b.Await(ctx)
	require.ErrorIs(t, err, ErrClosed)
	require.Nil(t, b.Term())
	third, err := a.Await(ctx)
	require.NoError(t, err)
	require.Greater(t, third.Token(), second.Token())
}

func TestLatchWithoutOthersFollowsItself(t *testing.T) {
	w := recipestest.Start(t)
	c, ctx := w.Client(t), bounded(t)
	l, err := StartLatch(c, where, "alone")
	require.NoError(t, err)
	defer l.Close()
	for token := int64(0); ; {
		term, err := l.Await(ctx)
		require.NoError(t, err)
		require.Greater(t, term.Token(), token)
		if token > 0 {
			return
		}
		token = term.Token()
		term.Relinquish()
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	w := recipestest.Start(t)
	c := w.Client(t)
	a, err := StartLatch(c, where, "a")
	require.NoError(t, err)
	_, err = a.Await(bounded(t))
	require.NoError(t, err)
	b, err := StartLatch(c, where, "b")
	require.NoError(t, err)
	lined(t, c, "a", "b")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = b.Await(ctx)
	require.ErrorIs(t, err, why)
	b.Close()
	lined(t, c, "a")
	a.Close()
	lined(t, c)
	_, found, err := Leader(t.Context(), c, where)
	require.NoError(t, err)
	require.False(t, found)
}

func TestNobodyHasEverTakenPart(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	list, err := Participants(t.Context(), c, where)
	require.NoError(t, err)
	require.Empty(t, list)
	_, found, err := Leader(t.Context(), c, where)
	require.NoError(t, err)
	require.False(t, found)
}

func TestClosedClient(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	l, err := StartLatch(c, where, "a")
	require.NoError(t, err)
	defer l.Close()
	term, err := l.Await(bounded(t))
	require.NoError(t, err)
	c.Close()
	<-term.Lost()
	require.ErrorIs(t, term.Err(), recipes.ErrSessionLost)
	recipestest.Eventually(t, func() bool {
		_, err := l.Await(bounded(t))
		return errors.Is(err, recipes.ErrClosed)
	}, "the latch knows that its client is closed")
}

func TestBadInput(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	_, err := StartLatch(c, where, strings.Repeat("x", idBytesMax+1))
	require.ErrorIs(t, err, ErrID)
	err = NewSelector(c, where, strings.Repeat("x", idBytesMax+1), SelectorOptions{}).Run(t.Context(), nil)
	require.ErrorIs(t, err, ErrID)
	l, err := StartLatch(c, "services", "a")
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Await(bounded(t))
	require.ErrorIs(t, err, recipes.ErrPath)
	err = NewSelector(c, "services", "a", SelectorOptions{}).RunAgain(t.Context(), nil)
	require.ErrorIs(t, err, recipes.ErrPath)
}

// TestRefused has a latch that may not make its node say so, and go on trying.
func TestRefused(t *testing.T) {
	w := recipestest.Start(t)
	c, raw := w.Client(t), w.Raw(t)
	_, err := raw.Create(w.Abs("/closed"), nil, 0, zk.WorldACL(zk.PermRead|zk.PermAdmin))
	require.NoError(t, err)
	l, err := StartLatch(c, "/closed", "a")
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Await(bounded(t))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = raw.SetACL(w.Abs("/closed"), zk.WorldACL(zk.PermAll), -1)
	require.NoError(t, err)
	recipestest.Eventually(t, func() bool { return l.Term() != nil }, "the latch leads when it may")
}

func TestDeposed(t *testing.T) {
	w := recipestest.Start(t)
	raw := w.Raw(t)
	l, err := StartLatch(w.Client(t, short), where, "a")
	require.NoError(t, err)
	defer l.Close()
	// A busy machine may take a short session for lost before the leader looks at its node.
	recipestest.Eventually(t, func() bool {
		term, err := l.Await(bounded(t))
		require.NoError(t, err)
		if err := raw.Delete(w.Abs(term.Path()), -1); err != nil {
			return false
		}
		<-term.Lost()
		return errors.Is(term.Err(), ErrDeposed)
	}, "a leader without a node is deposed")
	_, err = l.Await(bounded(t))
	require.NoError(t, err)
}
