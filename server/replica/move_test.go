package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/session"
	"zabra/wire"
	"zabra/zab"
)

func ephemeral(path string) *wire.CreateRequest {
	return &wire.CreateRequest{Path: []byte(path), ACL: wire.OpenACL, Flags: wire.FlagEphemeral}
}

func (f *flock) other(than ...*host) *host {
	f.t.Helper()
	for _, id := range f.ids {
		h := f.hosts[id]
		taken := !h.up
		for _, o := range than {
			taken = taken || o == h
		}
		if !taken {
			return h
		}
	}
	f.t.Fatal("no other server")
	return nil
}

// TestSessionMoves moves a session from every server to every other one, with the old connection still open.
func TestSessionMoves(t *testing.T) {
	f := newFlock(t, 0)
	for _, from := range f.ids {
		for _, to := range f.ids {
			old := f.hosts[from].connect()
			old.mustCreate("/e", wire.FlagEphemeral)
			again := f.hosts[to].reattach(old)
			f.settle()
			require.Equal(t, old.id, again.readConnect().SessionID)
			require.Equal(t, wire.CodeOK, again.exists("/e"))
			again.mustCreate("/w", 0)
			if from == to || f.leader().id == from {
				require.True(t, old.ended(), "the server knows better: %d to %d", from, to)
			} else {
				require.Equal(t, wire.CodeOK, old.exists("/e"), "a learner does not know that it moved")
				last := f.leader().w.r.Tree().LastZxid()
				old.send(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/w"), Version: -1})
				old.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/e")})
				f.settle()
				require.True(t, old.ended(), "moved sessions are not answered")
				require.Equal(t, last+1, f.leader().w.r.Tree().LastZxid(), "the refusal is a transaction")
			}
			require.Equal(t, wire.CodeOK, again.exists("/w"))
			old.c.Closed()
			again.call(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/w"), Version: -1})
			again.call(wire.OpCloseSession, nil)
			require.True(t, again.ended())
			f.wait(testTickMs)
			f.checkEqual()
		}
	}
}

func TestCloseOnTheConnectionLeftBehindEndsTheSession(t *testing.T) {
	f := newFlock(t, 0)
	a, b := f.learners()[0], f.learners()[1]
	old := a.connect()
	again := b.reattach(old)
	f.settle()
	again.readConnect()
	require.Equal(t, wire.CodeOK, old.call(wire.OpCloseSession, nil).Err)
	require.True(t, again.ended())
	require.Zero(t, f.leader().w.r.Tree().SessionCount())
}

func TestWrongPasswordAtALearner(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect()
	stranger := h.w.open()
	stranger.greet(cl.id, make([]byte, 16))
	asked := f.sent[zab.MessageRevalidate]
	f.settle()
	require.Zero(t, stranger.readConnect().SessionID)
	require.Equal(t, asked, f.sent[zab.MessageRevalidate])
	require.Equal(t, wire.CodeOK, cl.exists("/"))
}

// TestAnswersReachTheConnectionThatAsked lets two connections ask for sessions at once, one of which goes away before
// the answer (D-49).
func TestAnswersReachTheConnectionThatAsked(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	a, b := f.learners()[1].connect(), f.learners()[1].connect()
	h.link().holdLearner = true
	first := h.reattach(a)
	f.settle()
	first.c.Closed()
	second := h.reattach(a)
	third := h.reattach(b)
	unknown := h.w.open()
	unknown.greet(77, passwordOf(77))
	f.settle()
	require.Len(t, h.w.r.reattach.asked, 4)
	// Late and foreign answers find nobody.
	for _, id := range []uint64{0, 1, 4711} {
		f.step(h, zab.Input{Kind: zab.InputMessage, Message: &zab.Message{Kind: zab.MessageRevalidated, From: f.leader().id, Conn: h.conn, ID: id, Session: a.id, Valid: true}})
	}
	h.link().holdLearner = false
	f.settle()
	require.False(t, first.c.HasOutput())
	require.Equal(t, a.id, second.readConnect().SessionID)
	require.Equal(t, b.id, third.readConnect().SessionID)
	require.Zero(t, unknown.readConnect().SessionID)
	require.True(t, unknown.ended())
	require.Empty(t, h.w.r.reattach.asked)
	second.mustCreate("/a", 0)
	third.mustCreate("/b", 0)
	f.wait(testTickMs)
	f.checkEqual()
}

func TestTwoConnectionsAskForOneSession(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	a := h.connect()
	first, second := h.reattach(a), h.reattach(a)
	f.settle()
	require.Equal(t, a.id, first.readConnect().SessionID)
	require.Equal(t, a.id, second.readConnect().SessionID)
	require.True(t, first.ended(), "the later one wins")
	second.mustCreate("/x", 0)
}

func TestLaggingServerKnowsTheSessionBeforeItTakesItUp(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	h.holdDisk = true
	a := f.leader().connect()
	again := h.reattach(a)
	f.settle()
	require.False(t, again.c.HasOutput(), "the session is not known here yet")
	h.holdDisk = false
	f.settle()
	require.Equal(t, a.id, again.readConnect().SessionID)
	again.mustCreate("/e", wire.FlagEphemeral)
}

func TestSessionThatEndsWhileItIsTakenUp(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	a := f.learners()[1].connect()
	h.link().holdLearner = true
	again := h.reattach(a)
	f.settle() // the leader has answered: valid
	a.call(wire.OpCloseSession, nil)
	h.link().holdLearner = false
	f.settle()
	if again.c.SessionID() != 0 {
		again.readConnect()
	}
	require.True(t, again.ended())
	require.Empty(t, h.w.r.bySession)
	f.wait(testTickMs)
	f.checkEqual()
}

// TestExpiredIsToldByALearnerOnlyWhenNothingIsLeft: the answer waits for the end of the session to be applied here.
func TestExpiredIsToldByALearnerOnlyWhenNothingIsLeft(t *testing.T) {
	f := newFlock(t, 0)
	h, at := f.learners()[0], f.learners()[1]
	a := at.connect()
	a.mustCreate("/e", wire.FlagEphemeral)
	f.settle()
	h.link().hold = func(m *zab.Message) bool { return m.Kind == zab.MessageProposal || m.Kind == zab.MessageCommit }
	a.call(wire.OpCloseSession, nil)
	h.link().hold = nil
	h.holdDisk = true
	again := h.reattach(a)
	f.settle()
	_, exists := h.w.r.Tree().Find([]byte("/e"))
	require.True(t, exists)
	require.False(t, again.c.HasOutput())
	h.holdDisk = false
	f.settle()
	_, exists = h.w.r.Tree().Find([]byte("/e"))
	require.False(t, exists)
	require.Zero(t, again.readConnect().SessionID)
}

func TestTouchesKeepASessionAlive(t *testing.T) {
	f := newFlock(t, 1)
	var clients []*client
	for _, id := range f.ids {
		cl, silent := f.hosts[id].connect(), f.hosts[id].connect() // 5 s each
		silent.mustCreate("/silent"+string('0'+rune(id)), wire.FlagEphemeral)
		clients = append(clients, cl)
	}
	for range 10 {
		f.wait(1500)
		for _, cl := range clients {
			cl.sendXid(wire.XidPing, wire.OpPing, nil)
		}
	}
	f.wait(testTickMs)
	require.Equal(t, len(clients), f.leader().w.r.Tree().SessionCount())
	require.Equal(t, uint64(len(clients)), f.leader().w.r.Stats().ExpiredSessions)
	require.Zero(t, f.leader().w.r.Tree().EphemeralCount())
	for _, h := range f.learners() {
		require.Nil(t, h.w.r.SessionBuckets(), "only the leader knows")
		require.Zero(t, h.w.r.Stats().ExpiredSessions)
	}
	f.checkEqual()
}

func TestExpiryCountsFromWhenTheClientWasHeard(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect() // 5 s
	f.settle()
	began := f.now.MonoMs
	h.link().holdLearner = true // no ping comes through for a while
	f.wait(1000)
	cl.sendXid(wire.XidPing, wire.OpPing, nil)
	f.wait(1000)
	h.link().holdLearner = false
	for f.leader().w.r.Tree().SessionCount() > 0 {
		f.wait(100)
	}
	silence := f.now.MonoMs - began - 1000
	require.Greater(t, silence, int64(5000))
	require.LessOrEqual(t, silence, int64(5000+2*testTickMs), "the age of the touch counts, not its arrival")
}

func TestTimeoutOfTheConnectionCounts(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect() // 5 s
	again := h.w.open()
	req := wire.ConnectRequest{TimeoutMs: 9000, SessionID: cl.id, Password: cl.pw, HasReadOnly: true}
	_, err := again.c.Receive(encode(&req), again.w.now)
	require.NoError(t, err)
	f.settle()
	require.Equal(t, int32(9000), again.readConnect().TimeoutMs)
	require.Equal(t, int32(9000), f.leader().w.r.tracker.Get(cl.id).Timeout())
	// A leader that has no other word than the session's creation takes it from the touches.
	f.leader().w.r.tracker.Get(cl.id).SetTimeout(5000)
	again.sendXid(wire.XidPing, wire.OpPing, nil)
	f.wait(testTickMs)
	require.Equal(t, int32(9000), f.leader().w.r.tracker.Get(cl.id).Timeout())
}

// TestNothingOfASessionComesAfterItsEnd: a write that was on its way when the session expired (D-48).
func TestNothingOfASessionComesAfterItsEnd(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	l := f.leader()
	cl := h.w.connectFor(1000)
	for _, o := range f.learners() {
		o.holdDisk = true // nothing commits
	}
	cl.send(wire.OpCreate, ephemeral("/inflight"))
	f.settle()
	h.link().holdLeader = true
	cl.send(wire.OpCreate, ephemeral("/late"))
	f.settle()
	handle := l.w.r.tracker.Get(cl.id)
	for !handle.Closing() {
		f.pass(testTickMs / 5)
		f.settle()
		require.True(t, l.w.r.Serving())
	}
	h.link().holdLeader = false
	for _, o := range f.learners() {
		o.holdDisk = false
	}
	f.settle()
	f.wait(testTickMs)
	require.Zero(t, l.w.r.Tree().EphemeralCount())
	_, exists := l.w.r.Tree().Find([]byte("/late"))
	require.False(t, exists)
	require.Equal(t, []int32{1}, xids(cl.replies()), "the one that came too late is not answered")
	require.True(t, cl.ended())
	f.checkEqual()
}

func TestTouchedSessionsCostByThemselves(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	var clients []*client
	for range 50 {
		clients = append(clients, h.connect())
	}
	f.wait(testTickMs)
	clients[7].sendXid(wire.XidPing, wire.OpPing, nil)
	list := h.w.r.heard.Take(f.now.MonoMs + 20)
	require.Equal(t, []session.Touched{{Session: clients[7].id, TimeoutMs: 5000, AgeMs: 20}}, list)
	require.Empty(t, h.w.r.heard.Take(f.now.MonoMs))
}

func TestIDsInUseAreNotHandedOutAgain(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	first := h.connect()
	// The same ids again: the server's clock was set back.
	h.w.r.ids = session.NewIDs(first.id)
	second := h.connect()
	require.NotEqual(t, first.id, second.id)
	// The id of a session that only the leader knows of is refused, and the client comes again.
	h.w.r.ids = session.NewIDs(second.id + 1)
	h.holdDisk = true
	third := h.w.open()
	third.greet(0, make([]byte, 16))
	f.settle()
	h.w.r.ids = session.NewIDs(second.id + 1)
	fourth := h.w.open()
	fourth.greet(0, make([]byte, 16))
	f.settle()
	require.True(t, fourth.ended(), "the leader refuses the id")
	h.w.r.ids = session.NewIDs(second.id + 1)
	h.holdDisk = false
	f.settle()
	require.Equal(t, second.id+1, third.readConnect().SessionID)
	third.call(wire.OpCloseSession, nil)
	require.Equal(t, second.id+2, h.connect().id, "what was applied raises the ids, also if the session is gone")
	require.Equal(t, 3, f.leader().w.r.Tree().SessionCount())
}
