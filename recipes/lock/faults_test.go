package lock

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// held is a Guard or Guards.
type held interface {
	Lost() <-chan struct{}
	Unlock(context.Context) error
}

func as[T held](guard T, err error) (held, error) { return guard, err }

// kind is a kind of lock.
type kind struct {
	name string
	dirs []string // where its nodes are
	// take returns what waits for the lock and what holds it. For readers the other side is a writer.
	take, rival func(*recipes.Client, context.Context) (held, error)
}

// exclusive are the locks that one holder at a time can have.
var exclusive = []kind{
	{"mutex", []string{"/lock"}, takeMutex, takeMutex},
	{"writer", []string{"/lock"}, takeWriter, takeReader},
	{"reader", []string{"/lock"}, takeReader, takeWriter},
	{"semaphore", []string{"/lock/locks", "/lock/leases"}, takePermit, takePermit},
	{"multi", []string{"/lock/a", "/lock/b"}, takeMulti, takeMulti},
}

func takeMutex(c *recipes.Client, ctx context.Context) (held, error) {
	return as(NewMutex(c, "/lock", Options{}).Lock(ctx))
}

func takeWriter(c *recipes.Client, ctx context.Context) (held, error) {
	return as(NewRWMutex(c, "/lock", Options{}).Lock(ctx))
}

func takeReader(c *recipes.Client, ctx context.Context) (held, error) {
	return as(NewRWMutex(c, "/lock", Options{}).RLock(ctx))
}

func takePermit(c *recipes.Client, ctx context.Context) (held, error) {
	return as(NewSemaphore(c, "/lock", 1, Options{}).Acquire(ctx))
}

func takeMulti(c *recipes.Client, ctx context.Context) (held, error) {
	return as(NewMulti(NewMutex(c, "/lock/b", Options{}), NewMutex(c, "/lock/a", Options{})).Lock(ctx))
}

// fault is something that befalls one client.
type fault struct {
	name   string
	strike func(*recipestest.World, *servertest.Proxy)
	// over tells that the session is lost for certain.
	over bool
}

var (
	quiet       = fault{"none", func(*recipestest.World, *servertest.Proxy) {}, false}
	cut         = fault{"cut", func(_ *recipestest.World, p *servertest.Proxy) { p.Cut() }, false}
	expiry      = fault{"expiry", func(_ *recipestest.World, p *servertest.Proxy) { p.Expire() }, true}
	slowNetwork = fault{"slow network", func(_ *recipestest.World, p *servertest.Proxy) { p.Delay(20 * time.Millisecond) }, false}
	restart     = fault{"restart", func(w *recipestest.World, _ *servertest.Proxy) { w.Restart() }, false}
)

// lost is the fault that the next requests of these opcodes do not get through.
func lost(name string, ops ...int32) fault {
	return fault{"lost " + name, func(_ *recipestest.World, p *servertest.Proxy) {
		for _, op := range ops {
			p.DropRequest(op)
		}
	}, false}
}

// unanswered is the fault that the replies to the next requests of these opcodes are lost.
func unanswered(name string, ops ...int32) fault {
	return fault{"lost reply of " + name, func(_ *recipestest.World, p *servertest.Proxy) {
		for _, op := range ops {
			p.DropReply(op)
		}
	}, false}
}

// forAll runs a test for each lock and each of the faults, in a world of its own.
func forAll(t *testing.T, faults []fault, test func(t *testing.T, s *scene)) {
	for _, one := range exclusive {
		for _, f := range faults {
			t.Run(one.name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				w := recipestest.Start(t)
				test(t, newScene(t, w, f, one))
			})
		}
	}
}

// scene is one client that a fault strikes, and another one that it has to share a lock with.
type scene struct {
	w     *recipestest.World
	fault fault
	proxy *servertest.Proxy
	// struck and rival are the clients' ways to the lock.
	struck, rival func(context.Context) (held, error)
	client        *recipes.Client // the rival's
	dirs          []string
}

