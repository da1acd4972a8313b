package replica

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab"
	"zabra/znode"
)

func TestWritesOfEveryMemberReachAll(t *testing.T) {
	f := newFlock(t, 1)
	var clients []*client
	for _, id := range f.ids {
		cl := f.hosts[id].connect()
		require.Equal(t, byte(id), cl.id.ServerByte())
		cl.mustCreate("/by"+string('0'+rune(id)), 0)
		clients = append(clients, cl)
	}
	f.wait(testTickMs)
	for _, cl := range clients {
		for _, id := range f.ids {
			require.Equal(t, wire.CodeOK, cl.exists("/by"+string('0'+rune(id))))
		}
	}
	f.checkEqual()
}

func TestRolesAreTold(t *testing.T) {
	f := newFlock(t, 1)
	f.hosts[1].connect()
	roles := map[zab.Role]int{}
	for _, id := range f.ids {
		st := f.hosts[id].w.r.Stats()
		roles[st.Zab.Role]++
		if st.Zab.Role == zab.RoleLeading {
			require.Equal(t, 2, st.Zab.SyncedFollowers)
			require.Equal(t, 1, st.Zab.SyncedObservers)
			require.Positive(t, st.LastProposalBytes)
			f.hosts[id].w.r.ResetStats()
			require.Equal(t, -1, f.hosts[id].w.r.Stats().MaxProposalBytes)
		} else {
			require.Equal(t, -1, st.LastProposalBytes)
		}
	}
	require.Equal(t, map[zab.Role]int{zab.RoleLeading: 1, zab.RoleFollowing: 2, zab.RoleObserving: 1}, roles)
}

func TestConfigNodeHasTheMembership(t *testing.T) {
	f := newFlock(t, 0)
	for _, id := range f.ids {
		cl := f.hosts[id].connect()
		rp := cl.call(wire.OpGetData, &wire.PathWatchRequest{Path: []byte(znode.ConfigPath)})
		var data wire.DataReply
		rp.decode(t, &data)
		require.Equal(t, f.cfg.Text(), string(data.Data))
		require.Equal(t, int32(-1), data.Stat.Version)
		require.LessOrEqual(t, data.Stat.Mtime, f.now.WallMs)
		require.NotZero(t, data.Stat.Mtime)
		require.Equal(t, wire.CodeReconfigDisabled, cl.call(wire.OpReconfig, &wire.ReconfigRequest{ConfigID: -1}).Err)
	}
	f.checkEqual()
}

// TestAnswersAreThoseOfAStandaloneServer sends the same requests to a standalone server, a leader and a follower.
func TestAnswersAreThoseOfAStandaloneServer(t *testing.T) {
	type request struct {
		op  wire.Op
		rec wire.Record
	}
	path := &wire.PathRequest{Path: []byte("/a")}
	requests := []request{
		{wire.OpCreate, create("/a")},
		{wire.OpCreate, create("/a")},
		{wire.OpCreate2, create("/b")},
		{wire.OpCreate, create("no slash")},
		{wire.OpSetData, path}, // cut short
		{wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Data: []byte("x"), Version: 7}},
		{wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Data: []byte("x"), Version: 0}},
		{wire.OpDeleteContainer, &wire.PathRequest{}}, // null path
		{wire.OpMulti, multi{{Op: wire.OpCheck, Path: []byte("/a"), Version: 1}, {Op: wire.OpDelete, Path: []byte("/none"), Version: -1}}},
		{wire.OpMulti, multi{{Op: wire.OpGetData, Path: []byte("/a")}}},
		{wire.OpMulti, multi{{Op: wire.OpCreate, Create: wire.CreateTTLRequest{Path: []byte("/n"), TTL: -1}}}}, // null ACL
		{wire.OpMulti, path},
		{wire.OpSetACL, &wire.SetACLRequest{Path: []byte("/a"), ACL: wire.OpenACL, Version: -1}},
		{wire.OpReconfig, &wire.ReconfigRequest{}},
		{wire.OpReconfig, nil},
		{wire.OpSync, path},
		{wire.OpSync, nil},
		{wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/a"), Version: -1}},
		{wire.OpWhoAmI, nil},
	}
	type answer struct {
		code wire.Code
		used int64 // zxids
		bare bool
	}
	run := func(cl *client) (list []answer) {
		last := cl.call(wire.OpExists, path).Zxid
		for _, q := range requests {
			rp := cl.call(q.op, q.rec)
			list = append(list, answer{rp.Err, int64(rp.Zxid - last), len(rp.body) == 0})
			last = rp.Zxid
		}
		return list
	}
	want := run(newWorld(t, nil).connect())
	for _, leading := range []bool{true, false} {
		f := newFlock(t, 0)
		h := f.leader()
		if !leading {
			h = f.learners()[0]
		}
		require.Equal(t, want, run(h.connect()), "leading: %v", leading)
		f.wait(testTickMs)
		f.checkEqual()
	}
}

