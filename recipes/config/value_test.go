package config

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestValueFollowsItsNode(t *testing.T) {
	w := newWorld(t)
	o, _ := checked()
	v, err := Open(recipestest.Context(t), w.Client(t), "/limits", o)
	require.NoError(t, err)
	defer v.Close()
	_, has := v.Get()
	require.False(t, has)
	_, known := v.Age()
	require.False(t, known)
	w.put("/limits", `{"Max": 1}`)
	eventually(t, v, limits{Max: 1})
	w.put("/limits", `{"Max": 2, "Unknown": true}`)
	eventually(t, v, limits{Max: 2})
	got, _ := v.Get()
	_, stat := w.get("/limits")
	require.EqualValues(t, 1, got.Number)
	require.Equal(t, stat.Mzxid, got.Zxid)
	require.Equal(t, stat.Mtime, got.Modified.UnixMilli())
	require.Equal(t, "/limits", got.Path)
	require.False(t, got.FromFile)
	recipestest.Eventually(t, func() bool { age, known := v.Age(); return known && age == 0 }, "it is in step")
	require.NoError(t, v.Fault())
}

// What does not decode or does not validate never comes into force, and neither does the end of the node.
func TestRefusedVersions(t *testing.T) {
	w := newWorld(t)
	w.put("/limits", `{"Max": 1}`)
	o, faults := checked()
	v, err := Open(recipestest.Context(t), w.Client(t), "/limits", o)
	require.NoError(t, err)
	defer v.Close()
	for i, bad := range []string{"", "{", `{"Max": "one"}`, `{"Max": 3} {}`, `{"Max": -1}`} {
		w.put("/limits", bad)
		recipestest.Eventually(t, func() bool { return len(faults.all()) == i+1 }, "the fault is told")
		require.ErrorIs(t, v.Fault(), ErrRefused, bad)
		require.ErrorContains(t, v.Fault(), "/limits")
		got, _ := v.Get()
		require.Equal(t, 1, got.Value.Max)
	}
	require.ErrorIs(t, v.Fault(), errNegative)
	_, err = v.Update(recipestest.Context(t), func(l limits) (limits, error) { return l, nil })
	require.ErrorIs(t, err, ErrRefused, "what is not understood is not changed")
	w.put("/limits", `{"Max": 2}`)
	eventually(t, v, limits{Max: 2})
	require.NoError(t, v.Fault())

	require.NoError(t, w.raw.Delete(w.Abs("/limits"), -1))
	recipestest.Eventually(t, func() bool { return errors.Is(v.Fault(), ErrDeleted) }, "the end is told")
	got, _ := v.Get()
	require.Equal(t, 2, got.Value.Max)
	w.put("/limits", `{"Max": 3}`)
	eventually(t, v, limits{Max: 3})
	require.NoError(t, v.Fault())

	w.put("/limits", "?")
	_, err = Open(recipestest.Context(t), w.Client(t), "/limits", o)
	require.ErrorIs(t, err, ErrRefused, "there is nothing to go on with")
}

func TestUpdate(t *testing.T) {
	w := newWorld(t)
	o, _ := checked()
	v, err := Open(recipestest.Context(t), w.Client(t), "/deep/limits", o)
	require.NoError(t, err)
	defer v.Close()
	more := func(l limits) (limits, error) { l.Max++; return l, nil }
	for i := range 3 {
		got, err := v.Update(recipestest.Context(t), more)
		require.NoError(t, err)
		require.Equal(t, i+1, got.Value.Max)
		require.EqualValues(t, i, got.Number)
		now, _ := v.Get()
		require.Equal(t, got.Value, now.Value, "in force at once")
		require.Equal(t, got.Zxid, now.Zxid)
		_, stat := w.get("/deep/limits")
		require.Equal(t, stat.Mzxid, got.Zxid)
	}
	reason := errors.New("no")
	_, err = v.Update(recipestest.Context(t), func(limits) (limits, error) { return limits{}, reason })
	require.ErrorIs(t, err, reason)
	_, err = v.Update(recipestest.Context(t), func(limits) (limits, error) { return limits{Max: -1}, nil })
	require.ErrorIs(t, err, errNegative)
	_, stat := w.get("/deep/limits")
	require.EqualValues(t, 2, stat.Version, "nothing was written")
}

