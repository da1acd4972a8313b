package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// kinds are all kinds of nodes.
var kinds = []Options{
	{Mode: Ephemeral},
	{Mode: Ephemeral, Protect: true},
	{Mode: EphemeralSequential, Protect: true},
	{Mode: Persistent},
	{Mode: Persistent, Protect: true},
	{Mode: PersistentSequential, Protect: true},
}

func (o Options) String() string {
	return [...]string{"ephemeral", "ephemeral sequential", "persistent", "persistent sequential"}[o.Mode] +
		map[bool]string{true: " protected"}[o.Protect]
}

// fault is something that goes wrong for the client that keeps a node.
type fault struct {
	name string
	// before happens before the node is kept, during while it stands.
	before func(p *servertest.Proxy)
	during func(w *recipestest.World, c *recipes.Client, p *servertest.Proxy)
	// loses tells that an ephemeral node cannot survive it.
	loses bool
	three bool
	// bare is for where the parents are missing.
	bare bool
	// slow is for what takes seconds.
	slow bool
}

var faults = []fault{
	{name: "reply of create lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpCreate) }},
	{name: "reply of create lost twice", before: func(p *servertest.Proxy) {
		p.DropReply(servertest.OpCreate)
		p.DropReply(servertest.OpCreate)
	}},
	{name: "create lost", before: func(p *servertest.Proxy) { p.DropRequest(servertest.OpCreate) }},
	{name: "reply of the parents lost", bare: true, before: func(p *servertest.Proxy) { p.DropReply(servertest.OpCreateContainer) }},
	{name: "reply of a create without parents lost", bare: true, before: func(p *servertest.Proxy) { p.DropReply(servertest.OpCreate) }},
	{name: "reply of the look lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpGetData) }},
	{name: "reply of set lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpSetData) }},
	{name: "set lost", before: func(p *servertest.Proxy) { p.DropRequest(servertest.OpSetData) }},
	{name: "reply of delete lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpDelete) }},
	{name: "slow network", before: func(p *servertest.Proxy) { p.Delay(20 * time.Millisecond) }},
	{name: "connection cut", during: func(_ *recipestest.World, _ *recipes.Client, p *servertest.Proxy) { p.Cut() }},
	{name: "session expired", slow: true, loses: true, during: func(_ *recipestest.World, _ *recipes.Client, p *servertest.Proxy) { p.Expire() }},
	{name: "lease run out", slow: true, during: func(_ *recipestest.World, c *recipes.Client, p *servertest.Proxy) {
		s := c.Session()
		p.Freeze()
		<-s.Done()
		p.Thaw()
	}},
	{name: "server restarted", slow: true, during: func(w *recipestest.World, _ *recipes.Client, _ *servertest.Proxy) { w.Restart() }},
	{name: "leader changed", slow: true, three: true, during: func(w *recipestest.World, _ *recipes.Client, _ *servertest.Proxy) { w.ChangeLeader() }},
}

// TestFaults has each kind of node meet each fault. In the end it stands, with the data, and is the only one.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		for _, o := range kinds {
			if f.slow && (o.Mode.sequential() != o.Protect || o.Mode == PersistentSequential) {
				continue // the others show what there is to show
			}
			t.Run(fmt.Sprintf("%v, %s", o, f.name), func(t *testing.T) {
				t.Parallel()
				tryFault(t, f, o)
			})
		}
	}
}

func tryFault(t *testing.T, f fault, o Options) {
	w := world(t, f.three)
	c, proxy := w.Faulty(t, short)
	look := w.Client(t)
	if !f.bare { // the first create is to be the one that makes the node
		require.NoError(t, look.EnsurePath(t.Context(), dir))
	}
	if f.before != nil {
		f.before(proxy)
	}
	creates := proxy.Requests(servertest.OpCreate)
	n := start(t, c, "one", o)
	created(t, n)
	require.Greater(t, proxy.Requests(servertest.OpCreate), creates)
	before := settled(t, look, n, "one")
	if f.during != nil {
		f.during(w, c, proxy)
	}
	if f.loses && o.Mode.ephemeral() {
		recipestest.Eventually(t, func() bool {
			return settled(t, look, n, "one").Czxid > before.Czxid
		}, "the node is made again")
	}
	settled(t, look, n, "one")
	require.NoError(t, n.Set(bounded(t), []byte("two")))
	settled(t, look, n, "two")
	n.Close()
	empty(t, look)
}

// TestClosedWhileBeingMade closes a node when the reply to its create is lost and there is no connection: it is found and
// deleted when there is one.
func TestClosedWhileBeingMade(t *testing.T) {
	for _, o := range kinds {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			t.Parallel()
			w := recipestest.Start(t)
			look := w.Client(t)
			require.NoError(t, look.EnsurePath(t.Context(), dir))
			c, proxy := w.Faulty(t)
			proxy.DropReply(servertest.OpCreate)
			proxy.Refuse(true)
			n := start(t, c, "data", o)
			recipestest.Eventually(t, func() bool { return len(children(t, look)) == 1 }, "the node is made")
			n.Close()
			_, err := n.AwaitCreated(t.Context())
			require.ErrorIs(t, err, ErrClosed)
			require.Len(t, children(t, look), 1)
			proxy.Refuse(false)
			empty(t, look)
		})
	}
}

const (
	scheduleSteps = 40
	stepMax       = 60 * time.Millisecond
	delayMax      = 30 * time.Millisecond
)

// TestRandomSchedule sets the data of nodes again and again while connections fail at random and others delete the nodes. In
// the end each stands, with what was set last.
func TestRandomSchedule(t *testing.T) {
	for _, o := range kinds {
		random := rand.New(rand.NewPCG(recipestest.Seed(t), 0))
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			t.Parallel()
			runSchedule(t, random, o)
		})
	}
}

func runSchedule(t *testing.T, random *rand.Rand, o Options) {
	w := recipestest.Start(t)
	look := w.Client(t)
	c, p := w.Faulty(t, short)
	n := start(t, c, "0", o)
	data := "0"
	ops := []int32{servertest.OpCreate, servertest.OpSetData, servertest.OpGetChildren2, servertest.OpGetData, servertest.OpExists, servertest.OpSync}
	for step := range scheduleSteps {
		op := ops[random.IntN(len(ops))]
		switch random.IntN(10) {
		case 0:
			p.Freeze()
		case 1:
			p.Refuse(true)
			p.Cut()
		case 2, 3:
			p.Refuse(false)
			p.Thaw()
		case 4:
			p.DropReply(op)
		case 5:
			p.DropRequest(op)
		case 6:
			p.Delay(time.Duration(random.Int64N(int64(delayMax))))
		case 7:
			if at := n.Path(); at != "" {
				look.DeleteSurely(at)
			}
		default:
			data = fmt.Sprint(step)
			ctx, cancel := contextOf(t, stepMax)
			_ = n.Set(ctx, []byte(data)) // it reaches the node sooner or later
			cancel()
		}
		time.Sleep(time.Duration(random.Int64N(int64(stepMax)))) // what happened takes its course
	}
	p.Refuse(false)
	p.Thaw()
	p.Delay(0)
	settled(t, look, n, data)
	n.Close()
	empty(t, look)
}
