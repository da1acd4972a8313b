package zabtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zabtest"
	"zabra/zab/zxid"
)

// A write of a follower's client, of an observer's, and of the leader's own.
func TestWrites(t *testing.T) {
	s := running(t, 3, 1, 0)
	for i, id := range []zxid.ServerID{3, 1, 4} {
		n := s.write(id, "w")
		require.Equal(t, zxid.Make(1, uint32(i+1)), s.Server(id).Done[n])
	}
	for id := range zxid.ServerID(4) {
		s.has(id+1, at(1, 1, 2, 3)...)
	}
	require.Equal(t, 3, s.Sent(zab.MessageInform))
}

// An observer is sent what is committed, in INFORM, and counts for nothing: without the followers there is no commit.
func TestObserver(t *testing.T) {
	s := running(t, 3, 1, 1)
	s.Say("the followers do not acknowledge any more; a client writes at 4")
	s.Hold = func(e zabtest.Event) bool { return e.Message != nil && e.Message.Kind == zab.MessageAck && e.From != 4 }
	n := s.Write(4, "w")
	s.Settle()
	require.False(t, s.Has("3 > 4  INFORM"))
	require.Zero(t, s.Server(4).Done[n])
	s.Say("they acknowledge")
	s.Hold = nil
	s.Settle()
	require.True(t, s.Has("3 > 4  INFORM", "1:2 after 1:1, committed 1:2"))
	require.Equal(t, zxid.Make(1, 2), s.Server(4).Done[n])
	s.kill(4)
	s.leads(3, 1)
	s.write(3, "without it")
	s.start(4)
	require.True(t, s.Has("4 > 3  OBSERVERINFO", "accepted epoch 1"))
	s.follow(3, 4)
	s.has(4, at(1, 1, 2, 3)...)
}

// Proposals that come in while the disk works become one append and one message.
func TestBatch(t *testing.T) {
	s := running(t, 3, 0, 0)
	s.Say("four writes in one step of server 3")
	next := s.Server(3).Node.NextZxid()
	var entries []zab.Entry
	for i := range zxid.Zxid(4) {
		entries = append(entries, s.Proposed(3, next+i, "w"))
	}
	s.Server(3).Node.Propose(entries...)
	s.Tick(0)
	s.Settle()
	require.True(t, s.Has("3 disk: appends 1:1..1:4"))
	require.True(t, s.Has("3 > 1  PROPOSAL", "1:1..1:4 after 0"))
	require.True(t, s.Has("1 > 3  ACK", "1:4"))
	s.has(1, at(1, 1, 2, 3, 4)...)
}

// The disk of the leader is slow: what the followers have is committed, and the leader applies it when it has it too.
func TestLeaderIsSlowerThanItsFollowers(t *testing.T) {
	s := running(t, 3, 0, 0)
	s.Say("the disk of 3 pauses; a client writes at 1")
	s.Server(3).Disk.Hung = true
	n := s.Write(1, "w")
	s.Settle()
	require.Equal(t, zxid.Make(1, 1), s.Server(1).Done[n])
	require.Equal(t, zxid.Make(1, 1), s.Server(3).Node.Status().LastCommitted)
	s.has(3)
	s.Say("it goes on")
	s.Server(3).Disk.Hung = false
	s.Settle()
	s.has(3, at(1, 1)...)
}

// The disk of the leader hangs: it gives up, and stays out of the way until the disk answers.
func TestLeaderDiskHangs(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Say("the disk of 3 hangs; a client writes at 3")
	s.Server(3).Disk.Hung = true
	s.Write(3, "w")
	s.Pass(zabtest.SyncLimitMs)
	s.is(3, zab.RoleLooking, zab.PhaseElection, false)
	require.True(t, s.Has("3 is LOOKING: this server's own disk does not keep up"))
	s.Until("another one leads", func() bool { return s.Leader() != nil })
	require.NotEqual(t, zxid.ServerID(3), s.Leader().ID)
	s.untilServing(1, 2)
	s.pass(2000)
	s.is(3, zab.RoleLooking, zab.PhaseElection, false)
	s.Say("the disk of 3 answers")
	s.Server(3).Disk.Hung = false
	s.untilLevel()
	for id := range zxid.ServerID(3) {
		s.has(id+1, at(1, 1, 2)...)
	}
}

