package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
)

func TestLeaderChangeEndsAllConnections(t *testing.T) {
	f := newFlock(t, 0)
	old := f.leader()
	var clients []*client
	for _, h := range f.learners() {
		cl := h.connect()
		cl.mustCreate("/e"+string('0'+rune(h.id)), wire.FlagEphemeral)
		cl.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/e"), Watch: true})
		f.settle()
		cl.replies()
		clients = append(clients, cl)
	}
	a, b := f.learners()[0], f.learners()[1]
	greeting := a.w.open()
	fresh := a.w.open()
	a.link().holdLeader, b.link().holdLeader = true, true
	greeting.greet(0, make([]byte, 16))
	moving := a.reattach(clients[1])
	clients[0].send(wire.OpCreate, create("/lost"))
	clients[0].send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/lost")})
	clients[1].send(wire.OpSync, syncRequest())
	f.settle()
	f.kill(old.id)
	for _, cl := range append([]*client{greeting, moving, fresh}, clients...) {
		require.True(t, cl.ended())
		require.NotZero(t, cl.w.flushed[cl.c], "nobody would close the socket")
	}
	for _, h := range []*host{a, b} {
		require.Zero(t, h.w.r.outstanding.Load())
		require.Zero(t, h.w.r.queuedBytes.Load())
		require.Zero(t, h.w.r.Tree().Watches().Total())
		require.True(t, h.w.r.Idle())
	}
	late := a.w.open()
	_, fin := late.c.Output(nil)
	require.True(t, fin, "not served now")
	v, err := late.c.Receive(encode(&wire.ConnectRequest{TimeoutMs: 5000, Password: make([]byte, 16)}), a.w.now)
	require.NoError(t, err)
	require.Equal(t, Closing, v)
	f.elect()
	require.NotEqual(t, old.id, f.leader().id)
	again := f.leader().reattach(clients[0])
	f.settle()
	require.Equal(t, clients[0].id, again.readConnect().SessionID)
	require.Equal(t, wire.CodeOK, again.exists("/e"+string('0'+rune(a.id))))
	require.Equal(t, wire.CodeNoNode, again.exists("/lost"))
	for _, cl := range clients {
		cl.c.Closed() // the old sockets go at last
	}
	f.settle()
	again.mustCreate("/after", wire.FlagEphemeral)
	f.start(old.id)
	f.elect()
	f.wait(testTickMs)
	f.checkEqual()
}

func TestRequestsReadBeforeTheReaderKnewAreDropped(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect()
	f.settle()
	cl.sendXid(1, wire.OpCreate, create("/x")) // in the inbox, not looked at
	require.Equal(t, int64(1), h.w.r.outstanding.Load())
	f.step(h, zab.Input{Kind: zab.InputDisconnected, Conn: h.conn})
	require.False(t, h.w.r.Serving())
	require.Zero(t, h.w.r.outstanding.Load())
	// One more that its reader had begun before.
	cl.c.state.Store(stateEstablished)
	cl.sendXid(2, wire.OpCreate, create("/y"))
	cl.sendXid(3, wire.OpSync, syncRequest())
	f.step(h)
	require.Zero(t, h.w.r.outstanding.Load())
	require.True(t, cl.ended())
}

func TestNewLeaderGivesEverySessionItsTimeout(t *testing.T) {
	f := newFlock(t, 0)
	cl := f.learners()[0].connect() // 5 s
	cl.mustCreate("/e", wire.FlagEphemeral)
	f.wait(4000)
	old := f.leader()
	f.kill(old.id)
	f.elect()
	began := f.now.MonoMs
	for f.leader().w.r.Tree().SessionCount() > 0 {
		f.wait(100)
		require.Less(t, f.now.MonoMs, began+7000)
	}
	require.Greater(t, f.now.MonoMs, began+5000)
	require.Zero(t, f.leader().w.r.Tree().EphemeralCount())
	f.checkEqual()
}