func newScene(t *testing.T, w *recipestest.World, f fault, k kind, namespace ...string) *scene {
	a, proxy := eager(t, w, recipestest.SessionTimeout, namespace...)
	b := w.Client(t, func(o *recipes.Options) { o.Namespace = path.Join(append([]string{o.Namespace}, namespace...)...) })
	return &scene{w: w, fault: f, proxy: proxy, client: b, dirs: k.dirs,
		struck: func(ctx context.Context) (held, error) { return k.take(a, ctx) },
		rival:  func(ctx context.Context) (held, error) { return k.rival(b, ctx) },
	}
}

func (s *scene) strike() { s.fault.strike(s.w, s.proxy) }

// requireEmpty waits until nobody has left anything.
func (s *scene) requireEmpty(t *testing.T) {
	t.Helper()
	for _, dir := range s.dirs {
		requireEmpty(t, s.client, dir)
	}
}

// isHeld asks sharply, as Guard.Held.
func isHeld(h held) bool {
	if guards, several := h.(Guards); several {
		return guards[0].Held()
	}
	return h.(*Guard).Held()
}

// requireWithin waits until somebody stands behind the holder.
func (s *scene) requireWithin(t *testing.T) {
	t.Helper()
	recipestest.Eventually(t, func() bool {
		n := 0
		for _, dir := range s.dirs {
			n += len(nodes(t, s.client, dir))
		}
		return n > len(s.dirs)
	}, "a waiter")
}

// requireNotBoth requires that the waiter has got nothing, or that the holder has lost what it had: a restart may take so long on
// a busy machine.
func requireNotBoth(t *testing.T, waiting chan granted[held], holder held) {
	t.Helper()
	select {
	case g := <-waiting:
		require.NoError(t, g.err)
		require.False(t, isHeld(holder), "granted beside a holder")
		waiting <- g
	default:
	}
}

// TestFaultsBeforeTheLock: whatever happens to the first requests, the lock is had, with one node.
func TestFaultsBeforeTheLock(t *testing.T) {
	forAll(t, []fault{cut, expiry, slowNetwork, restart, lost("create", servertest.OpCreate), unanswered("create", servertest.OpCreate),
		unanswered("two creates", servertest.OpCreate, servertest.OpCreate), unanswered("children", servertest.OpGetChildren2),
	}, func(t *testing.T, s *scene) {
		ctx := recipestest.Context(t)
		s.strike()
		guard, err := s.struck(ctx)
		require.NoError(t, err)
		require.True(t, isHeld(guard))
		waiting := inBackground(ctx, s.rival)
		s.requireWithin(t)
		requireWaiting(t, waiting)
		require.NoError(t, guard.Unlock(ctx))
		require.NoError(t, receive(t, waiting).Unlock(ctx))
		s.requireEmpty(t)
	})
}

// TestFaultsWhileHeld: whatever happens to the holder, the rival gets the lock when the holder has it no more, and not before.
func TestFaultsWhileHeld(t *testing.T) {
	forAll(t, []fault{cut, expiry, slowNetwork, restart, lost("delete", servertest.OpDelete), unanswered("delete", servertest.OpDelete),
		unanswered("delete and read", servertest.OpDelete, servertest.OpExists),
	}, func(t *testing.T, s *scene) {
		ctx := recipestest.Context(t)
		guard, err := s.struck(ctx)
		require.NoError(t, err)
		waiting := inBackground(ctx, s.rival)
		s.requireWithin(t)
		s.strike()
		if s.fault.over {
			requireClosed(t, guard.Lost(), "the holder learns that the session is over")
			second := receive(t, waiting)
			require.ErrorIs(t, guard.Unlock(ctx), recipes.ErrSessionLost)
			require.NoError(t, second.Unlock(ctx))
			s.requireEmpty(t)
			return
		}
		requireNotBoth(t, waiting, guard)
		_ = guard.Unlock(ctx) // lost or not, it ends
		require.NoError(t, receive(t, waiting).Unlock(ctx))
		s.requireEmpty(t)
	})
}

