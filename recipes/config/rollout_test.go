package config

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func newRollout(t *testing.T, client *recipes.Client) *Rollout[limits] {
	o, _ := checked()
	r, err := NewRollout(client, "/limits", o)
	require.NoError(t, err)
	return r
}

// publish stores versions with Max 1 to n, whose numbers are the same.
func publish(t *testing.T, r *Rollout[limits], n int) {
	for i := range n {
		number, err := r.Publish(recipestest.Context(t), limits{Max: i + 1})
		require.NoError(t, err)
		require.EqualValues(t, i+1, number)
	}
}

func TestRollout(t *testing.T) {
	w := newWorld(t)
	r := newRollout(t, w.Client(t))
	ctx := recipestest.Context(t)
	canary, err := r.Follow(ctx, "canary")
	require.NoError(t, err)
	defer canary.Close()
	all, err := r.Follow(ctx, "all")
	require.NoError(t, err)
	defer all.Close()
	_, err = r.Cohort(ctx, "all")
	require.ErrorIs(t, err, ErrNoVersion)

	publish(t, r, 3)
	_, has := all.Get()
	require.False(t, has, "nobody uses what is only published")
	require.NoError(t, r.Promote(ctx, "all", 1))
	eventually(t, all, limits{Max: 1})
	require.NoError(t, r.Promote(ctx, "canary", 2))
	eventually(t, canary, limits{Max: 2})
	got, _ := canary.Get()
	require.EqualValues(t, 2, got.Number)
	require.Equal(t, "/limits/versions/0000000002", got.Path)
	_, stat := w.get("/limits/cohorts/canary")
	require.Equal(t, stat.Mzxid, got.Zxid)
	got, _ = all.Get()
	require.EqualValues(t, 1, got.Number)

	require.NoError(t, r.Promote(ctx, "all", 2))
	require.NoError(t, r.Promote(ctx, "all", 2), "twice is once")
	require.NoError(t, r.Promote(ctx, "all", 3))
	eventually(t, all, limits{Max: 3})
	at, err := r.Cohort(ctx, "all")
	require.NoError(t, err)
	require.EqualValues(t, 3, at.Version)
	require.Equal(t, []int64{2, 1}, at.Before)
	for _, want := range []int64{2, 1} {
		number, err := r.Rollback(ctx, "all")
		require.NoError(t, err)
		require.Equal(t, want, number)
		eventually(t, all, limits{Max: int(want)})
	}
	_, err = r.Rollback(ctx, "all")
	require.ErrorIs(t, err, ErrNoPrevious)
	published, err := r.Published(ctx)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, published)
	version, err := r.Read(ctx, 3)
	require.NoError(t, err)
	require.Equal(t, limits{Max: 3}, version.Value)
	_, err = all.Update(ctx, func(l limits) (limits, error) { return l, nil })
	require.ErrorIs(t, err, ErrCohort)
}

func TestRolloutRefuses(t *testing.T) {
	w := newWorld(t)
	r := newRollout(t, w.Client(t))
	ctx := recipestest.Context(t)
	_, err := r.Publish(ctx, limits{Max: -1})
	require.ErrorIs(t, err, errNegative)
	require.ErrorIs(t, r.Promote(ctx, "all", 1), ErrNoVersion)
	_, err = r.Rollback(ctx, "all")
	require.ErrorIs(t, err, ErrNoVersion)
	for _, cohort := range []string{"", ".", "..", "a/b"} {
		require.ErrorIs(t, r.Promote(ctx, cohort, 1), ErrNoVersion)
		_, err = r.Follow(ctx, cohort)
		require.ErrorIs(t, err, recipes.ErrPath, cohort)
		_, err = r.Cohort(ctx, cohort)
		require.ErrorIs(t, err, recipes.ErrPath, cohort)
	}
	publish(t, r, 2)
	require.NoError(t, r.Promote(ctx, "all", 1))
	all, err := r.Follow(ctx, "all")
	require.NoError(t, err)
	defer all.Close()

	// A version that was altered is used by nobody any more.
	w.put("/limits/versions/0000000002", `{"Max": 7}`)
	require.ErrorIs(t, r.Promote(ctx, "all", 2), ErrAltered)
	// And a pointer that makes no sense is a fault that leaves the last good version.
	for _, bad := range []string{"?", `{"version": 0}`, `{"version": 2}`, `{"version": 99}`} {
		w.put("/limits/cohorts/all", bad)
		recipestest.Eventually(t, func() bool { return all.Fault() != nil }, "the fault is told")
		got, _ := all.Get()
		require.Equal(t, limits{Max: 1}, got.Value)
		w.put("/limits/cohorts/all", `{"version": 1}`)
		recipestest.Eventually(t, func() bool { return all.Fault() == nil }, "the fault is over")
	}
}

