package recipes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func TestProtectedCreateIsCarriedOutOnce(t *testing.T) {
	for name, fault := range map[string]func(*servertest.Proxy){
		"no fault":                   func(*servertest.Proxy) {},
		"the reply is lost":          func(p *servertest.Proxy) { p.DropReply(opCreate) },
		"the request is lost":        func(p *servertest.Proxy) { p.DropRequest(opCreate) },
		"the search is lost, too":    func(p *servertest.Proxy) { p.DropReply(opCreate); p.DropReply(opChildren) },
		"the connection was cut":     func(p *servertest.Proxy) { p.Cut() },
		"the network is slow":        func(p *servertest.Proxy) { p.Delay(20 * time.Millisecond) },
		"the reply to exist is lost": func(p *servertest.Proxy) { p.DropReply(opExists) },
	} {
		t.Run(name, func(t *testing.T) {
			w := recipestest.Start(t)
			c, p := w.Faulty(t)
			require.NoError(t, c.EnsurePath(t.Context(), "/locks/a"))
			fault(p)
			s := c.Session()
			node, err := c.CreateProtected(t.Context(), s, "/locks/a/lock-", []byte("me"), zk.FlagEphemeralSequential)
			require.NoError(t, err)
			children, _, err := c.Children(t.Context(), "/locks/a")
			require.NoError(t, err)
			require.Len(t, children, 1)
			require.Equal(t, "/locks/a/"+children[0], node.Path)
			require.Regexp(t, `^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-[0-9]{10}$`, children[0])
			data, stat, err := c.Get(t.Context(), node.Path)
			require.NoError(t, err)
			require.Equal(t, "me", string(data))
			require.Equal(t, stat.Czxid, node.Czxid)
			require.Equal(t, s.ID(), stat.EphemeralOwner)
			require.Same(t, s, node.Session)
		})
	}
}

func TestProtectedCreateMakesParents(t *testing.T) {
	w := recipestest.Start(t)
	c := w.Client(t)
	node, err := c.CreateProtected(t.Context(), c.Session(), "/deep/er/member", nil, zk.FlagEphemeral)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(node.Path, "-member"), node.Path)
}

func TestProtectedCreateRefusesWhatIsNotEphemeral(t *testing.T) {
	w := recipestest.Start(t)
	c := w.Client(t)
	for _, flags := range []int32{zk.FlagPersistent, zk.FlagSequence, zk.FlagContainer, zk.FlagTTL, -1} {
		_, err := c.CreateProtected(t.Context(), c.Session(), "/a", nil, flags)
		require.ErrorIs(t, err, zk.ErrInvalidFlags, "%d", flags)
	}
	_, err := c.CreateProtected(t.Context(), c.Session(), "a/", nil, zk.FlagEphemeral)
	require.ErrorIs(t, err, recipes.ErrPath)
}

// TestProtectedCreateIsOfItsSession has requests wait in the client while the session expires: package zk sends them under
// the next session.
func TestProtectedCreateIsOfItsSession(t *testing.T) {
	w := recipestest.Start(t)
	c, p := w.Faulty(t)
	require.NoError(t, c.EnsurePath(t.Context(), "/locks"))
	s := c.Session()
	p.Refuse(true)
	p.Cut()
	recipestest.Eventually(t, func() bool { return !c.State().IsConnected() }, "the connection is gone")
	p.Expire()
	failed := make(chan error)
	go func() {
		_, err := c.CreateProtected(t.Context(), s, "/locks/lock-", nil, zk.FlagEphemeralSequential)
		failed <- err
	}()
	p.Refuse(false)
	require.ErrorIs(t, <-failed, recipes.ErrSessionLost)
	next, err := c.AwaitSession(t.Context())
	require.NoError(t, err)
	require.NotSame(t, s, next)
	require.NoError(t, c.EnsurePath(t.Context(), "/locks/the-mark-"))
	onlyMark(t, c)
}

// onlyMark waits until nothing is left below /locks but the mark.
func onlyMark(t *testing.T, c *recipes.Client) {
	t.Helper()
	recipestest.Eventually(t, func() bool {
		children, _, err := c.Children(t.Context(), "/locks")
		return err == nil && len(children) == 1 && strings.HasSuffix(children[0], "-mark-")
	}, "only the mark is left")
}

// A session that is over ends the call, also where it waits for a connection to look at what was made.
func TestProtectedCreateEndsWithItsSession(t *testing.T) {
	for _, op := range []int32{opCreate, opExists} {
		w := recipestest.Start(t)
		c, p := w.Faulty(t)
		require.NoError(t, c.EnsurePath(t.Context(), "/locks/the-mark-"))
		p.DropRequest(op)
		p.Refuse(true)
		_, err := c.CreateProtected(t.Context(), c.Session(), "/locks/lock-", nil, zk.FlagEphemeralSequential)
		require.ErrorIs(t, err, recipes.ErrSessionLost, "%d", op)
		p.Refuse(false)
		_, err = c.AwaitSession(t.Context())
		require.NoError(t, err)
		onlyMark(t, c)
	}
}

func TestProtectedCreateThatIsGivenUpLeavesNothing(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			w := recipestest.Start(t)
			c, p := w.Faulty(t)
			require.NoError(t, c.EnsurePath(t.Context(), "/locks/the-mark-")) // keeps the container
			p.Delay(time.Duration(rng.IntN(4)) * time.Millisecond)
			for range 5 {
				if rng.IntN(3) == 0 {
					p.DropReply(opCreate)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(8000))*time.Microsecond)
				node, err := c.CreateProtected(ctx, c.Session(), "/locks/lock-", nil, zk.FlagEphemeralSequential)
				cancel()
				if err == nil {
					c.DeleteSurely(node.Path)
				}
			}
			onlyMark(t, c)
		})
	}
}
