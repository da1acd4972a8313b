package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab/zxid"
)

// wanderer is a client that writes, reads, syncs and moves between servers. It checks what it is told.
type wanderer struct {
	*client
	f    *flock
	rng  *rand.Rand
	sent []int32
	last zxid.Zxid
	// seen is the highest version of its own node that the session was told of.
	seen int32
	path string
	// kinds are the operations by xid.
	kinds map[int32]wire.Op
	moves int
	born  int64
}

func (w *wanderer) act() {
	switch w.rng.IntN(12) {
	case 0, 1, 2:
		w.note(wire.OpSetData, &wire.SetDataRequest{Path: []byte(w.path), Version: -1})
	case 3, 4:
		w.note(wire.OpGetData, &wire.PathWatchRequest{Path: []byte(w.path)})
	case 5:
		w.note(wire.OpSync, syncRequest())
	case 6:
		w.note(wire.OpCreate, ephemeral(fmt.Sprintf("/e%d-%d", w.c.gen, w.xid)))
	case 7:
		w.note(wire.OpMulti, multi{{Op: wire.OpSetData, Path: []byte(w.path), Version: -1}, {Op: wire.OpCheck, Path: []byte("/none"), Version: 1}})
	case 8:
		if w.rng.IntN(4) == 0 {
			w.move()
		}
	default:
		w.read()
	}
}

func (w *wanderer) note(op wire.Op, req wire.Record) {
	if w.c.state.Load() != stateEstablished {
		return
	}
	x := w.send(op, req)
	w.sent = append(w.sent, x)
	w.kinds[x] = op
}

// read takes what has come: answers in the order of the requests, zxids that never go back, versions that never do.
func (w *wanderer) read() {
	for _, rp := range w.replies() {
		require.NotEmpty(w.f.t, w.sent, "an answer to nothing")
		require.Equal(w.f.t, w.sent[0], rp.Xid)
		w.sent = w.sent[1:]
		require.GreaterOrEqual(w.f.t, rp.Zxid, w.last)
		w.last = rp.Zxid
		op := w.kinds[rp.Xid]
		delete(w.kinds, rp.Xid)
		var stat wire.Stat
		switch {
		case rp.Err != wire.CodeOK:
			require.Contains(w.f.t, []wire.Op{wire.OpMulti}, op, "%v", rp.Err)
			continue
		case op == wire.OpSetData:
			rp.decode(w.f.t, &stat)
			require.Greater(w.f.t, stat.Version, w.seen)
		case op == wire.OpGetData:
			var data wire.DataReply
			rp.decode(w.f.t, &data)
			stat = data.Stat
			require.GreaterOrEqual(w.f.t, stat.Version, w.seen)
		default:
			continue
		}
		w.seen = stat.Version
	}
}

// move leaves the connection, in one way or the other, and takes the session up somewhere.
func (w *wanderer) move() {
	w.read()
	if w.rng.IntN(2) == 0 {
		w.c.Closed()
	}
	h := w.f.hosts[w.f.ids[w.rng.IntN(len(w.f.ids))]]
	if !h.up || !h.w.r.Serving() {
		return
	}
	next := h.w.open()
	next.id, next.pw = w.id, w.pw
	req := wire.ConnectRequest{TimeoutMs: 10000, SessionID: w.id, Password: w.pw, HasReadOnly: true, LastZxidSeen: w.last}
	v, err := next.c.Receive(encode(&req), w.f.now)
	if err != nil || v != Wait {
		next.c.Closed()
		return
	}
	old := w.client
	for i := 0; i < 3000 && !next.c.HasOutput(); i++ {
		if !w.f.act() {
			w.f.pass(10)
		}
	}
	if !next.c.HasOutput() || next.c.SessionID() == 0 {
		next.c.Closed()
		return
	}
	require.Equal(w.f.t, w.id, next.readConnect().SessionID)
	old.c.Closed()
	next.xid = old.xid
	w.client, w.sent = next, nil
	clear(w.kinds)
	w.moves++
}

// TestWanderingClients lets clients wander while leaders change and links break, and checks each session's promises and
// that in the end all servers are equal.
func TestWanderingClients(t *testing.T) {
	moves, leaders := 0, 0
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 7))
		f := newFlock(t, int(seed%2))
		var all []*wanderer
		for i := range 5 {
			cl := f.hosts[f.ids[i%len(f.ids)]].w.connectFor(10000)
			w := &wanderer{client: cl, f: f, rng: rng, path: fmt.Sprintf("/n%d", i), kinds: map[int32]wire.Op{}, seen: 0}
			cl.mustCreate(w.path, 0)
			all = append(all, w)
		}
		last := f.leader().id
		for range 1500 {
			all[rng.IntN(len(all))].act()
			for range rng.IntN(6) {
				if !f.act() {
					f.pass(5)
				}
			}
			if rng.IntN(300) == 0 {
				f.shake(rng)
			}
		}
		f.revive()
		if f.leader().id != last {
			leaders++
		}
		for i := 0; i < 200; i++ {
			f.settle()
			f.pass(20)
		}
		for _, w := range all {
			w.read()
			moves += w.moves
			w.c.Closed()
		}
		f.settle()
		f.wait(testTickMs)
		f.checkEqual()
		for range 40 {
			f.wait(testTickMs)
		}
		require.Zero(t, f.leader().w.r.Tree().SessionCount(), "seed %d: nobody is left", seed)
		require.Zero(t, f.leader().w.r.Tree().EphemeralCount())
		f.checkEqual()
	}
	require.NotZero(t, moves)
	require.NotZero(t, leaders)
	t.Logf("%d moves, %d worlds ended with another leader", moves, leaders)
}

// shake kills a server, starts one, or breaks a link.
func (f *flock) shake(rng *rand.Rand) {
	h := f.hosts[f.ids[rng.IntN(len(f.ids))]]
	up := 0
	for _, o := range f.hosts {
		if o.up && o.id <= testVoters {
			up++
		}
	}
	switch {
	case !h.up:
		f.start(h.id)
	case rng.IntN(2) == 0 && up == testVoters:
		f.kill(h.id)
	default:
		if ids := f.linkIDs(); len(ids) > 0 {
			f.disconnect(ids[rng.IntN(len(ids))])
		}
	}
}

func (f *flock) revive() {
	for _, id := range f.ids {
		if !f.hosts[id].up {
			f.start(id)
		}
	}
	f.elect()
}