// Two who move a cohort at the same time: the second is told, and nothing is done twice.
func TestMovedByAnother(t *testing.T) {
	w := newWorld(t)
	r := newRollout(t, w.Client(t))
	publish(t, r, 3)
	ctx := recipestest.Context(t)
	require.NoError(t, r.Promote(ctx, "all", 1))
	before, err := r.pointer(ctx, "all")
	require.NoError(t, err)
	require.NoError(t, r.Promote(ctx, "all", 2))
	err = r.move(ctx, "all", before.base, pointer{Version: 3})
	require.ErrorIs(t, err, ErrMoved)
	err = r.move(ctx, "all", base{}, pointer{Version: 3})
	require.ErrorIs(t, err, ErrMoved)
	at, err := r.Cohort(ctx, "all")
	require.NoError(t, err)
	require.EqualValues(t, 2, at.Version)
}

// A pointer does not grow for ever.
func TestHistoryIsBounded(t *testing.T) {
	w := newWorld(t)
	r := newRollout(t, w.Client(t))
	publish(t, r, historyMax+4)
	for i := range historyMax + 4 {
		require.NoError(t, r.Promote(recipestest.Context(t), "all", int64(i+1)))
	}
	at, err := r.Cohort(recipestest.Context(t), "all")
	require.NoError(t, err)
	require.Len(t, at.Before, historyMax)
	require.EqualValues(t, historyMax+3, at.Before[0])
}

// Whatever is lost, a version is published once and a cohort moved once.
func TestRolloutThroughFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, proxy := w.Faulty(t)
	r := newRollout(t, client)
	ctx := recipestest.Context(t)
	all, err := r.Follow(ctx, "all")
	require.NoError(t, err)
	defer all.Close()
	want := int64(0)
	for _, fault := range []func(){
		func() { proxy.DropReply(opCreate) },
		func() { proxy.DropReply(opSetData) },
		func() { proxy.DropRequest(opCreate); proxy.DropRequest(opSetData) },
		func() { proxy.DropReply(opGetData) },
		proxy.Expire,
		proxy.Cut,
		w.Restart,
	} {
		fault()
		number, err := r.Publish(ctx, limits{Name: fmt.Sprint("number ", want+1)})
		require.NoError(t, err)
		want++
		require.Equal(t, want, number)
		require.NoError(t, r.Promote(ctx, "all", number))
		eventually(t, all, limits{Name: fmt.Sprint("number ", want)})
	}
	at, err := r.Cohort(ctx, "all")
	require.NoError(t, err)
	require.Len(t, at.Before, int(want)-1)
	for range want - 1 {
		proxy.DropReply(opSetData)
		number, err := r.Rollback(ctx, "all")
		require.NoError(t, err)
		require.Equal(t, at.Before[0], number)
		at.Before = at.Before[1:]
	}
}

// A cohort's value is kept in a file, too.
func TestRolloutWithAFile(t *testing.T) {
	w := newWorld(t)
	client, proxy := w.Faulty(t)
	r := newRollout(t, client)
	r.options.File, r.options.FileAfter = filepath.Join(t.TempDir(), "limits"), 1
	publish(t, r, 1)
	require.NoError(t, r.Promote(recipestest.Context(t), "all", 1))
	all, err := r.Follow(recipestest.Context(t), "all")
	require.NoError(t, err)
	eventually(t, all, limits{Max: 1})
	all.Close()
	proxy.Refuse(true)
	proxy.Cut()
	all, err = r.Follow(recipestest.Context(t), "all")
	require.NoError(t, err)
	defer all.Close()
	got, has := all.Get()
	require.True(t, has)
	require.True(t, got.FromFile)
	require.EqualValues(t, 1, got.Number)
	require.Equal(t, "/limits/versions/0000000001", got.Path)
}
