package recipestest

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// Restart shuts the server down and starts it again; of an ensemble, all members. Sessions survive that. Where the server
// is not ours, all connections of clients are cut and refused for a moment. When it returns, Raw connections work again.
func (w *World) Restart() {
	w.t.Helper()
	switch {
	case w.server != nil:
		w.server.Restart()
	case w.ensemble != nil:
		for id := 1; id <= w.ensemble.Size(); id++ {
			w.ensemble.Stop(id)
		}
		for id := 1; id <= w.ensemble.Size(); id++ {
			w.ensemble.Start(id)
		}
		w.ensemble.Await()
	default:
		w.interrupt()
	}
	w.awaitRaws()
}

// interrupt makes every proxy refuse for a moment.
func (w *World) interrupt() {
	for _, p := range w.proxies {
		p.Refuse(true)
		p.Cut()
	}
	time.Sleep(outage) // the fault itself, and not a wait for something
	for _, p := range w.proxies {
		p.Refuse(false)
	}
}

// ChangeLeader kills the leader of the ensemble, waits until another member leads, and starts the killed one again. When
// it returns, all members serve. It is for worlds that StartThree has made.
func (w *World) ChangeLeader() {
	w.t.Helper()
	if w.ensemble == nil {
		w.t.Fatal("recipestest: there is no ensemble whose leader could change")
	}
	old := w.ensemble.Leader()
	w.ensemble.Kill(old)
	w.ensemble.Leader()
	w.ensemble.Restart(old)
	w.ensemble.Await()
	w.awaitRaws()
}

// awaitRaws waits until Raw connections, which the test still uses, have found the servers again.
func (w *World) awaitRaws() {
	w.t.Helper()
	for _, raw := range w.raws {
		Eventually(w.t, func() bool { return usable(raw) }, "connections of package zk work again")
	}
}

// usable tells that a connection works, or that the test has closed it.
func usable(raw *zk.Conn) bool {
	_, _, err := raw.Exists("/")
	return err == nil || err == zk.ErrClosing
}
