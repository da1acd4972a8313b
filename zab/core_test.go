package zab

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

func membersOf(t *testing.T, voters, observers int) *ensemble.Config {
	var ms []ensemble.Member
	for i := range voters + observers {
		ms = append(ms, ensemble.Member{ID: zxid.ServerID(i + 1), Observer: i >= voters})
	}
	c, err := ensemble.New(ms, 0)
	require.NoError(t, err)
	return c
}

func note(from zxid.ServerID, role Role, leader zxid.ServerID, z zxid.Zxid, e zxid.Epoch, round uint64) Input {
	return Input{Kind: InputMessage, NowMs: 1000, Message: &Message{Kind: MessageNotification, From: from, Role: role, Vote: Vote{leader, z, e}, Round: round}}
}

// persistAll confirms all that is handed out, and returns what was sent and committed.
func persistAll(n *Node) (out []Message, committed []Entry) {
	for range 20 {
		rd := n.Ready()
		out = append(out, rd.Send...)
		committed = append(committed, rd.Committed...)
		if len(rd.Persist) == 0 {
			return
		}
		n.Step(Input{Kind: InputPersisted, NowMs: n.nowMs, Token: rd.Persist[len(rd.Persist)-1].Token})
	}
	return
}

// nodeOf is the node of a server; nil if there is none.
func nodeOf(nodes []*Node, id zxid.ServerID) *Node {
	for _, n := range nodes {
		if n.cfg.ID == id {
			return n
		}
	}
	return nil
}

// exchange lets the nodes act on the time and on what they tell each other, for so many rounds at one moment. Every disk
// is done at once. A connection has the same number at both ends.
func exchange(rounds int, now int64, nodes []*Node) {
	for range rounds {
		for _, n := range nodes {
			n.Step(Input{Kind: InputTick, NowMs: now})
			rd := n.Ready()
			for _, m := range rd.Send {
				if o := nodeOf(nodes, m.To); o != nil {
					o.Step(Input{Kind: InputMessage, Message: &m, NowMs: now})
				}
			}
			for _, h := range rd.Hangup {
				for _, o := range nodes {
					o.Step(Input{Kind: InputDisconnected, Conn: h.Conn, NowMs: now})
				}
			}
			if len(rd.Persist) > 0 {
				n.Step(Input{Kind: InputPersisted, NowMs: now, Token: rd.Persist[len(rd.Persist)-1].Token})
			}
		}
	}
}

