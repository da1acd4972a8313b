package election

import (
	"context"
	"fmt"
	"path"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes/lock"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

const guid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-`

// TestNames pins what other libraries see.
func TestNames(t *testing.T) {
	w := recipestest.Start(t)
	c, raw := w.Client(t), w.Raw(t)
	look := func(term *Term, name string) {
		t.Helper()
		require.Regexp(t, "^"+name+`\d{10}$`, path.Base(term.Path()))
		data, stat, err := raw.Get(w.Abs(term.Path()))
		require.NoError(t, err)
		require.Equal(t, "an id", string(data))
		require.Equal(t, c.Session().ID(), stat.EphemeralOwner)
	}
	l, err := StartLatch(c, where, "an id")
	require.NoError(t, err)
	term, err := l.Await(bounded(t))
	require.NoError(t, err)
	look(term, guid+"latch-")
	l.Close()
	for names, name := range map[lock.Names]string{lock.Curator: "lock-", lock.Kazoo: "__lock__"} {
		s := NewSelector(c, fmt.Sprintf("/selector-%d", names), "an id", SelectorOptions{Names: names})
		require.NoError(t, s.Run(bounded(t), func(_ context.Context, term *Term) error {
			look(term, guid+name)
			return nil
		}))
	}
}

// TestBehindStrangers has a latch and a selector wait behind the node of another library, and then lead.
func TestBehindStrangers(t *testing.T) {
	for kind, name := range map[string]string{
		"latch":    "_c_01234567-89ab-cdef-0123-456789abcdef-latch-",
		"selector": "0123456789abcdef0123456789abcdef-lock-", // a kazoo Lock that is told to use that name
	} {
		t.Run(kind, func(t *testing.T) {
			w := recipestest.Start(t)
			c, raw := w.Client(t), w.Raw(t)
			require.NoError(t, c.EnsurePath(t.Context(), where))
			first := stranger(t, w, raw, name, "stranger")
			p := kinds[kind](t, c, "own")
			lined(t, c, "stranger", "own")
			leader, found, err := Leader(t.Context(), c, where)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "stranger", leader.ID)
			require.Nil(t, p.Term())
			stranger(t, w, raw, name, "behind")
			require.NoError(t, raw.Delete(first, -1))
			recipestest.Eventually(t, func() bool { return p.Term() != nil }, "the turn has come")
			require.Greater(t, p.Term().Token(), leader.Token)
			list, err := Participants(t.Context(), c, where)
			require.NoError(t, err)
			require.Equal(t, []string{"own", "behind"}, []string{list[0].ID, list[1].ID})
			p.leave()
		})
	}
}

// TestOneNotification counts what the server sends: at each change of leaders, the next one hears of it, and nobody else.
func TestOneNotification(t *testing.T) {
	const participants = 6
	for kind, start := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := recipestest.Start(t)
			look := w.Client(t)
			var all []participant
			var proxies []*servertest.Proxy
			var ids []string
			for i := range participants {
				c, p := w.Faulty(t)
				ids = append(ids, fmt.Sprint(i))
				all, proxies = append(all, start(t, c, ids[i])), append(proxies, p)
				lined(t, look, ids...)
			}
			changes := 0
			heard := func(next int) {
				t.Helper()
				recipestest.Eventually(t, func() bool { return all[next].Term() != nil }, "the next one leads")
				changes++
				total := 0
				for _, p := range proxies {
					total += p.Notifications()
				}
				require.Equal(t, changes, total)
			}
			for round := range participants + 1 {
				leading(t, all[round%participants]).give()
				heard((round + 1) % participants)
				lined(t, look, ids...)
			}
			for i := range participants - 1 { // the leader is number 1 now
				all[(1+i)%participants].leave()
				heard((2 + i) % participants)
			}
		})
	}
}

// TestPredecessorGoes has a participant whose predecessor goes between its look at the line and its watch.
func TestPredecessorGoes(t *testing.T) {
	w := recipestest.Start(t)
	raw := w.Raw(t)
	c, proxy := w.Faulty(t)
	require.NoError(t, c.EnsurePath(t.Context(), where))
	first := stranger(t, w, raw, "_c_01234567-89ab-cdef-0123-456789abcdef-latch-", "stranger")
	proxy.DropRequest(servertest.OpGetData) // while the connection is made again, the predecessor goes
	proxy.Refuse(true)
	l, err := StartLatch(c, where, "own")
	require.NoError(t, err)
	defer l.Close()
	lined(t, w.Client(t), "stranger", "own")
	require.NoError(t, raw.Delete(first, -1))
	proxy.Refuse(false)
	recipestest.Eventually(t, func() bool { return l.Term() != nil }, "the latch leads")
	_, _, err = raw.Get(first)
	require.ErrorIs(t, err, zk.ErrNoNode)
}
