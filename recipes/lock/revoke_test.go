package lock

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func TestRevoke(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	a, b := w.Client(t), w.Client(t)
	m := NewMutex(a, "/asked", Options{Identity: []byte("me")})
	guard, err := m.Lock(ctx)
	require.NoError(t, err)
	waiting := inBackground(ctx, NewMutex(b, "/asked", Options{}).Lock)
	requireLine(t, b, "/asked", 2)
	revoked := guard.Revoked()
	requireOpen(t, revoked, "nobody has asked")
	_, err = b.Set(ctx, guard.Path(), []byte("something else"), -1)
	require.NoError(t, err)
	list, err := m.Participants(ctx)
	require.NoError(t, err)
	require.False(t, list[0].Revoked)

	require.NoError(t, Revoke(ctx, b, list[0].Path))
	requireClosed(t, revoked, "asked")
	require.True(t, guard.Held(), "to ask takes nothing away")
	requireWaiting(t, waiting)
	list, err = m.Participants(ctx)
	require.NoError(t, err)
	require.True(t, list[0].Revoked)
	require.Empty(t, list[0].Identity)
	data, _, err := b.Get(ctx, guard.Path())
	require.NoError(t, err)
	require.Equal(t, "__REVOKE__", string(data), "what Curator writes and looks for")

	require.NoError(t, Revoke(ctx, a, list[1].Path), "one who waits")
	require.NoError(t, guard.Unlock(ctx))
	second := receive(t, waiting)
	requireClosed(t, second.Revoked(), "learns it later")
	require.NoError(t, second.Unlock(ctx))
	require.NoError(t, Revoke(ctx, a, second.Path()), "one who is gone")
}

func TestRevokedIsQuietOnUnlock(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	m := NewMutex(c, "/quiet", Options{})
	guard, err := m.Lock(ctx)
	require.NoError(t, err)
	revoked := guard.Revoked()
	require.NoError(t, guard.Unlock(ctx))
	next, err := m.Lock(ctx)
	require.NoError(t, err)
	gone := next.Revoked()
	require.NoError(t, c.Delete(ctx, next.Path(), -1))
	requireClosed(t, gone, "somebody has deleted the node")
	requireOpen(t, revoked, "the end of a lock is no request")
	require.NoError(t, next.Unlock(ctx))
}

func TestRevokeAfterLostReply(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	guard, err := NewMutex(w.Client(t), "/asked", Options{}).Lock(ctx)
	require.NoError(t, err)
	proxy.DropRequest(servertest.OpSetData)
	require.NoError(t, Revoke(ctx, c, guard.Path()))
	requireClosed(t, guard.Revoked(), "asked")
	proxy.DropReply(servertest.OpSetData)
	require.NoError(t, Revoke(ctx, c, guard.Path()))
	require.NoError(t, guard.Unlock(ctx))
}
