package recipestest

import (
	"flag"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"zabra/recipes"
	"zabra/server/servertest"
)

const (
	// randomVariable has Seed take another seed in each run.
	randomVariable = "ZABRA_RANDOM"
	// seedVariable is the seed to take, to run a schedule again.
	seedVariable = "ZABRA_RECIPES_SEED"
)

// Fault is what happens to a client and its server while a recipe works.
type Fault struct {
	// Hurt does it, to a world and the proxy in front of a client.
	Hurt func(*World, *servertest.Proxy)
	// Expires tells that the session does not survive it.
	Expires bool
	three   bool // it needs an ensemble
}

// Faults returns what every recipe has to live with, by name.
func Faults() map[string]Fault {
	return map[string]Fault{
		"nothing":        {Hurt: func(*World, *servertest.Proxy) {}},
		"connection cut": {Hurt: func(_ *World, p *servertest.Proxy) { p.Cut() }},
		"slow network":   {Hurt: func(_ *World, p *servertest.Proxy) { p.Delay(5 * time.Millisecond) }},
		"server restart": {Hurt: func(w *World, _ *servertest.Proxy) { w.Restart() }},
		"leader change":  {Hurt: func(w *World, _ *servertest.Proxy) { w.ChangeLeader() }, three: true},
		"session expiry": {Hurt: func(_ *World, p *servertest.Proxy) { p.Expire() }, Expires: true},
	}
}

// Start gives the World that the fault needs, and a client of it behind a proxy.
func (f Fault) Start(t testing.TB) (*World, *recipes.Client, *servertest.Proxy) {
	t.Helper()
	start := Start
	if f.three {
		start = StartThree
	}
	w := start(t)
	c, p := w.Faulty(t)
	return w, c, p
}

// Together runs all cases at the same time, for they mostly wait. Tests that are parallel would wait for a processor each.
func Together[C any](t *testing.T, cases map[string]C, run func(*testing.T, C)) {
	var all sync.WaitGroup
	for name, c := range cases {
		all.Go(func() { t.Run(name, func(t *testing.T) { run(t, c) }) })
	}
	all.Wait()
}

// Gate keeps a client from making connections while it is held. Its methods are for the test's own goroutine.
type Gate struct {
	mu   sync.Mutex // held with the gate, and while a connection is being made
	held bool
}

// Hold waits for a connection that is being made, and lets none be made until Release.
func (g *Gate) Hold() {
	g.mu.Lock()
	g.held = true
}

// Release lets connections be made again. It does nothing if the gate is not held.
func (g *Gate) Release() {
	if g.held {
		g.held = false
		g.mu.Unlock()
	}
}

func (g *Gate) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return net.DialTimeout(network, address, timeout)
}

// Gated connects a client through a proxy and a gate. A connection that the gate keeps waiting comes sooner than one that is
// refused, after which package zk waits for a second.
func (w *World) Gated(t testing.TB) (*recipes.Client, *servertest.Proxy, *Gate) {
	t.Helper()
	gate := &Gate{}
	c, p := w.Faulty(t, func(o *recipes.Options) { o.Dial = gate.dial })
	t.Cleanup(gate.Release) // before the client is closed, which may wait for a connection
	return c, p, gate
}

// Seed returns the seed of a random schedule, and logs it. It is the same in each run, unless ZABRA_RANDOM is set,
// for another one each time, or ZABRA_RECIPES_SEED, for that number.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(20261130)
	if os.Getenv(randomVariable) != "" {
		seed = rand.Uint64()
	}
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("recipestest: %s: %v", seedVariable, err)
		}
	}
	t.Logf("seed %d", seed)
	return seed
}

// MainParallel is Main for tests that mostly wait, each for a World of its own: so many run at a time, unless -parallel says
// otherwise.
func MainParallel(m *testing.M, tests int) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
			panic(err)
		}
	}
	Main(m)
}