// TestFaultsWhileWaiting: whatever happens to the waiter, it gets the lock at last, in the same call.
func TestFaultsWhileWaiting(t *testing.T) {
	forAll(t, []fault{quiet, cut, expiry, slowNetwork, restart, unanswered("children", servertest.OpGetChildren2)}, func(t *testing.T, s *scene) {
		ctx := recipestest.Context(t)
		first, err := s.rival(ctx)
		require.NoError(t, err)
		waiting := inBackground(ctx, s.struck)
		s.requireWithin(t)
		s.strike()
		requireNotBoth(t, waiting, first)
		_ = first.Unlock(ctx) // it may have been lost in a restart
		second := receive(t, waiting)
		require.NoError(t, second.Unlock(ctx))
		s.requireEmpty(t)
	})
}

// TestChangeOfLeader is the fault that takes an ensemble. It strikes all locks at once.
func TestChangeOfLeader(t *testing.T) {
	w := recipestest.StartThree(t)
	ctx := recipestest.Context(t)
	var scenes []*scene
	var holders []held
	var waiters []chan granted[held]
	for _, k := range exclusive {
		s := newScene(t, w, fault{}, k, k.name)
		holder, err := s.rival(ctx)
		require.NoError(t, err)
		waiting := inBackground(ctx, s.struck)
		s.requireWithin(t)
		scenes, holders, waiters = append(scenes, s), append(holders, holder), append(waiters, waiting)
	}
	w.ChangeLeader()
	for i, s := range scenes {
		requireNotBoth(t, waiters[i], holders[i])
		_ = holders[i].Unlock(ctx) // it may have been lost
		require.NoError(t, receive(t, waiters[i]).Unlock(ctx))
		s.requireEmpty(t)
	}
}

// TestLostByLease has the holder's connection gone for so long that the ensemble may have given up the session, and in the
// end it does. The holder knows first.
func TestLostByLease(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	a, proxy := w.Faulty(t, timeout(500*time.Millisecond))
	guard, err := NewMutex(a, "/lease", Options{}).Lock(ctx)
	require.NoError(t, err)
	b := w.Client(t)
	waiting := inBackground(ctx, NewMutex(b, "/lease", Options{}).Lock)
	requireLine(t, b, "/lease", 2)
	proxy.Freeze()
	second := receive(t, waiting)
	require.False(t, guard.Held(), "lost before the ensemble gives it to another")
	requireClosed(t, guard.Lost(), "and told")
	require.Greater(t, second.Token(), guard.Token())
	proxy.Thaw()
	require.ErrorIs(t, guard.Unlock(ctx), recipes.ErrSessionLost)
	require.NoError(t, second.Unlock(ctx))
	requireEmpty(t, b, "/lease")
}

// TestLostButNotExpired has the session go on at the ensemble after the client has given it up: then nobody but the client
// can remove the node.
func TestLostButNotExpired(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	_, proxy := w.Faulty(t)
	conn, events := dial(t, proxy.Addr())
	c, err := recipes.Wrap(conn, events, recipes.Options{SessionTimeout: 2 * time.Second})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	path := w.Abs("/wrapped")
	guard, err := NewMutex(c, path, Options{}).Lock(ctx)
	require.NoError(t, err)
	id := c.Session().ID()
	look := w.Raw(t)
	proxy.Cut()
	requireClosed(t, guard.Lost(), "without a lease the first disconnect counts")
	recipestest.Eventually(t, func() bool {
		names, _, err := look.Children(path)
		require.NoError(t, err)
		return len(names) == 0
	}, "the node of a lost lock is deleted")
	require.Equal(t, id, c.Session().ID(), "though the session lives")
	require.ErrorIs(t, guard.Unlock(ctx), recipes.ErrSessionLost)
	next, err := NewMutex(c, path, Options{}).Lock(ctx)
	require.NoError(t, err)
	require.NoError(t, next.Unlock(ctx))
}