func TestOwnerIsUnknownToANewLeaderUntilTheFirstRequest(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect()
	f.leader().w.r.tracker.Get(cl.id).SetOwner(f.leader().w.r.ownerOf(&Conn{}))
	f.leader().w.r.tracker.Get(cl.id).SetOwner(struct {
		Server zxid.ServerID
		Conn   uint64
	}{})
	cl.mustCreate("/a", 0)
	require.Equal(t, h.w.r.ownerOf(cl.c), f.leader().w.r.tracker.Get(cl.id).Owner())
	cl.mustCreate("/b", 0)
}

func TestEmptyServerGetsTheWholeState(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	mine := h.connect()
	mine.mustCreate("/a", wire.FlagEphemeral)
	for _, id := range f.ids { // so that no leader has the whole log in memory
		f.kill(id)
	}
	h.log, h.accepted, h.current = nil, 0, 0
	for _, id := range f.ids {
		if id != h.id {
			f.start(id)
		}
	}
	f.elect()
	f.leader().connect().mustCreate("/b", 0)
	f.start(h.id)
	f.elect()
	require.Equal(t, 1, f.snaps)
	f.wait(testTickMs)
	f.checkEqual()
	require.Equal(t, h.w.r.Tree().Watches(), h.connect().c.watches, "the new tree's")
	again := h.reattach(mine)
	f.settle()
	require.Equal(t, mine.id, again.readConnect().SessionID)
	require.Equal(t, wire.CodeOK, again.exists("/a"))
	f.checkEqual()
}

func TestRestoreWhileServingIsAMistake(t *testing.T) {
	w := newWorld(t, nil)
	require.Panics(t, func() { w.r.Restore(&Recovered{Tree: w.r.Tree()}) })
}

// TestRequestOfAnEarlierLife: what this server forwarded before it was restarted finds no connection of its new life.
func TestRequestOfAnEarlierLife(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	l := f.leader()
	cl := h.connect()
	for _, o := range f.learners() {
		o.holdDisk = true
	}
	l.holdDisk = true
	cl.send(wire.OpCreate, create("/old"))
	f.settle()
	f.kill(h.id)
	for _, o := range f.hosts {
		o.holdDisk = false
	}
	f.start(h.id)
	f.elect()
	first := h.connect()
	require.Greater(t, first.c.gen, cl.c.gen+1<<connNumberBits-1)
	require.Equal(t, wire.CodeOK, first.exists("/old"))
	f.checkEqual()
}

func TestMemberServesNobodyBeforeTheEnsembleHasDecided(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	f.kill(f.leader().id)
	f.kill(f.other(h).id)
	f.wait(testTickMs)
	require.False(t, h.w.r.Serving())
	require.Equal(t, zab.RoleLooking, h.w.r.core.Status().Role)
	require.NotZero(t, h.w.r.Step(f.now, nil).WakeAtMs)
}

// TestLeadershipLostInTheMiddleOfAStep: what was prepared after that is dropped with its connection.
func TestLeadershipLostInTheMiddleOfAStep(t *testing.T) {
	f := newFlock(t, 0)
	l := f.leader()
	cl := l.connect()
	f.settle()
	cl.send(wire.OpCreate, create("/x"))
	cl.send(wire.OpCreate, create("/y"))
	r := l.w.r
	real := r.core
	r.core = &losing{broadcast: real, r: r}
	f.step(l)
	r.core = real
	f.settle()
	require.True(t, cl.ended())
	require.Zero(t, r.outstanding.Load())
	require.Zero(t, r.proposed.Load())
	f.elect()
	f.checkEqual()
}

// losing is a core that gives up its leadership at the first proposal, and takes no other one after that.
type losing struct {
	broadcast
	r *Replica
	n int
}

func (l *losing) Step(in zab.Input) {
	l.broadcast.Step(in)
	if in.Kind != zab.InputPropose {
		return
	}
	if l.n++; l.n > 1 {
		panic("a proposal without leadership")
	}
	for id := range zab.ConnID(10) {
		l.broadcast.Step(zab.Input{Kind: zab.InputDisconnected, Conn: id, NowMs: in.NowMs})
	}
}