// TestRestartedFollowerServesNothingUncommitted: the state of a restarted server holds its whole log; clients see it when all of
// that is committed.
func TestRestartedFollowerServesNothingUncommitted(t *testing.T) {
	cfg := membersOf(t, 5, 0)
	last := zxid.Make(1, 9)
	n := New(Config{LastZxid: last, Ensemble: cfg, ID: 1, AcceptedEpoch: 1, CurrentEpoch: 1, Ends: []zxid.Zxid{0, last}, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	for _, id := range []zxid.ServerID{3, 4} {
		n.Step(note(id, RoleFollowing, 5, 0, 1, 1))
	}
	n.Step(note(5, RoleLeading, 5, 0, 1, 1))
	require.Equal(t, RoleFollowing, n.role)
	n.Step(Input{Kind: InputConnected, Peer: 5, Conn: 1})
	msg := func(m Message) { m.Conn, m.From = 1, 5; n.Step(Input{Kind: InputMessage, Message: &m}); persistAll(n) }
	msg(Message{Kind: MessageLeaderInfo, Epoch: 1})
	msg(Message{Kind: MessageDiff, Zxid: last})
	msg(Message{Kind: MessageNewLeader, Epoch: 1})
	msg(Message{Kind: MessageUpToDate, Epoch: 1, Zxid: zxid.Make(1, 7)}) // 8 and 9 are proposed, and acknowledged by two of five
	require.Equal(t, n.applied, last)
	require.Equal(t, zxid.Make(1, 7), n.committed)
	require.False(t, n.Status().Serving, "serves reads of a state that has %v applied, while only %v is committed", n.applied, n.committed)
}

// TestObserverAndVoterDoNotAnswerForEver: both look, and the observer has seen more rounds.
func TestObserverAndVoterDoNotAnswerForEver(t *testing.T) {
	cfg := membersOf(t, 3, 1)
	mk := func(id zxid.ServerID) *Node {
		return New(Config{Ensemble: cfg, ID: id, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	}
	v, o := mk(1), mk(4)
	o.election.round = 10 // it has lost its leader ten times
	o.becomeLooking("test")
	nodes := map[zxid.ServerID]*Node{1: v, 4: o}
	var queue []Message
	drain := func(n *Node) {
		for _, m := range n.Ready().Send {
			if nodes[m.To] != nil {
				queue = append(queue, m)
			}
		}
	}
	drain(v)
	drain(o)
	n := 0
	for ; len(queue) > 0 && n < 10000; n++ {
		m := queue[0]
		queue = queue[1:]
		nodes[m.To].Step(Input{Kind: InputMessage, Message: &m}) // no time passes
		drain(nodes[m.To])
	}
	require.Less(t, n, 100, "messages without end at one moment")
}

// TestWindowMemory: what the window has let go does not stay in memory behind its slice.
func TestWindowMemory(t *testing.T) {
	h := newHistory(0, 0, nil)
	z := zxid.Make(1, 0)
	add := func(size int) {
		z++
		h.append([]Entry{{Zxid: z, Payload: make([]byte, size)}})
		h.trim(z, windowEntriesMin, windowBytesMax)
	}
	for range 60000 {
		add(100)
	}
	for range 5000 {
		add(100 << 10) // 5000 writes of 100 KiB
	}
	runtime.GC()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	require.Less(t, ms.HeapAlloc, uint64(80<<20), "window says %d bytes, heap has %d", h.bytes, ms.HeapAlloc)
	runtime.KeepAlive(h)
}

// TestResignedNeverLeads: a server that resigned while it was looking is not elected any more.
func TestResignedNeverLeads(t *testing.T) {
	n := New(Config{Ensemble: membersOf(t, 3, 0), ID: 3, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	n.Ready()
	n.Step(Input{Kind: InputResign, NowMs: 1})
	n.Step(note(2, RoleLooking, 3, 0, 0, 1))
	n.Step(Input{Kind: InputTick, NowMs: 5000})
	require.Equal(t, RoleLooking, n.role)
}

// TestNoEpochLeft: a single voter whose epochs are used up gives up.
func TestNoEpochLeft(t *testing.T) {
	n := New(Config{Ensemble: membersOf(t, 1, 0), ID: 1, AcceptedEpoch: epochMax, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	require.Equal(t, RoleLooking, n.Status().Role)
	require.Contains(t, n.Status().Why, "no epoch is left")
}

// TestProposeAfterStepDownInBatch: a proposal that comes in the same batch, after the term in which it was made, is dropped.
func TestProposeAfterStepDownInBatch(t *testing.T) {
	last := zxid.Make(1, zxid.CounterMax-counterMargin)
	n := New(Config{LastZxid: last, Ensemble: membersOf(t, 1, 0), ID: 1, AcceptedEpoch: 1, CurrentEpoch: 1, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	persistAll(n)
	require.True(t, n.serving)
	n.epochBegun, n.leader.epoch = 1, 1 // as if it had written four thousand millions in epoch 1
	require.NotPanics(t, func() {
		n.Propose(Entry{Zxid: n.NextZxid()})
		n.Propose(Entry{Zxid: n.NextZxid()})
	})
}

// TestFollowerOfNobody: who was elected follows another one; its follower does not wait for it.
func TestFollowerOfNobody(t *testing.T) {
	n := New(Config{Ensemble: membersOf(t, 3, 0), ID: 1, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	n.Step(Input{Kind: InputLinkUp, Peer: 2, NowMs: 1000})
	n.Step(note(2, RoleLooking, 2, 0, 0, 1))
	require.Equal(t, RoleFollowing, n.role) // 2 leads, it thinks
	n.Step(Input{Kind: InputLinkUp, Peer: 3, NowMs: 1000})
	n.Step(note(2, RoleLooking, 3, 0, 0, 1)) // 2 has changed its mind
	n.Step(note(3, RoleLeading, 3, 0, 0, 1))
	n.Step(note(2, RoleFollowing, 3, 0, 0, 1))
	n.Step(Input{Kind: InputTick, NowMs: 2000})
	require.False(t, n.role == RoleFollowing && n.learner.leader == 2, "a second later it still waits for server 2, which follows server 3")
}

// TestLeaderOfNobody: the only follower of an elected leader has lost its connection; the two find each other at once.
func TestLeaderOfNobody(t *testing.T) {
	l := New(Config{Ensemble: membersOf(t, 3, 0), ID: 2, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	a := New(Config{Ensemble: membersOf(t, 3, 0), ID: 1, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	l.Step(Input{Kind: InputLinkUp, Peer: 1, NowMs: 1000})
	a.Step(Input{Kind: InputLinkUp, Peer: 2, NowMs: 1000})
	nodes := []*Node{a, l}
	exchange(50, 1000, nodes)
	require.Equal(t, RoleLeading, l.role)
	require.Equal(t, RoleFollowing, a.role)
	// The connection comes and breaks once, as at a listener that is just being opened.
	a.Step(Input{Kind: InputConnected, Peer: 2, Conn: 1, NowMs: 1000})
	a.Step(Input{Kind: InputDisconnected, Conn: 1, NowMs: 1000})
	l.Step(Input{Kind: InputConnected, Peer: 1, Conn: 1, NowMs: 1000})
	l.Step(Input{Kind: InputDisconnected, Conn: 1, NowMs: 1000})
	joined := int64(-1)
	for now := int64(1000); now < 60000 && joined < 0; now += 10 {
		exchange(50, now, nodes)
		if (a.role == RoleFollowing && l.role == RoleLeading) || (l.role == RoleFollowing && a.role == RoleLeading) {
			joined = now - 1000
		}
	}
	require.GreaterOrEqual(t, joined, int64(0), "they never find each other")
	require.Less(t, joined, int64(2000), "two connected voters of three without a pair of leader and follower for %d ms", joined)
}

// TestSecondLooker: who begins to look a moment later than the other one learns its vote at once.
func TestSecondLooker(t *testing.T) {
	mk := func(id zxid.ServerID) *Node {
		n := New(Config{Ensemble: membersOf(t, 3, 0), ID: id, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
		for p := range zxid.ServerID(3) {
			if p+1 != id {
				n.Step(Input{Kind: InputLinkUp, Peer: p + 1, NowMs: 1000})
			}
		}
		return n
	}
	first, second := mk(1), mk(2)
	nodes := []*Node{first, second}
	for _, n := range nodes {
		n.Step(note(3, RoleLooking, 3, 0, 0, 1))
		n.Step(note(3-n.cfg.ID, RoleLooking, 3, 0, 0, 1))
		require.Equal(t, RoleFollowing, n.role)
		n.Step(Input{Kind: InputConnected, Peer: 3, Conn: 1, NowMs: 1000})
		n.Ready()
	}
	deliver := func(now int64) {
		for range 10 {
			for _, n := range nodes {
				for _, m := range n.Ready().Send {
					if o := nodeOf(nodes, m.To); o != nil {
						o.Step(Input{Kind: InputMessage, Message: &m, NowMs: now})
					}
				}
			}
		}
	}
	// The leader dies. Server 2 notices first, server 1 a millisecond later.
	second.Step(Input{Kind: InputDisconnected, Conn: 1, NowMs: 1001})
	deliver(1001)
	first.Step(Input{Kind: InputDisconnected, Conn: 1, NowMs: 1002})
	deliver(1002)
	for _, n := range nodes {
		n.Step(Input{Kind: InputLinkDown, Peer: 3, NowMs: 1003})
	}
	deliver(1003)
	now := int64(1003)
	for ; second.role != RoleLeading || first.role != RoleFollowing; now++ {
		require.Less(t, now, int64(30000), fmt.Sprint(first.Status(), second.Status()))
		for _, n := range nodes {
			n.Step(Input{Kind: InputTick, NowMs: now})
		}
		deliver(now)
	}
	require.Less(t, now-1003, int64(20), "the election took %d ms although both were there", now-1003)
}

// TestNobodyWaitsForTheResigned: an election ends without the server that has said it takes no part.
func TestNobodyWaitsForTheResigned(t *testing.T) {
	n := New(Config{Ensemble: membersOf(t, 3, 0), ID: 2, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	n.Step(Input{Kind: InputLinkUp, Peer: 1, NowMs: 1000})
	n.Step(Input{Kind: InputLinkUp, Peer: 3, NowMs: 1000})
	n.Step(note(3, RoleLooking, noLeader.Leader, 0, 0, 1)) // has resigned
	n.Step(note(3, RoleLooking, noLeader.Leader, 0, 0, 1))
	n.Step(note(1, RoleLooking, 2, 0, 0, 1))
	require.Equal(t, RoleLeading, n.role, "waits %d ms for the server that has resigned", finalizeWaitMs)
}

// TestObserverAhead: an observer that has promised a later epoch than the voters is let in all the same.
func TestObserverAhead(t *testing.T) {
	cfg := membersOf(t, 3, 1)
	n := New(Config{Ensemble: cfg, ID: 4, AcceptedEpoch: 7, CurrentEpoch: 3, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	n.Step(note(2, RoleFollowing, 3, 0, 0, 1))
	n.Step(note(3, RoleLeading, 3, 0, 0, 1))
	require.Equal(t, RoleObserving, n.role)
	n.Step(Input{Kind: InputConnected, Peer: 3, Conn: 1, NowMs: 1000})
	n.Step(Input{Kind: InputMessage, NowMs: 1000, Message: &Message{Kind: MessageLeaderInfo, From: 3, Conn: 1, Epoch: 6}})
	require.Equal(t, RoleObserving, n.role, "%s: and the leader never moves for an observer", n.why)
}

// TestFiveLeaderOfNobody: of five voters two are dead; the elected one had both others for a moment, and gives way when it has lost
// them.
func TestFiveLeaderOfNobody(t *testing.T) {
	l := New(Config{Ensemble: membersOf(t, 5, 0), ID: 3, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
	for _, p := range []zxid.ServerID{1, 2} {
		l.Step(Input{Kind: InputLinkUp, Peer: p, NowMs: 1000})
		l.Step(note(p, RoleLooking, 3, 0, 0, 1))
	}
	require.Equal(t, RoleLeading, l.role)
	for _, p := range []zxid.ServerID{1, 2} {
		l.Step(Input{Kind: InputConnected, Peer: p, Conn: ConnID(p), NowMs: 1000})
		l.Step(Input{Kind: InputMessage, NowMs: 1000, Message: &Message{Kind: MessageFollowerInfo, From: p, Conn: ConnID(p)}})
	}
	persistAll(l)
	for _, p := range []zxid.ServerID{1, 2} {
		l.Step(Input{Kind: InputDisconnected, Conn: ConnID(p), NowMs: 1000})
	}
	now := int64(1000)
	for ; now < 30000 && l.role == RoleLeading; now += 100 {
		for _, p := range []zxid.ServerID{1, 2} {
			in := note(p, RoleLooking, 2, 0, 0, 2)
			in.NowMs = now
			l.Step(in)
		}
	}
	require.Less(t, now-1000, int64(2500), "leads nobody for %d ms while both others look in a later round and need it for a quorum", now-1000)
}

// TestSlowConnect: connections that take 2.5 s each make a leader in the end.
func TestSlowConnect(t *testing.T) {
	var nodes []*Node
	for _, id := range []zxid.ServerID{1, 2} {
		n := New(Config{Ensemble: membersOf(t, 3, 0), ID: id, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000})
		n.Step(Input{Kind: InputLinkUp, Peer: 3 - id, NowMs: 1000})
		nodes = append(nodes, n)
	}
	f, l := nodes[0], nodes[1]
	var gen uint32
	var since int64
	conn := ConnID(0)
	for now := int64(1000); now < 300000; now += 10 {
		exchange(10, now, nodes)
		if l.serving {
			return
		}
		if f.role != RoleFollowing {
			continue
		}
		if f.generation != gen {
			gen, since = f.generation, now
		}
		if now-since >= 2500 && f.learner.conn == 0 && l.role == RoleLeading {
			conn++
			l.Step(Input{Kind: InputConnected, Peer: 1, Conn: conn, NowMs: now})
			f.Step(Input{Kind: InputConnected, Peer: 2, Conn: conn, NowMs: now})
		}
	}
	t.Fatalf("no leader in 300 s, with %d connections", conn)
}

// TestLeaderThatCannotBeConnectedTo: who wins the election and cannot be connected to is passed over in the next one, although it
// can be heard.
func TestLeaderThatCannotBeConnectedTo(t *testing.T) {
	n := New(Config{Ensemble: membersOf(t, 3, 0), ID: 1, TickMs: 2000, InitLimitMs: 20000, SyncLimitMs: 10000, NowMs: 1000})
	at := func(ms int64, in Input) { in.NowMs = ms; n.Step(in) }
	at(1000, Input{Kind: InputLinkUp, Peer: 2})
	at(1000, Input{Kind: InputLinkUp, Peer: 3})
	at(1001, note(2, RoleLooking, 3, 0, 0, 1))
	at(1001, note(3, RoleLooking, 3, 0, 0, 1))
	require.Equal(t, RoleFollowing, n.role)
	require.EqualValues(t, 3, n.learner.leader)
	at(1001+connectLimitMs, Input{Kind: InputTick})
	require.Equal(t, RoleLooking, n.role)
	at(1002+connectLimitMs, note(3, RoleLooking, 3, 0, 0, 2))
	at(1002+connectLimitMs, note(2, RoleLooking, 2, 0, 0, 2))
	at(1002+connectLimitMs+finalizeWaitMs, Input{Kind: InputTick})
	require.Equal(t, RoleFollowing, n.role)
	require.EqualValues(t, 2, n.learner.leader)
}