func TestRefusalOfTheLeaderIsGivenInTurn(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect()
	cl.send(wire.OpCreate, create("/a"))
	cl.send(wire.OpCreate, create("/b"))
	h.link().holdLeader = true
	f.settle()
	// The second request reaches the leader in a form that only it finds to be malformed.
	for i := range h.link().toLeader {
		for j := range h.link().toLeader[i].Requests {
			if q := &h.link().toLeader[i].Requests[j]; q.Origin.Seq == 3 {
				q.Body = q.Body[:3]
			}
		}
	}
	h.link().holdLeader = false
	cl.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/a")})
	f.settle()
	got := cl.replies()
	require.Equal(t, []int32{1, 2, 3}, xids(got))
	require.Equal(t, wire.CodeMarshalling, got[1].Err)
	require.Equal(t, got[0].Zxid, got[1].Zxid, "no zxid is used")
	f.wait(testTickMs)
	f.checkEqual()
}

func TestOrderOfOneSessionAcrossForwardAndCommit(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect()
	cl.send(wire.OpCreate, create("/a"))
	cl.send(wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/a"), Watch: true})
	cl.send(wire.OpSync, &wire.PathRequest{Path: []byte("/a")})
	cl.send(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Data: []byte("2"), Version: 0})
	cl.send(wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/a")})
	cl.send(wire.OpSync, &wire.PathRequest{Path: []byte("/a")})
	cl.send(wire.OpSync, &wire.PathRequest{Path: []byte("/a")})
	cl.send(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/a"), Version: 1})
	cl.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/a")})
	f.step(h)
	require.Empty(t, cl.replies())
	f.settle()
	got := cl.replies()
	require.Equal(t, []int32{1, 2, 3, wire.XidNotification, 4, 5, 6, 7, 8, 9}, xids(got))
	var codes []wire.Code
	for i := range got {
		codes = append(codes, got[i].Err)
		if i > 0 && got[i].Xid != wire.XidNotification && got[i-1].Xid != wire.XidNotification {
			require.GreaterOrEqual(t, got[i].Zxid, got[i-1].Zxid)
		}
	}
	require.Equal(t, []wire.Code{0, 0, 0, 0, 0, 0, 0, 0, 0, wire.CodeNoNode}, codes)
	f.wait(testTickMs)
	f.checkEqual()
}

func TestNothingIsAnsweredBeforeItIsCommittedAndDurableHere(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect()
	h.holdDisk = true
	cl.send(wire.OpCreate, create("/a"))
	f.settle()
	require.Empty(t, cl.replies(), "committed by the others, but not durable here")
	h.holdDisk = false
	f.settle()
	require.Len(t, cl.replies(), 1)
}

func TestBackPressureOfALearner(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	h.w.r.SetLimits(Limits{OutstandingMax: 6}) // shared by the two voters that do not lead
	cl := h.connect()
	require.Equal(t, Continue, cl.sendXid(1, wire.OpCreate, create("/a")))
	require.Equal(t, Continue, cl.sendXid(2, wire.OpCreate, create("/b")))
	require.Equal(t, Wait, cl.sendXid(3, wire.OpCreate, create("/c")))
	f.settle()
	<-cl.c.Resumed()
	require.Len(t, cl.replies(), 3)
}

// TestForwardedBytesAreBounded: what the clients of a learner send waits there while the leader has too much to answer.
func TestForwardedBytesAreBounded(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	data := make([]byte, 1<<20)
	var clients []*client
	for range 3 * forwardedBytesMax / len(data) {
		clients = append(clients, h.connect())
	}
	for i, cl := range clients {
		cl.sendXid(1, wire.OpCreate, &wire.CreateRequest{Path: fmt.Appendf(nil, "/n%d", i), Data: data, ACL: wire.OpenACL})
	}
	f.step(h)
	require.LessOrEqual(t, h.w.r.forwardedBytes, forwardedBytesMax)
	require.Greater(t, h.w.r.forwardedBytes, forwardedBytesMax/2)
	require.NotEmpty(t, h.w.r.parked)
	f.settle()
	for _, cl := range clients {
		require.Len(t, cl.replies(), 1)
	}
	require.Zero(t, h.w.r.forwardedBytes)
	require.Empty(t, h.w.r.parked)
}

// TestParkedWritesAreServedInTurn: clients that write again as soon as they are answered do not keep out those that wait.
func TestParkedWritesAreServedInTurn(t *testing.T) {
	const rounds = 3
	f := newFlock(t, 0)
	h := f.learners()[0]
	var clients []*client
	write := &wire.SetDataRequest{Path: []byte("/none"), Data: make([]byte, 1<<20), Version: -1} // refused: nothing is kept of it
	for range 3 * forwardedBytesMax / len(write.Data) {
		clients = append(clients, h.connect())
	}
	for _, cl := range clients {
		cl.send(wire.OpSetData, write)
	}
	parked := 0
	answers := make([]int, len(clients))
	for f.act() {
		parked = max(parked, len(h.w.r.parked))
		for i, cl := range clients {
			n := len(cl.replies())
			answers[i] += n
			if n > 0 && answers[i] < rounds {
				cl.send(wire.OpSetData, write)
			}
		}
		require.LessOrEqual(t, slices.Max(answers), slices.Min(answers)+1, "answers by client: %v", answers)
	}
	require.Greater(t, parked, len(clients)/2, "the writes are more than may be on their way")
	require.Equal(t, rounds, slices.Min(answers))
	require.Zero(t, h.w.r.forwardedBytes)
	require.Empty(t, h.w.r.parked)
}

// TestIdentitiesCountOnTheWay: a client with many identities and empty writes has as little room as one with long writes.
func TestIdentitiesCountOnTheWay(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect()
	for i := range 5 {
		cl.sendXid(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: fmt.Appendf(nil, "bob%d:%d", i, i)})
	}
	f.settle()
	cl.replies()
	ids := identityBytes(*cl.c.ids.Load())
	require.Greater(t, ids, 5*len("digestbob0:"))
	h.link().holdLeader = true
	req := &wire.PathVersionRequest{Path: []byte("/none"), Version: -1}
	cl.send(wire.OpDelete, req)
	f.settle()
	require.Equal(t, len(encode(req))+ids, h.w.r.forwardedBytes)
	h.link().holdLeader = false
	f.settle()
	require.Zero(t, h.w.r.forwardedBytes)
}

func TestOutstandingLimitIsShared(t *testing.T) {
	f := newFlock(t, 0)
	r := f.hosts[1].w.r
	require.EqualValues(t, outstandingDefault/2, r.limits.Load().outstanding)
	r.SetLimits(Limits{OutstandingMax: 100, Throttle: Throttle{RequestsMax: 7}})
	require.EqualValues(t, 7, r.limits.Load().outstanding)
	r.SetLimits(Limits{OutstandingMax: 1})
	require.EqualValues(t, 1, r.limits.Load().outstanding)
}

func TestIdentitiesTravelWithTheRequest(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl, other := h.connect(), h.connect()
	creator := []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}
	require.Equal(t, wire.CodeInvalidACL, cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/mine"), ACL: creator}).Err)
	cl.sendXid(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("bob:secret")})
	f.settle()
	cl.replies()
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/mine"), ACL: creator}).Err)
	require.Equal(t, wire.CodeNoAuth, other.call(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/mine"), Version: -1}).Err)
	require.Equal(t, wire.CodeOK, cl.call(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/mine"), Version: -1}).Err)
}

func TestStrangeRequestsOfALearnerAreRefused(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	cl := h.connect()
	l := f.leader()
	for _, q := range []zab.Request{
		{Session: cl.id, Op: int32(wire.OpGetData)},
		{Session: cl.id, Op: 4711},
		{Session: 99, Op: int32(wire.OpCreate)},
		{Session: 98, Op: int32(wire.OpCreateSession), Body: []byte{1}},
		{Session: cl.id, Op: int32(wire.OpCreateSession), Body: []byte{0, 0, 1, 0}},
		{Session: 0, Op: int32(wire.OpCreateSession), Body: []byte{0, 0, 1, 0}},
	} {
		before := f.sent[zab.MessageRefused]
		f.step(l, zab.Input{Kind: zab.InputMessage, Message: &zab.Message{Kind: zab.MessageRequest, From: h.id, Conn: h.conn, Requests: []zab.Request{q}}})
		require.Equal(t, before+1, f.sent[zab.MessageRefused], "%+v", q)
	}
	f.settle()
	require.Equal(t, wire.CodeOK, cl.exists("/"))
	f.wait(testTickMs)
	f.checkEqual()
}
