package zabtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/ensemble"
	"zabra/zab/zabtest"
	"zabra/zab/zxid"
)

// step feeds a Node of a World without anything that follows from it.
func (s *story) step(id zxid.ServerID, in zab.Input) {
	in.NowMs = s.NowMs
	s.Server(id).Node.Step(in)
}

// conn is the connection of a learner, by the learner's number.
func (s *story) conn(id zxid.ServerID) zab.ConnID {
	for n := zab.ConnID(1); ; n++ {
		if s.Server(id).Conns[n] != nil {
			return n
		}
		require.Less(s.t, n, zab.ConnID(100), "server %d has no connection", id)
	}
}

// What is committed and never reached the disk of a follower is forgotten with the rest when its role ends: a server
// must not know of a commit beyond its log, or it refuses the snapshot that would bring it level.
func TestCommitGoesWithTheLogThatIsDropped(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Off = true
	conn := s.conn(1)
	next := zxid.Make(1, 2)
	s.step(1, zab.Input{Kind: zab.InputMessage, Message: &zab.Message{Kind: zab.MessageProposal, From: 3, Conn: conn, Zxid: next - 1, Entries: []zab.Entry{{Zxid: next}}}})
	s.step(1, zab.Input{Kind: zab.InputMessage, Message: &zab.Message{Kind: zab.MessageCommit, From: 3, Conn: conn, Zxid: next}})
	s.step(1, zab.Input{Kind: zab.InputDisconnected, Conn: conn}) // before anybody has called Ready
	st := s.Server(1).Node.Status()
	require.Equal(t, next-1, st.LastProposed)
	require.Equal(t, next-1, st.LastCommitted)
}

// A transfer may take longer than syncLimit while clients write. What was sent to the learner in the meantime waits
// behind the snapshot: that it is not acknowledged is no fault of the learner.
func TestSlowTransferUnderLoadIsNotPunished(t *testing.T) {
	s := running(t, 3, 0, 2)
	s.Off = true
	s.Kill(1)
	s.Write(3, "while 1 is away")
	s.untilLevel()
	s.Server(3).Snapshot(true)
	s.Server(2).Snapshot(true)
	s.Kill(2, 3)
	s.Start(2, 3) // what they have in memory begins at the snapshot
	s.untilLevel()
	s.Hold = func(e zabtest.Event) bool { return e.What == "chunk" && e.To == 1 }
	s.Start(1)
	for range 15 { // 1500 ms, and syncLimit is 1000
		s.Pass(100)
		s.Write(3, "during the transfer")
	}
	require.Equal(t, 1, s.Sent(zab.MessageSnap))
	s.Hold = nil
	s.Off = false
	s.Settle()
	require.False(t, s.Has("hangs up"), "%s", s.String())
	s.Off = true
	s.follow(3, 1, 2)
}

// UPTODATE is said once to each learner.
func TestUpToDateOnce(t *testing.T) {
	s := running(t, 3, 0, 0)
	s.Off = true
	require.Equal(t, 2, s.Sent(zab.MessageUpToDate))
}

// An answer to a ping belongs to the connection on which the ping came.
func TestPongOfAConnectionThatIsGone(t *testing.T) {
	s := running(t, 3, 0, 0)
	s.Off = true
	old := s.conn(1)
	s.BreakConn(1, 3)
	s.untilLevel()
	require.NotEqual(t, old, s.conn(1))
	s.step(1, zab.Input{Kind: zab.InputSend, Message: &zab.Message{Kind: zab.MessagePong, Conn: old, ID: 1}})
	require.Empty(t, s.Server(1).Node.Ready().Send)
}

// The log can be truncated only to a transaction that it has: the ends of its epochs tell.
func TestTruncToWhatTheLogDoesNotHave(t *testing.T) {
	s := running(t, 3, 0, 3)
	s.Off = true
	s.Kill(3)
	s.Until("server 2 leads", func() bool { return s.Leader() != nil })
	s.Write(2, "of epoch 2")
	s.untilLevel()
	s.Kill(1)
	s.Hold = func(e zabtest.Event) bool { return e.Message != nil && e.Message.Kind == zab.MessageDiff && e.To == 1 }
	s.Start(1, 3)
	s.Until("server 1 waits for DIFF", func() bool { return s.Server(1).Node.Status().Phase == zab.PhaseSynchronization })
	s.Settle()
	node := s.Server(1).Node
	require.Equal(t, zxid.Make(2, 1), node.Status().LastProposed)
	s.step(1, zab.Input{Kind: zab.InputMessage, Message: &zab.Message{Kind: zab.MessageTrunc, From: 2, Conn: s.conn(1), Zxid: zxid.Make(1, 9)}})
	require.Equal(t, zab.RoleLooking, node.Status().Role)
	require.Empty(t, node.Ready().Persist)
}

// A server with the id 0 votes for itself on an empty directory like any other.
func TestServerZeroAlone(t *testing.T) {
	cfg, err := ensemble.New([]ensemble.Member{{ID: 0}}, 0)
	require.NoError(t, err)
	n := zab.New(zab.Config{Ensemble: cfg, ID: 0, TickMs: 200, InitLimitMs: 2000, SyncLimitMs: 1000})
	require.Equal(t, zab.RoleLeading, n.Status().Role)
}

// Roles and phases that a peer makes up have names as well.
func TestNamesOfUnknownRoles(t *testing.T) {
	require.NotPanics(t, func() { _, _ = zab.Role(77).String(), zab.Phase(77).String() })
}

// The epoch of a snapshot is none that the learner has not accepted.
func TestSnapshotOfTheFuture(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Off = true
	s.Hold = func(e zabtest.Event) bool { return e.Message != nil && e.Message.Kind == zab.MessageDiff && e.To == 1 }
	s.BreakConn(1, 3)
	s.Until("server 1 waits for DIFF", func() bool { return s.Server(1).Node.Status().Phase == zab.PhaseSynchronization })
	snap := zab.SnapshotFile{Zxid: zxid.Make(9, 1)}
	s.step(1, zab.Input{Kind: zab.InputMessage, Message: &zab.Message{Kind: zab.MessageSnap, From: 3, Conn: s.conn(1), Snapshot: snap}})
	s.step(1, zab.Input{Kind: zab.InputSnapshot, Conn: s.anyConn(1)})
	require.Empty(t, s.Server(1).Node.Ready().Persist)
}

// anyConn is the connection, or any if there is none any more.
func (s *story) anyConn(id zxid.ServerID) zab.ConnID {
	if len(s.Server(id).Conns) == 0 {
		return 1
	}
	return s.conn(id)
}

// A leader that gives up says so, which may arrive before its connections are closed: nobody waits for its vote.
func TestHandOverDoesNotWait(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Off = true
	s.Resign(3)
	s.Settle()
	s.leads(2, 2)
}