// The disk of a follower hangs: the leader lets it go, and it comes back.
func TestFollowerDiskHangs(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Say("the disk of 1 hangs; a client writes at 3")
	s.Server(1).Disk.Hung = true
	s.Write(3, "w")
	s.Pass(zabtest.SyncLimitMs + 200)
	require.True(t, s.Has("3 > 1  hangs up: it does not acknowledge proposals in time"))
	s.leads(3, 1)
	s.is(1, zab.RoleLooking, zab.PhaseElection, false)
	s.Say("the disk of 1 answers")
	s.Server(1).Disk.Hung = false
	s.untilLevel()
	s.has(1, at(1, 1, 2)...)
}

// A leader without a quorum steps down; what it proposed meanwhile is lost when the others have gone on.
func TestLeaderLosesItsQuorum(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Say("server 3 is cut off, and a client writes there")
	s.Write(3, "in vain")
	s.Part(1, 3)
	s.Part(2, 3)
	s.Settle()
	st := s.is(3, zab.RoleLooking, zab.PhaseElection, false)
	require.Equal(t, "the leader is not followed by a quorum any more", st.Why)
	s.Pass(500)
	s.leads(2, 2)
	s.write(1, "of epoch 2")
	s.Say("server 3 is reached again")
	s.Join(1, 3)
	s.Join(2, 3)
	s.untilLevel()
	s.has(3, zxid.Make(1, 1), zxid.Make(2, 1))
}

// One follower of two is enough.
func TestLeaderKeepsItsQuorum(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.kill(1)
	s.leads(3, 1)
	s.write(2, "goes on")
	s.has(3, at(1, 1, 2)...)
	s.kill(2)
	s.is(3, zab.RoleLooking, zab.PhaseElection, false)
}

// Nothing comes from a follower any more, and no connection breaks.
func TestSilentFollower(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Pings = true
	s.Say("server 1 is not heard any more")
	s.Hold = func(e zabtest.Event) bool { return e.From == 1 && e.Message != nil }
	s.Pass(zabtest.SyncLimitMs - 1)
	s.is(1, zab.RoleFollowing, zab.PhaseBroadcast, true)
	require.Equal(t, 2, s.Server(3).Node.Status().Learners)
	s.Pass(200)
	require.True(t, s.Has("3 > 1  hangs up: it was not heard for too long"))
	s.leads(3, 1)
	s.Pings, s.Hold = false, nil
	s.Say("it is heard again")
	s.untilLevel()
	s.follow(3, 1, 2)
}

// Nothing comes from the leader any more: its followers find another one, and the old one steps down for want of
// answers.
func TestSilentLeader(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Say("server 3 is not heard and hears nothing any more")
	s.Hold = func(e zabtest.Event) bool { return e.From != e.To && (e.From == 3 || e.To == 3) }
	s.Until("server 2 leads", func() bool { return s.Leader() != nil && s.Leader().ID == 2 })
	require.True(t, s.Has("1 is LOOKING: the leader was not heard for too long"))
	s.leads(2, 2)
	s.Until("server 3 gives up", func() bool { return s.Server(3).Node.Status().Role == zab.RoleLooking })
	require.LessOrEqual(t, s.NowMs, int64(1000+2*zabtest.SyncLimitMs))
	s.Say("it is back")
	s.Hold = nil
	s.untilLevel()
	s.follow(2, 1, 3)
}

// Syncs of all servers share a round of pings.
func TestSyncsShareARound(t *testing.T) {
	s := running(t, 3, 1, 1)
	s.Pings = true
	s.Say("syncs at 3, 1, 4, 3")
	ids := []zxid.ServerID{3, 1, 4, 3}
	var syncs []uint64
	for _, id := range ids {
		syncs = append(syncs, s.Sync(id))
	}
	before := s.Sent(zab.MessagePing)
	s.Settle()
	for i, id := range ids {
		require.Equal(t, zxid.Make(1, 1), s.Server(id).Synced[syncs[i]], "sync %d at %d", syncs[i], id)
	}
	require.LessOrEqual(t, s.Sent(zab.MessagePing)-before, 2*3, "one round under way, and one for all that came meanwhile")
}

// A sync waits for what was proposed before it.
func TestSyncWaitsForTheCommit(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Pings = true
	s.Say("nobody acknowledges; a client writes and syncs at 1")
	s.Hold = func(e zabtest.Event) bool { return e.Message != nil && e.Message.Kind == zab.MessageAck }
	s.Write(1, "w")
	id := s.Sync(1)
	s.Settle()
	require.NotContains(t, s.Server(1).Synced, id)
	s.Say("they acknowledge")
	s.Hold = nil
	s.Settle()
	require.Equal(t, zxid.Make(1, 2), s.Server(1).Synced[id])
}

