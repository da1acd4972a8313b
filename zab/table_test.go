package zab_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zabtest"
	"zabra/zab/zxid"
)

// place is a moment in the life of an ensemble of three voters and an observer at which one server is looked at: right
// before a message of a kind arrives somewhere.
type place struct {
	role   zab.Role
	phase  zab.Phase
	server zxid.ServerID
	before zab.MessageKind
	at     zxid.ServerID
}

// places has each role in each phase, in several stages of it. Server 3 is the one that leads.
var places = []place{
	{zab.RoleLooking, zab.PhaseElection, 1, zab.MessageNotification, 1},
	{zab.RoleLooking, zab.PhaseElection, 4, zab.MessageNotification, 4},
	{zab.RoleFollowing, zab.PhaseDiscovery, 1, zab.MessageLeaderInfo, 1},
	{zab.RoleFollowing, zab.PhaseSynchronization, 1, zab.MessageDiff, 1},
	{zab.RoleFollowing, zab.PhaseSynchronization, 1, zab.MessageNewLeader, 1},
	{zab.RoleFollowing, zab.PhaseSynchronization, 1, zab.MessageUpToDate, 1},
	{zab.RoleFollowing, zab.PhaseBroadcast, 1, zab.MessageProposal, 1},
	{zab.RoleFollowing, zab.PhaseBroadcast, 1, zab.MessageCommit, 1},
	{zab.RoleObserving, zab.PhaseDiscovery, 4, zab.MessageLeaderInfo, 4},
	{zab.RoleObserving, zab.PhaseSynchronization, 4, zab.MessageDiff, 4},
	{zab.RoleObserving, zab.PhaseSynchronization, 4, zab.MessageNewLeader, 4},
	{zab.RoleObserving, zab.PhaseSynchronization, 4, zab.MessageUpToDate, 4},
	{zab.RoleObserving, zab.PhaseBroadcast, 4, zab.MessageInform, 4},
	{zab.RoleLeading, zab.PhaseDiscovery, 3, zab.MessageFollowerInfo, 3},
	{zab.RoleLeading, zab.PhaseDiscovery, 3, zab.MessageLeaderInfo, 1},
	{zab.RoleLeading, zab.PhaseDiscovery, 3, zab.MessageAckEpoch, 3},
	{zab.RoleLeading, zab.PhaseSynchronization, 3, zab.MessageNewLeader, 1},
	{zab.RoleLeading, zab.PhaseSynchronization, 3, zab.MessageAckNewLeader, 3},
	{zab.RoleLeading, zab.PhaseBroadcast, 3, zab.MessageUpToDate, 1},
	{zab.RoleLeading, zab.PhaseBroadcast, 3, zab.MessageAck, 3},
	{zab.RoleLeading, zab.PhaseBroadcast, 3, zab.MessageInform, 4},
}

func (p place) String() string {
	return fmt.Sprintf("%v-%v-before-%v-at-%d", p.role, p.phase, p.before, p.at)
}

// reach plays an ensemble up to the place. Once it serves, a client writes.
func (p place) reach(t testing.TB) (*zabtest.World, *zabtest.Server) {
	w := zabtest.New(zabtest.Options{Voters: 3, Observers: 1})
	for id := range zxid.ServerID(4) {
		w.Given(id+1, 2, 2, zxid.Make(1, 1), zxid.Make(1, 2), zxid.Make(2, 1))
	}
	w.Start(1, 2, 3, 4)
	if p.phase == zab.PhaseBroadcast && p.before != zab.MessageUpToDate {
		w.Until("all serve", w.Level)
		require.NotZero(t, w.Write(3, "first"))
		w.Settle()
		require.NotZero(t, w.Write(1, "second"))
	}
	w.Before(p.String(), func(e zabtest.Event) bool { return e.Message != nil && e.Message.Kind == p.before && e.To == p.at })
	require.NoError(t, w.Err())
	s := w.Server(p.server)
	st := s.Node.Status()
	require.Equal(t, []any{p.role, p.phase}, []any{st.Role, st.Phase}, p)
	require.Equal(t, zab.Ready{}, s.Node.Ready())
	return w, s
}

// conns are the numbers of a server's open connections, ascending, and its peers there.
func conns(s *zabtest.Server) (list []zab.ConnID) {
	for n := zab.ConnID(1); n < 100; n++ {
		if s.Conns[n] != nil {
			list = append(list, n)
		}
	}
	return list
}

// ignored steps a message and wants it to have changed nothing.
func ignored(t *testing.T, w *zabtest.World, s *zabtest.Server, m zab.Message) {
	t.Helper()
	before, wake := s.Node.Status(), s.Node.WakeAtMs()
	s.Node.Step(zab.Input{Kind: zab.InputMessage, NowMs: w.NowMs, Message: &m})
	require.Equal(t, before, s.Node.Status(), "%v", m.Kind)
	require.Equal(t, zab.Ready{}, s.Node.Ready(), "%v", m.Kind)
	require.Equal(t, wake, s.Node.WakeAtMs(), "%v", m.Kind)
}

