package sim

import (
	"fmt"
	"runtime/debug"

	"zabra/zab"
	"zabra/zab/ensemble"
	"zabra/zab/zxid"
	"zabra/znode"
)

// Options say which world is run, and how.
type Options struct {
	Seed uint64
	// Core are bugs planted in zab, Host those of the machinery around it. Both are for showing that they are found.
	Core zab.Plant
	Host HostPlant
	// Keep makes the trace readable.
	Keep bool
	// Leave names faults of the seed, by their place, that are left out.
	Leave map[int]bool
}

// world is an ensemble with its clients, its network, its disks and its time. Everything in it happens in one goroutine
// and follows from the seed.
type world struct {
	opts  Options
	queue schedule
	trace trace
	steps int
	count Counts

	rnd        random
	netRnd     random
	diskRnd    random
	clientRnd  random
	ensemble   *ensemble.Config
	treeConfig znode.Config
	snapCount  int
	compress   string
	sizeFactor float64
	preAlloc   int64

	servers []*server // by id, from 1
	net     network
	clients []*client
	faults  []Fault
	active  int // faults that go on
	// calmSince is when the last fault ended, far in the future while one goes on.
	calmSince Micros
	healed    bool // no more faults
	outageAt  Micros

	ghost ghost
	// writes are the requests of clients that may become transactions.
	writes map[writeID]*request
	failed *Failure
}

// Failure is a broken invariant.
type Failure struct {
	Invariant string
	Text      string
	At        Micros
}

// Error implements error.
func (f *Failure) Error() string { return fmt.Sprintf("%s at %v: %s", f.Invariant, f.At, f.Text) }

// failNow is what fail panics with: it unwinds to run.
type failNow struct{}

// fail ends the world: an invariant is broken.
func (w *world) fail(invariant, format string, args ...any) {
	if w.failed == nil {
		w.failed = &Failure{Invariant: invariant, Text: fmt.Sprintf(format, args...), At: w.queue.now}
	}
	panic(failNow{})
}

// Result is what came out of a world.
type Result struct {
	Seed    uint64
	Failure *Failure
	Digest  uint64
	Steps   int
	Now     Micros
	Counts  Counts
	Faults  []Fault
	trace   trace
}

// Run runs one world to its end.
func Run(opts Options) Result {
	w := newWorld(opts)
	w.run()
	return Result{Seed: opts.Seed, Failure: w.failed, Digest: w.trace.digest, Steps: w.steps, Now: w.queue.now, Counts: w.count,
		Faults: w.faults, trace: w.trace}
}

func newWorld(opts Options) *world {
	w := &world{
		opts: opts, rnd: newRandom(opts.Seed, streamWorld), netRnd: newRandom(opts.Seed, streamNetwork),
		diskRnd: newRandom(opts.Seed, streamDisk), clientRnd: newRandom(opts.Seed, streamClients),
		writes: map[writeID]*request{},
	}
	w.trace = trace{digest: opts.Seed + 1, keep: opts.Keep}
	voters := 3
	if w.rnd.chance(4) {
		voters = 5
	}
	members := make([]ensemble.Member, 0, voters+1)
	for id := 1; id <= voters; id++ {
		members = append(members, ensemble.Member{ID: zxid.ServerID(id)})
	}
	if w.rnd.chance(5) {
		members = append(members, ensemble.Member{ID: zxid.ServerID(voters + 1), Observer: true})
	}
	var err error
	if w.ensemble, err = ensemble.New(members, 0); err != nil {
		panic(err)
	}
	auth, err := znode.NewAuth(znode.AuthConfig{})
	if err != nil {
		panic(err)
	}
	w.treeConfig = znode.Config{ExtendedTypes: true, Auth: auth}
	w.snapCount = 20 + w.rnd.IntN(100)
	w.preAlloc = []int64{0, 0, 8 << 10}[w.rnd.IntN(3)]
	w.compress = []string{"", "", "", "snappy"}[w.rnd.IntN(4)]
	w.sizeFactor = []float64{0, 0, 1, -1}[w.rnd.IntN(4)]
	w.ghost.init(w)
	for _, m := range w.ensemble.Members() {
		w.servers = append(w.servers, newServer(w, m))
	}
	w.net.init(w)
	w.faults = w.planFaults()
	for i := range 3 + w.rnd.IntN(3) {
		w.clients = append(w.clients, newClient(w, i))
	}
	return w
}

// run is the life of a world: faults, then peace, then rest.
func (w *world) run() {
	defer w.recovered()
	for _, s := range w.servers {
		w.after(w.rnd.between(0, 300*millisecond), func() { s.start() })
	}
	for _, c := range w.clients {
		w.after(w.rnd.between(0, second), c.connect)
	}
	w.startFaults()
	w.after(second, w.audit)
	w.runUntil(faultsTo, nil)
	w.runUntil(faultsExtended, w.busyEnough)
	w.checkBusy()
	w.heal()
	w.prove()
	if w.rnd.chance(3) {
		w.outage()
		w.prove()
	}
	w.close()
}

// faultsWanted is how many faults have to strike: fewer than faultsMin only if that many were not left out.
func (w *world) faultsWanted() int { return min(faultsMin, len(w.faults)-len(w.opts.Leave)) }

func (w *world) busyEnough() bool { return w.count.Ops >= opsMin && w.count.Faults >= w.faultsWanted() }

// checkBusy is E-39 while faults strike: the clients have got on all the same. A world without faults proves nothing.
func (w *world) checkBusy() {
	if w.count.Ops < opsMin {
		w.fail("E-39", "the clients have completed %d operations in %v, %d is the least: %s", w.count.Ops, w.queue.now, opsMin, w.describe())
	}
	if w.count.Faults < w.faultsWanted() {
		w.fail("WORLD", "%d faults have struck in %v, %d is the least: %s", w.count.Faults, w.queue.now, w.faultsWanted(), w.describe())
	}
}

// recovered turns a panic of the code under test into a failure.
func (w *world) recovered() {
	p := recover()
	if p == nil {
		return
	}
	if _, ok := p.(failNow); ok {
		return
	}
	w.failed = &Failure{Invariant: "PANIC", Text: fmt.Sprintf("%v\n%s", p, debug.Stack()), At: w.queue.now}
}

// server returns a server by its id.
func (w *world) server(id zxid.ServerID) *server { return w.servers[id-1] }

// leader returns the server that leads and serves, nil if there is none or more than one.
func (w *world) leader() (leader *server) {
	for _, s := range w.servers {
		if s.up() && s.status.Role == zab.RoleLeading && s.status.Serving {
			if leader != nil {
				return nil
			}
			leader = s
		}
	}
	return leader
}
