package counter

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitMax bounds everything that is waited for. It is far above what is ever needed.
const waitMax = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	t.Cleanup(cancel)
	return ctx
}

// fault is what happens to a client and its server while a recipe works.
type fault struct {
	name string
	// start makes the world; nil is one server.
	start func(testing.TB) *recipestest.World
	hurt  func(*recipestest.World, *servertest.Proxy)
	// expires tells that the session does not survive it.
	expires bool
}

var faults = []fault{
	{name: "nothing", hurt: func(*recipestest.World, *servertest.Proxy) {}},
	{name: "connection cut", hurt: func(_ *recipestest.World, p *servertest.Proxy) { p.Cut() }},
	{name: "slow network", hurt: func(_ *recipestest.World, p *servertest.Proxy) { p.Delay(5 * time.Millisecond) }},
	{name: "server restart", hurt: func(w *recipestest.World, _ *servertest.Proxy) { w.Restart() }},
	{name: "leader change", start: recipestest.StartThree, hurt: func(w *recipestest.World, _ *servertest.Proxy) { w.ChangeLeader() }},
	{name: "session expiry", hurt: func(_ *recipestest.World, p *servertest.Proxy) { p.Expire() }, expires: true},
}

func (f fault) world(t testing.TB) (*recipestest.World, *recipes.Client, *servertest.Proxy) {
	start := f.start
	if start == nil {
		start = recipestest.Start
	}
	w := start(t)
	c, p := w.Faulty(t)
	return w, c, p
}