// Two writers never lose each other's change.
func TestUpdatesByMany(t *testing.T) {
	const writers, updates = 4, 10
	w := newWorld(t)
	var all sync.WaitGroup
	for range writers {
		v, err := Open(recipestest.Context(t), w.Client(t), "/sum", Options[int]{})
		require.NoError(t, err)
		defer v.Close()
		all.Go(func() {
			for range updates {
				_, err := v.Update(context.Background(), func(old int) (int, error) { return old + 1, nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	data, _ := w.get("/sum")
	require.Equal(t, fmt.Sprint(writers*updates), data)
}

// Whatever reply is lost: each update is applied once.
func TestUpdateWithALostReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, proxy := w.Faulty(t)
	v, err := Open(recipestest.Context(t), client, "/sum", Options[int]{})
	require.NoError(t, err)
	defer v.Close()
	more := func(old int) (int, error) { return old + 1, nil }
	want := 0
	for _, fault := range []func(){
		func() { proxy.DropReply(opCreate) },
		func() { proxy.DropReply(opSetData) },
		func() { proxy.DropRequest(opSetData) },
		func() { proxy.DropReply(opGetData) },
		func() { proxy.DropRequest(opSetData); proxy.DropReply(opSetData) },
		proxy.Expire,
		proxy.Cut,
		w.Restart,
	} {
		fault()
		got, err := v.Update(recipestest.Context(t), more)
		require.NoError(t, err)
		want++
		require.Equal(t, want, got.Value)
		data, stat := w.get("/sum")
		require.Equal(t, fmt.Sprint(want), data)
		require.EqualValues(t, want-1, stat.Version)
	}
	require.NoError(t, v.Fault())
}

// Others write between the lost reply and the look at what has become of it.
func TestUpdateThatCannotBeKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, proxy := w.Faulty(t)
	v, err := Open(recipestest.Context(t), client, "/sum", Options[int]{})
	require.NoError(t, err)
	defer v.Close()
	w.put("/sum", "1")
	proxy.DropReply(opSetData)
	proxy.Refuse(true)
	calls := 0
	done := make(chan error, 1)
	go func() {
		_, err := v.Update(recipestest.Context(t), func(old int) (int, error) { calls++; return old + 1, nil })
		done <- err
	}()
	// The connection that exists goes on; it is cut with the reply.
	recipestest.Eventually(t, func() bool { data, _ := w.get("/sum"); return data == "2" }, "the write is there")
	w.put("/sum", "10")
	proxy.Refuse(false)
	require.ErrorIs(t, <-done, recipes.ErrUnknown)
	require.Equal(t, 1, calls)
	data, _ := w.get("/sum")
	require.Equal(t, "10", data)
}

// judge is asked in all situations there are.
func TestJudge(t *testing.T) {
	at := func(czxid int64, version int32, data string) base {
		return base{true, zk.Stat{Czxid: czxid, Version: version}, []byte(data)}
	}
	none, old := base{}, at(7, 3, "old")
	for _, c := range []struct {
		old, now base
		again    bool
		err      error
	}{
		{none, none, true, nil},
		{none, at(9, 0, "new"), false, nil},
		{none, at(9, 0, "other"), false, errConflict},
		{none, at(9, 1, "new"), false, recipes.ErrUnknown},
		{old, old, true, nil},
		{old, at(7, 4, "new"), false, nil},
		{old, at(7, 4, "other"), false, errConflict},
		{old, at(7, 5, "new"), false, recipes.ErrUnknown},
		{old, at(9, 3, "old"), false, recipes.ErrUnknown},
		{old, at(9, 4, "new"), false, recipes.ErrUnknown},
		{old, none, false, recipes.ErrUnknown},
	} {
		again, err := judge(c.old, c.now, []byte("new"))
		require.Equal(t, c.again, again, "%+v", c)
		require.ErrorIs(t, err, c.err, "%+v", c)
	}
}

// Versions are given in order, the last one always, each once.
func TestVersions(t *testing.T) {
	const updates = 20
	w := newWorld(t)
	client := w.Client(t)
	v, err := Open(recipestest.Context(t), client, "/n", Options[int]{})
	require.NoError(t, err)
	defer v.Close()
	var seen []int
	done := make(chan struct{})
	go func() {
		defer close(done)
		for version := range v.Versions(context.Background()) {
			seen = append(seen, version.Value)
			if version.Value == updates {
				return
			}
		}
	}()
	for i := range updates {
		w.put("/n", fmt.Sprint(i+1))
	}
	<-done
	require.IsIncreasing(t, append([]int{0}, seen...))

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range v.Versions(context.Background()) {
		}
	}()
	client.Close()
	<-ended
	v.Close()
	got, has := v.Get()
	require.True(t, has)
	require.Equal(t, updates, got.Value)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range v.Versions(ctx) {
		t.Fatal("a context that has ended")
	}
}

func TestValueThroughFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, proxy := w.Faulty(t)
	w.put("/n", "0")
	v, err := Open(recipestest.Context(t), client, "/n", Options[int]{})
	require.NoError(t, err)
	defer v.Close()
	for i, fault := range []func(){
		proxy.Cut, proxy.Expire, w.Restart, func() { proxy.DropReply(opGetData) }, func() { proxy.Delay(5e6) },
	} {
		fault()
		recipestest.Eventually(t, func() bool {
			_, err := w.raw.Set(w.Abs("/n"), []byte(fmt.Sprint(i+1)), -1)
			return err == nil
		}, "the server takes writes")
		recipestest.Eventually(t, func() bool { got, _ := v.Get(); return got.Value == i+1 }, "the value arrives")
	}
	require.NoError(t, v.Fault())
}

func TestBadInput(t *testing.T) {
	w := newWorld(t)
	client := w.Client(t)
	for _, path := range []string{"", "/", "a", "/a/", "/a/../b"} {
		_, err := Open(recipestest.Context(t), client, path, Options[int]{})
		require.ErrorIs(t, err, recipes.ErrPath, "%q", path)
		_, err = NewRollout(client, path, Options[int]{})
		require.ErrorIs(t, err, recipes.ErrPath, "%q", path)
	}
	_, err := Open(recipestest.Context(t), client, "/a", Options[int]{FileAfter: -1})
	require.ErrorContains(t, err, "negative")
	_, err = Open(recipestest.Context(t), client, "/a", Options[chan int]{})
	require.NoError(t, err)
}

func TestNodeThatMayNotBeRead(t *testing.T) {
	w := newWorld(t)
	_, err := w.raw.Create(w.Abs("/shut"), nil, 0, zk.WorldACL(zk.PermAll&^zk.PermRead))
	require.NoError(t, err)
	_, err = Open(recipestest.Context(t), w.Client(t), "/shut", Options[int]{})
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NoError(t, w.raw.Delete(w.Abs("/shut"), -1)) // what cannot be read is not found when the world is cleared
}
