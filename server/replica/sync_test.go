package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab"
)

func syncRequest() *wire.PathRequest { return &wire.PathRequest{Path: []byte("/")} }

func TestSyncNeedsAQuorum(t *testing.T) {
	f := newFlock(t, 0)
	onLeader := f.leader().connect()
	onLearner := f.learners()[0].connect()
	for _, h := range f.learners() {
		h.link().holdLearner = true
	}
	onLeader.send(wire.OpSync, syncRequest())
	onLearner.send(wire.OpSync, syncRequest())
	f.settle()
	require.Empty(t, onLeader.replies(), "nobody has said that this server still leads")
	require.Equal(t, 2, f.leader().w.r.Stats().PendingSyncs)
	require.Equal(t, 1, f.learners()[0].w.r.Stats().PendingSyncs)
	require.Empty(t, onLearner.replies())
	f.learners()[1].link().holdLearner = false
	f.settle()
	require.Len(t, onLeader.replies(), 1)
	require.Empty(t, onLearner.replies(), "the answer is held back")
	f.learners()[0].link().holdLearner = false
	f.settle()
	require.Len(t, onLearner.replies(), 1)
	for _, id := range f.ids {
		require.Zero(t, f.hosts[id].w.r.Stats().PendingSyncs)
	}
}

func TestSyncWaitsForWhatWasProposedBefore(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	writer, reader := f.leader().connect(), h.connect()
	h.link().hold = func(m *zab.Message) bool { return m.Kind == zab.MessageProposal }
	writer.mustCreate("/new", 0)
	require.Equal(t, wire.CodeNoNode, reader.exists("/new"), "a plain read may be old")
	reader.send(wire.OpSync, syncRequest())
	xid := reader.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/new")})
	f.settle()
	require.Empty(t, reader.replies())
	h.link().hold = nil
	f.settle()
	got := reader.replies()
	require.Len(t, got, 2)
	require.Equal(t, xid, got[1].Xid)
	require.Equal(t, wire.CodeOK, got[1].Err)
}

func TestSyncIsAnsweredWhenItsTransactionsAreApplied(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	writer, reader := f.leader().connect(), h.connect()
	h.holdDisk = true
	writer.mustCreate("/new", 0)
	reader.send(wire.OpSync, syncRequest())
	f.settle()
	require.Len(t, h.w.r.syncs.proven, 1, "proven, but not applied here")
	require.Empty(t, reader.replies())
	h.holdDisk = false
	f.settle()
	require.Len(t, reader.replies(), 1)
	require.Nil(t, h.w.r.syncs.proven)
}

func TestAThousandSyncsCostOneRound(t *testing.T) {
	f := newFlock(t, 0)
	for _, h := range []*host{f.leader(), f.learners()[0]} {
		var clients []*client
		for range 500 {
			clients = append(clients, h.connect())
		}
		f.settle()
		asked, pings := f.sent[zab.MessageSync], f.sent[zab.MessagePing]
		for _, cl := range clients {
			cl.send(wire.OpSync, syncRequest())
			cl.send(wire.OpSync, syncRequest())
		}
		f.settle()
		for _, cl := range clients {
			require.Len(t, cl.replies(), 2)
		}
		require.LessOrEqual(t, f.sent[zab.MessageSync]-asked, 1)
		require.Equal(t, 2, f.sent[zab.MessagePing]-pings, "one round: a ping to each learner")
		require.Empty(t, h.w.r.syncs.asked)
	}
	f.checkEqual()
}

func TestSyncOfADeposedLeaderIsNotAnswered(t *testing.T) {
	f := newFlock(t, 0)
	old := f.leader()
	cl := old.connect()
	for _, h := range f.learners() {
		h.link().holdLearner, h.link().holdLeader = true, true
	}
	cl.send(wire.OpSync, syncRequest())
	f.settle()
	for _, n := range f.linkIDs() {
		f.disconnect(n)
	}
	f.settle()
	require.True(t, cl.ended(), "the connection ends without an answer")
	require.Zero(t, old.w.r.outstanding.Load())
}

func TestSyncBehindAConnectionThatEnds(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	gone, stays := h.connect(), h.connect()
	h.link().holdLearner = true
	gone.send(wire.OpSync, syncRequest())
	stays.send(wire.OpSync, syncRequest())
	f.settle()
	gone.c.Closed()
	f.settle()
	h.link().holdLearner = false
	f.settle()
	require.Empty(t, gone.replies())
	require.Len(t, stays.replies(), 1)
	f.checkEqual()
}
