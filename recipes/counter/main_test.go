package counter

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }

// waitMax bounds everything that is waited for. It is far above what is ever needed.
const waitMax = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	t.Cleanup(cancel)
	return ctx
}

// fault is what happens to a client and its server while a recipe works.
type fault struct {
	// start makes the world; nil is one server.
	start func(testing.TB) *recipestest.World
	hurt  func(*recipestest.World, *servertest.Proxy)
	// expires tells that the session does not survive it.
	expires bool
}

var faults = map[string]fault{
	"nothing":        {hurt: func(*recipestest.World, *servertest.Proxy) {}},
	"connection cut": {hurt: func(_ *recipestest.World, p *servertest.Proxy) { p.Cut() }},
	"slow network":   {hurt: func(_ *recipestest.World, p *servertest.Proxy) { p.Delay(5 * time.Millisecond) }},
	"server restart": {hurt: func(w *recipestest.World, _ *servertest.Proxy) { w.Restart() }},
	"leader change":  {start: recipestest.StartThree, hurt: func(w *recipestest.World, _ *servertest.Proxy) { w.ChangeLeader() }},
	"session expiry": {hurt: func(_ *recipestest.World, p *servertest.Proxy) { p.Expire() }, expires: true},
}

// together runs all cases at the same time, for they mostly wait. Tests that are parallel would wait for a processor each.
func together[C any](t *testing.T, cases map[string]C, run func(*testing.T, C)) {
	var all sync.WaitGroup
	for name, c := range cases {
		all.Go(func() { t.Run(name, func(t *testing.T) { run(t, c) }) })
	}
	all.Wait()
}

// gated connects a client through a proxy. While the gate is held it makes no connection, which is quicker than one that is
// refused: package zk waits for a second after that.
func gated(t testing.TB, w *recipestest.World) (*recipes.Client, *servertest.Proxy, *sync.Mutex) {
	gate := &sync.Mutex{}
	c, p := w.Faulty(t, func(o *recipes.Options) {
		o.Dial = func(network, address string, timeout time.Duration) (net.Conn, error) {
			gate.Lock()
			defer gate.Unlock()
			return net.DialTimeout(network, address, timeout)
		}
	})
	t.Cleanup(func() { // before the client is closed, which may wait for a connection
		gate.TryLock()
		gate.Unlock()
	})
	return c, p, gate
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
