// Package recipestest is what the tests of the recipes share: a ZooKeeper of their own, clients of it, and the faults that
// recipes have to live with. Start gives a World, StartThree one with an ensemble; World.Client and World.Faulty connect to it.
//
// With the variable ZABRA_RECIPES_SERVER=host:port the tests run against that server instead, which may be Apache's. Every
// World has a node of its own there, below which everything happens, and removes it at the end.
package recipestest

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/server/servertest"
)

// serverVariable names the server to test against; empty for one in this process.
const serverVariable = "ZABRA_RECIPES_SERVER"

const (
	// SessionTimeout is what clients ask for. A server in this process gives it; another may give a longer one.
	SessionTimeout = 2 * time.Second
	// tickMs allows for session timeouts from 200 ms to 2 s.
	tickMs = "100"
	// waitMax bounds everything that is waited for. It is far above what is ever needed.
	waitMax = 30 * time.Second
	// contextMax is longer, since a call may wait for several things.
	contextMax = 2 * waitMax
	// outage is for how long the proxies refuse in place of a restart of a server that is not ours.
	outage = 100 * time.Millisecond
	// addrRepeats is how often package zk is given each address: it waits for a second after each round through the list.
	addrRepeats = 3
)

// World is a ZooKeeper, and a node in it, below which a test happens. Its methods are for the test's own goroutine.
type World struct {
	t        testing.TB
	server   *servertest.Server   // nil for an ensemble, and for a server that is not ours
	ensemble *servertest.Ensemble // nil unless there is one
	external string               // address of a server that is not ours
	addrs    []string             // what clients connect to
	root     string
	proxies  []*servertest.Proxy
	raws     []*zk.Conn
}

// Start gives a World with one server, which ends with the test.
func Start(t testing.TB) *World {
	t.Helper()
	w := &World{t: t}
	if w.external = os.Getenv(serverVariable); w.external != "" {
		// Not even the other clients connect directly: Restart has to reach them.
		p := servertest.NewProxy(t, w.external)
		w.proxies, w.addrs = append(w.proxies, p), []string{p.Addr()}
	} else {
		w.server = servertest.Start(t, servertest.WithConfig("tickTime", tickMs))
		w.addrs = []string{w.server.Addr()}
	}
	w.begin()
	return w
}

// StartThree gives a World with an ensemble of three servers. With a server that is not ours the test is skipped.
func StartThree(t testing.TB) *World {
	t.Helper()
	if os.Getenv(serverVariable) != "" {
		t.Skip("the test ends members of an ensemble, and the server that " + serverVariable + " names is not to be ended")
	}
	w := &World{t: t, ensemble: servertest.StartEnsemble(t, 3, servertest.WithConfig("tickTime", tickMs))}
	for id := 1; id <= w.ensemble.Size(); id++ {
		w.addrs = append(w.addrs, w.ensemble.Server(id).Addr())
	}
	w.begin()
	return w
}

// begin makes the node that everything lies below, and sees to its end where the server goes on.
func (w *World) begin() {
	w.t.Helper()
	var id [8]byte
	for i := range id {
		id[i] = byte(rand.Uint32())
	}
	w.root = "/recipes-test-" + hex.EncodeToString(id[:])
	raw := w.Raw(w.t)
	Eventually(w.t, func() bool {
		_, err := raw.Create(w.root, nil, 0, zk.WorldACL(zk.PermAll))
		return err == nil || err == zk.ErrNodeExists
	}, w.root+" is made")
	if w.external != "" {
		w.t.Cleanup(func() { w.remove(raw) })
	}
}

// remove deletes everything below the root and the root itself. Ephemeral nodes of clients that were cut off may be there
// for a while.
func (w *World) remove(raw *zk.Conn) {
	Eventually(w.t, func() bool { return removeTree(raw, w.root) }, w.root+" is removed")
}

func removeTree(raw *zk.Conn, path string) bool {
	children, _, err := raw.Children(path)
	if err != nil && err != zk.ErrNoNode && err != zk.ErrNoAuth { // to delete a node is a right at its parent
		return false
	}
	for _, name := range children {
		if !removeTree(raw, path+"/"+name) {
			return false
		}
	}
	err = raw.Delete(path, -1)
	return err == nil || err == zk.ErrNoNode
}

// Abs returns the absolute path, for Raw, of one as recipes see it.
func (w *World) Abs(path string) string {
	if path == "/" {
		return w.root
	}
	return w.root + path
}

// Client connects a client, which is closed with the test. Its options are those that work here, a session timeout of 2 s
// and the World's node as namespace, and then changed. A namespace within that of the World begins with the one given.
func (w *World) Client(t testing.TB, change ...func(*recipes.Options)) *recipes.Client {
	t.Helper()
	return w.connect(t, w.addrs, change)
}

// Faulty connects a client through a proxy of its own, in front of one server; in an ensemble it is one that follows.
func (w *World) Faulty(t testing.TB, change ...func(*recipes.Options)) (*recipes.Client, *servertest.Proxy) {
	t.Helper()
	addr := w.external
	switch {
	case w.ensemble != nil:
		addr = w.ensemble.Server(w.ensemble.Follower()).Addr()
	case w.server != nil:
		addr = w.server.Addr()
	}
	p := servertest.NewProxy(t, addr)
	w.proxies = append(w.proxies, p)
	return w.connect(t, []string{p.Addr()}, change), p
}

func (w *World) connect(t testing.TB, addrs []string, change []func(*recipes.Options)) *recipes.Client {
	t.Helper()
	o := recipes.Options{SessionTimeout: SessionTimeout, Namespace: w.root}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	c, err := recipes.Connect(ctx, addrs, o)
	if err != nil {
		t.Fatalf("recipestest: connecting to %v: %v", addrs, err)
	}
	t.Cleanup(c.Close)
	return c
}

// Raw connects package zk itself, to look at nodes and to break things. It has a session, and it is closed with the test.
func (w *World) Raw(t testing.TB) *zk.Conn {
	t.Helper()
	addrs := w.addrs
	if w.external != "" {
		addrs = []string{w.external}
	}
	var again []string
	for range addrRepeats {
		again = append(again, addrs...)
	}
	conn, events, err := zk.Connect(again, SessionTimeout, zk.WithLogInfo(false), zk.WithLogger(silence{}))
	if err != nil {
		t.Fatalf("recipestest: connecting to %v: %v", addrs, err)
	}
	t.Cleanup(conn.Close)
	w.raws = append(w.raws, conn)
	for timeout := time.After(waitMax); conn.State() != zk.StateHasSession; {
		select {
		case <-events:
		case <-timeout:
			t.Fatalf("recipestest: no session at %v", addrs)
		}
	}
	return conn
}

type silence struct{}

func (silence) Printf(string, ...any) {}

// Context returns a context that ends with the test, or long after anything that is waited for should have come.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), contextMax)
	t.Cleanup(cancel)
	return ctx
}

// Eventually waits until cond holds. If it never does, the test fails and says what was waited for.
func Eventually(t testing.TB, cond func() bool, what string) {
	t.Helper()
	for deadline := time.Now().Add(waitMax); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("it took too long until %s", what)
		}
		time.Sleep(time.Millisecond) // between two looks at a condition that nothing else tells
	}
}