// What the table of expected messages refuses changes nothing: on a live connection, in no role and phase.
func TestUnexpectedMessagesChangeNothing(t *testing.T) {
	for _, p := range places {
		t.Run(p.String(), func(t *testing.T) {
			w, s := p.reach(t)
			refused := 0
			for kind := zab.MessageNotification + 1; kind < zab.MessageKindsEnd+3; kind++ {
				if zab.Expected(p.role, p.phase, kind) {
					continue
				}
				refused++
				for _, conn := range append(conns(s), 0) {
					ignored(t, w, s, plausible(s, kind, conn))
				}
			}
			require.GreaterOrEqual(t, refused, 13)
			// The server is none the worse for it.
			w.Until("all serve", w.Level)
			require.NoError(t, w.Err())
		})
	}
}

// A leader expects all that learners send, and goes by how far each of them has come: what one repeats, or sends too
// early, changes nothing but that it was heard.
func TestMessagesOutOfStageChangeNothing(t *testing.T) {
	kinds := []zab.MessageKind{zab.MessageFollowerInfo, zab.MessageObserverInfo, zab.MessageAckEpoch, zab.MessageAckNewLeader}
	early := append(kinds[2:len(kinds):len(kinds)], zab.MessageRequest, zab.MessageSync, zab.MessageRevalidate)
	cases := []struct {
		place place
		kinds []zab.MessageKind
	}{
		{place{zab.RoleLeading, zab.PhaseBroadcast, 3, zab.MessageAck, 3}, kinds},
		{place{zab.RoleLeading, zab.PhaseDiscovery, 3, zab.MessageFollowerInfo, 3}, early},
		{place{zab.RoleLeading, zab.PhaseSynchronization, 3, zab.MessageAckNewLeader, 3}, append(kinds[:3:3], early[2:]...)},
	}
	for _, c := range cases {
		w, s := c.place.reach(t)
		require.NotEmpty(t, conns(s))
		for _, kind := range c.kinds {
			for _, conn := range conns(s) {
				m := plausible(s, kind, conn)
				before := s.Node.Status()
				s.Node.Step(zab.Input{Kind: zab.InputMessage, NowMs: w.NowMs, Message: &m})
				require.Equal(t, before, s.Node.Status(), "%v: %v", c.place, kind)
				require.Equal(t, zab.Ready{}, s.Node.Ready(), "%v: %v", c.place, kind)
			}
		}
		w.Until("all serve", w.Level)
		require.NoError(t, w.Err())
	}
}

// What comes in on a connection that is gone, or never was, changes nothing, whatever it is.
func TestMessagesOfADeadConnectionChangeNothing(t *testing.T) {
	for _, p := range places {
		t.Run(p.String(), func(t *testing.T) {
			w, s := p.reach(t)
			for kind := zab.MessageNotification + 1; kind < zab.MessageKindsEnd; kind++ {
				ignored(t, w, s, plausible(s, kind, 77))
				ignored(t, w, s, plausible(s, kind, 0))
			}
			for _, gone := range conns(s) {
				s.Node.Step(zab.Input{Kind: zab.InputDisconnected, NowMs: w.NowMs, Conn: gone})
				s.Node.Ready()
				for kind := zab.MessageNotification + 1; kind < zab.MessageKindsEnd; kind++ {
					ignored(t, w, s, plausible(s, kind, gone))
				}
			}
		})
	}
}

// plausible is a message as it could come in at another time.
func plausible(s *zabtest.Server, kind zab.MessageKind, conn zab.ConnID) zab.Message {
	st := s.Node.Status()
	last := st.LastProposed
	m := zab.Message{
		Kind: kind, From: 2, To: s.ID, Conn: conn, Epoch: st.Accepted, Zxid: last, Ends: []zxid.Zxid{last}, ID: 1, Committed: last,
		Snapshot: zab.SnapshotFile{Zxid: last}, Requests: make([]zab.Request, 1), Touches: []zab.Touch{{Session: 1}},
	}
	if kind == zab.MessageProposal || kind == zab.MessageInform {
		m.Entries = []zab.Entry{{Zxid: last + 1}}
	}
	return m
}

// No peer can make a server panic, whatever it sends, in no role and phase: such messages are drawn, with values that
// nearly fit and values that do not at all, together with what a disk and a shell would answer.
func TestNoMessagePanics(t *testing.T) {
	const sequences = 60
	left := map[zab.Role]int{}
	for i, p := range places {
		for seq := range uint64(sequences) {
			rng := rand.New(rand.NewPCG(uint64(i), seq))
			_, s := p.reach(t)
			sequence(t, fmt.Sprintf("%v, sequence %d", p, seq), s, rng)
			left[s.Node.Status().Role]++
		}
	}
	require.Len(t, left, 4, "the sequences lead to every role: %v", left)
}

