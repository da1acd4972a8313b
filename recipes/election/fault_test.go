package election

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// fault is something that goes wrong for one participant.
type fault struct {
	name string
	// before happens before it takes part, during while it leads.
	before func(p *servertest.Proxy)
	during func(w *recipestest.World, p *servertest.Proxy, term *Term)
	// loses tells that the term cannot survive it.
	loses bool
	three bool
}

var faults = []fault{
	{name: "reply of create lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpCreate) }},
	{name: "create lost", before: func(p *servertest.Proxy) { p.DropRequest(servertest.OpCreate) }},
	{name: "reply of the list lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpGetChildren2) }},
	{name: "reply of delete lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpDelete) }},
	{name: "delete lost", before: func(p *servertest.Proxy) { p.DropRequest(servertest.OpDelete) }},
	{name: "slow network", before: func(p *servertest.Proxy) { p.Delay(20 * time.Millisecond) }},
	{name: "connection cut", during: func(_ *recipestest.World, p *servertest.Proxy, _ *Term) { p.Cut() }},
	{name: "session expired", loses: true, during: func(_ *recipestest.World, p *servertest.Proxy, _ *Term) { p.Expire() }},
	{name: "lease run out", loses: true, during: func(_ *recipestest.World, p *servertest.Proxy, term *Term) {
		p.Freeze()
		<-term.Lost()
		p.Thaw()
	}},
	{name: "server restarted", during: func(w *recipestest.World, _ *servertest.Proxy, _ *Term) { w.Restart() }},
	{name: "leader changed", three: true, during: func(w *recipestest.World, _ *servertest.Proxy, _ *Term) { w.ChangeLeader() }},
}

// TestFaults has one participant meet each fault while another waits behind it. Whatever happens, one of them leads, tokens
// grow with each change, and no node is left behind.
func TestFaults(t *testing.T) {
	for kind, start := range kinds {
		for _, f := range faults {
			t.Run(kind+", "+f.name, func(t *testing.T) {
				t.Parallel()
				tryFault(t, f, start)
			})
		}
	}
}

func tryFault(t *testing.T, f fault, start startFunc) {
	w := world(t, f.three)
	c, proxy := w.Faulty(t, short)
	other := w.Client(t)
	require.NoError(t, other.EnsurePath(t.Context(), where)) // the first create is to be the one that makes the node
	if f.before != nil {
		f.before(proxy)
	}
	a := start(t, c, "a")
	var term *Term
	recipestest.Eventually(t, func() bool { term = a.Term(); return term != nil }, "the first one leads")
	token := term.Token()
	b := start(t, other, "b")
	lined(t, other, "a", "b")
	if f.during != nil {
		f.during(w, proxy, term)
	}
	if f.loses {
		<-term.Lost()
		require.Error(t, term.Err())
	}
	lined(t, other, "a", "b")
	for range 3 {
		leader := leading(t, a, b)
		term := leader.Term()
		if term == nil {
			continue // lost in this moment
		}
		require.GreaterOrEqual(t, term.Token(), token)
		require.False(t, f.loses && term.Token() == token, "a new term has a new token")
		token = term.Token()
		leader.give()
		<-term.Lost()
		recipestest.Eventually(t, func() bool { return leadsAfter(token, a, b) }, "another term")
	}
	a.leave()
	b.leave()
	lined(t, other)
}

// leadsAfter tells whether one of the participants has a term with a larger token.
func leadsAfter(token int64, all ...participant) bool {
	for _, p := range all {
		if term := p.Term(); term != nil && term.Token() > token {
			return true
		}
	}
	return false
}