// depose lets the others go on without server 3, which does not notice, and serves. A client writes in the new epoch, and
// one syncs at server 3.
func (s *story) depose() uint64 {
	s.Say("server 3 hears nothing any more, and is not told")
	s.Hold = func(e zabtest.Event) bool { return e.From != e.To && (e.From == 3 || e.To == 3) }
	s.BreakQuietly(1, 3)
	s.BreakQuietly(2, 3)
	s.Until("server 2 leads", func() bool { return s.Leader() != nil && s.Leader().ID == 2 })
	s.untilServing(1, 2)
	s.leads(3, 1)
	s.write(2, "of epoch 2")
	s.Say("a client syncs at 3")
	id := s.Sync(3)
	require.NotZero(s.t, id)
	s.Pass(200)
	return id
}

// A leader that the others have left behind does not know it yet. It still serves, and answers no sync.
func TestSyncAtADeposedLeader(t *testing.T) {
	s := running(t, 3, 0, 1)
	id := s.depose()
	require.NotContains(t, s.Server(3).Synced, id)
	s.Until("server 3 gives up", func() bool { return !s.Server(3).Node.Status().Serving })
	require.NotContains(t, s.Server(3).Synced, id)
	require.Empty(t, s.Server(3).Proven)
	s.Say("it is back")
	s.Hold = nil
	s.untilLevel()
	s.follow(2, 1, 3)
}

// The same with the bug that a leader answers without proof.
func TestSyncAtADeposedLeaderIsJudged(t *testing.T) {
	w := zabtest.New(zabtest.Options{Voters: 3, Plant: zab.PlantSyncWithoutQuorum})
	s := &story{World: w, Transcript: w.Record(), t: t}
	s.Start(1, 2, 3)
	s.untilLevel()
	s.depose()
	require.ErrorContains(t, w.Err(), "server 3 answers a sync with 0x0, but 0x200000001 was committed when it was asked for")
}

const mebibyte = 1 << 20

// A learner that does not acknowledge is sent so much and no more.
func TestSlowLearnerIsSentABoundedAmount(t *testing.T) {
	s := running(t, 3, 0, 0)
	s.Off = true
	big := strings.Repeat("x", mebibyte)
	s.Hold = func(e zabtest.Event) bool { return e.From == 1 && e.Message != nil && e.Message.Kind == zab.MessageAck }
	before := s.SentBytes(1)
	for range 12 {
		s.Write(3, big)
		s.Settle()
	}
	require.EqualValues(t, 8, (s.SentBytes(1)-before)/mebibyte)
	require.EqualValues(t, 12, s.Server(3).Node.Status().LastCommitted.Counter())
	s.Hold = nil
	s.untilLevel()
	require.EqualValues(t, 12, (s.SentBytes(1)-before)/mebibyte)
	require.Len(t, s.Server(1).State, 12)
}

// One that is so slow that what it lacks is not in memory any more begins anew.
func TestSlowLearnerFallsOutOfTheWindow(t *testing.T) {
	s := running(t, 3, 0, 0)
	big := strings.Repeat("x", mebibyte)
	s.Off = true
	s.Hold = func(e zabtest.Event) bool {
		return e.From == 1 && (e.What == "dial" || e.Message != nil && e.Message.Kind == zab.MessageAck)
	}
	for s.Server(3).Node.Status().Learners == 2 {
		s.Write(3, big)
		s.Settle()
		require.Less(t, len(s.Server(3).State), 200)
	}
	require.Greater(t, len(s.Server(3).State), 100)
	s.Off, s.Hold = false, nil
	s.Say("server 1 did not acknowledge, and was let go when the memory of 3 began behind what it was sent")
	require.Equal(t, "the connection to the leader is gone", s.Server(1).Node.Status().Why)
	s.untilLevel()
	require.True(t, s.Has("3 reads its log after"))
	require.Equal(t, len(s.Server(3).State), len(s.Server(1).State))
}

// The log ends at the last zxid of an epoch: the next leader goes on in its own.
func TestLogEndsAtTheLastCounter(t *testing.T) {
	s := tell(t, 3, 0)
	for id := range zxid.ServerID(3) {
		s.Given(id+1, 1, 1, zxid.Make(1, zxid.CounterMax))
		s.Server(id + 1).Disk.Start = zxid.Make(1, zxid.CounterMax-1)
	}
	s.start(1, 2, 3)
	s.leads(3, 2)
	s.write(1, "first")
	require.Equal(t, zxid.Make(2, 1), s.Server(1).Disk.Last())
}