// sequence feeds one server with what a generator draws.
func sequence(t *testing.T, name string, s *zabtest.Server, rng *rand.Rand) {
	var last *zab.Input
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s: %v, after %+v, message %+v", name, p, last, last.Message)
		}
	}()
	d := drawer{rng: rng, node: s.Node, conns: append(conns(s), 0, 50), nowMs: 2000}
	for range 80 {
		in := d.input()
		last = &in
		s.Node.Step(in)
		if rng.IntN(3) > 0 {
			d.take()
		}
		st := s.Node.Status()
		require.LessOrEqual(t, st.LastDurable, st.LastProposed, "%s: %+v after %+v", name, st, in)
		require.False(t, st.Serving && st.Phase != zab.PhaseBroadcast, "%s: %+v", name, st)
	}
}

// drawer draws inputs for a Node.
type drawer struct {
	rng    *rand.Rand
	node   *zab.Node
	conns  []zab.ConnID
	nowMs  int64
	token  zab.Token
	asked  []zab.HistoryRequest
	nextID zab.ConnID
}

// take takes what the Node wants, and remembers what can be answered.
func (d *drawer) take() {
	rd := d.node.Ready()
	for _, op := range rd.Persist {
		d.token = op.Token
	}
	d.asked = append(d.asked, rd.History...)
}

func (d *drawer) input() zab.Input {
	in := zab.Input{NowMs: d.nowMs}
	switch d.rng.IntN(14) {
	case 0:
		in.Kind, in.Token = zab.InputPersisted, d.token
	case 1:
		d.nowMs += d.rng.Int64N(300)
		in.Kind, in.NowMs = zab.InputTick, d.nowMs
	case 2:
		in.Kind, in.Conn = zab.InputSnapshot, d.conn()
	case 3:
		in.Kind, in.Conn = zab.InputProgress, d.conn()
	case 4:
		d.nextID++
		in.Kind, in.Conn, in.Peer = zab.InputConnected, 50+d.nextID, d.server()
		d.conns = append(d.conns, in.Conn)
	case 5:
		in.Kind, in.Peer = zab.InputLinkUp, d.server()
	case 6:
		if len(d.asked) > 0 {
			r := d.asked[0]
			d.asked = d.asked[1:]
			in.Kind = zab.InputHistory
			in.History = &zab.History{Conn: r.Conn, After: r.After, Snapshot: &zab.SnapshotFile{Zxid: r.After + 1}}
			break
		}
		fallthrough
	default:
		in.Kind, in.Message = zab.InputMessage, d.message()
	}
	return in
}

func (d *drawer) conn() zab.ConnID      { return d.conns[d.rng.IntN(len(d.conns))] }
func (d *drawer) server() zxid.ServerID { return zxid.ServerID(d.rng.IntN(7)) - 1 }
func (d *drawer) epoch() zxid.Epoch {
	st := d.node.Status()
	switch d.rng.IntN(8) {
	case 0:
		return zxid.Epoch(d.rng.Uint32())
	case 1:
		return 1<<31 - 1
	case 2:
		return st.Epoch
	}
	return st.Accepted + zxid.Epoch(d.rng.IntN(3))
}

func (d *drawer) zxid() zxid.Zxid {
	st := d.node.Status()
	known := []zxid.Zxid{
		st.LastProposed, st.LastProposed + 1, st.LastDurable, st.LastCommitted, st.LastCommitted - 1, 0, -1, zxid.Make(1, 1), zxid.Make(1, 2), zxid.Make(1, 7),
		zxid.Make(d.epoch(), 1), zxid.Make(st.Accepted, zxid.CounterMax), zxid.Zxid(d.rng.Uint64()),
	}
	if d.rng.IntN(2) == 0 {
		return st.LastProposed
	}
	return known[d.rng.IntN(len(known))]
}

func (d *drawer) message() *zab.Message {
	rng := d.rng
	m := &zab.Message{
		Kind: zab.MessageKind(rng.IntN(int(zab.MessageKindsEnd) + 2)), From: d.server(), To: d.server(), Conn: d.conn(), Epoch: d.epoch(), Zxid: d.zxid(),
		Vote: zab.Vote{Leader: d.server(), Zxid: d.zxid(), Epoch: d.epoch()}, Round: uint64(rng.IntN(5)), Role: zab.Role(rng.IntN(7)),
		ConfigVersion: rng.Int64(), Floor: d.zxid(), NoVote: rng.IntN(3) == 0, Snapshot: zab.SnapshotFile{Zxid: d.zxid()}, SnapshotOffset: rng.Int64(),
		Committed: d.zxid(), ID: uint64(rng.IntN(6)), Session: zxid.SessionID(rng.Uint64()),
	}
	for range rng.IntN(4) {
		m.Ends = append(m.Ends, d.zxid())
	}
	if rng.IntN(2) == 0 {
		m.Ends = append(m.Ends, m.Zxid)
	}
	z := m.Zxid
	for range rng.IntN(4) {
		if z++; rng.IntN(5) == 0 {
			z = d.zxid()
		}
		m.Entries = append(m.Entries, zab.Entry{Zxid: z, Payload: make([]byte, rng.IntN(3))})
	}
	return m
}
