package zabtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zabtest"
	"zabra/zab/zxid"
)

func TestFirstElection(t *testing.T) {
	s := tell(t, 3, 0)
	s.start(1)
	s.is(1, zab.RoleLooking, zab.PhaseElection, false)
	s.start(2, 3)
	s.leads(3, 1)
	s.follow(3, 1, 2)
	s.write(3, "first")
	for id := range zxid.ServerID(3) {
		s.has(id+1, at(1, 1)...)
		require.EqualValues(t, 1, s.Server(id+1).Disk.Current)
		require.EqualValues(t, 1, s.Server(id+1).Disk.Accepted)
	}
}

// Two of three elect each other although the third could come: they wait a moment for it, and not longer.
func TestElectionWithOneMissing(t *testing.T) {
	s := tell(t, 3, 0)
	s.Hold = func(e zabtest.Event) bool { return e.From == 3 && e.Message != nil }
	s.start(1, 2, 3)
	s.is(2, zab.RoleLooking, zab.PhaseElection, false)
	s.pass(199)
	s.is(2, zab.RoleLooking, zab.PhaseElection, false)
	s.pass(1)
	s.leads(2, 1)
	s.follow(2, 1)
	s.Say("server 3 is heard again")
	s.Hold = nil
	s.Settle()
	s.follow(2, 3)
}

func TestElectionByEpoch(t *testing.T) {
	s := tell(t, 3, 0)
	s.Given(1, 2, 2, at(1, 1, 2)...)
	s.Given(2, 2, 1, at(1, 1, 2, 3)...)
	s.Given(3, 1, 1, at(1, 1, 2, 3)...)
	s.start(1, 2, 3)
	s.leads(1, 3)
	s.follow(1, 2, 3)
	s.has(3, at(1, 1, 2)...)
	require.Equal(t, 2, s.Sent(zab.MessageTrunc))
}

func TestElectionByZxid(t *testing.T) {
	s := tell(t, 3, 0)
	s.Given(1, 1, 1, at(1, 1, 2)...)
	s.Given(2, 1, 1, at(1, 1, 2, 3)...)
	s.Given(3, 1, 1, at(1, 1)...)
	s.start(1, 2, 3)
	s.leads(2, 2)
	s.has(1, at(1, 1, 2, 3)...)
	s.has(3, at(1, 1, 2, 3)...)
}

func TestElectionByID(t *testing.T) {
	s := tell(t, 3, 0)
	for id := range zxid.ServerID(3) {
		s.Given(id+1, 1, 1, at(1, 1, 2)...)
	}
	s.start(3, 2, 1)
	s.leads(3, 2)
	s.follow(3, 1, 2)
	s.has(1, at(1, 1, 2)...)
}

// A server that comes later follows the leader there is, even if it would have been elected.
func TestJoinsARunningEnsemble(t *testing.T) {
	s := tell(t, 3, 1)
	s.start(1, 2)
	s.pass(200)
	s.leads(2, 1)
	s.write(1, "before")
	s.start(3)
	s.leads(2, 1)
	s.follow(2, 1, 3)
	s.has(3, at(1, 1)...)
	s.start(4)
	s.follow(2, 4)
	s.has(4, at(1, 1)...)
	st := s.Server(2).Node.Status()
	require.Equal(t, []int{2, 1, 3}, []int{st.SyncedFollowers, st.SyncedObservers, st.Learners})
}

func TestOneVoterEnsemble(t *testing.T) {
	s := tell(t, 1, 0)
	s.start(1)
	s.leads(1, 1)
	n := s.write(1, "alone")
	require.Equal(t, zxid.Make(1, 1), s.Server(1).Done[n])
	s.Say("a client syncs")
	id := s.Sync(1)
	s.Settle()
	require.Equal(t, zxid.Make(1, 1), s.Server(1).Synced[id])
	s.kill(1)
	s.start(1)
	s.leads(1, 2)
	s.has(1, at(1, 1)...)
}

func TestOneVoterAndAnObserver(t *testing.T) {
	s := tell(t, 1, 1)
	s.start(1)
	s.leads(1, 1)
	s.start(2)
	s.follow(1, 2)
	s.write(2, "through the observer")
	s.has(2, at(1, 1)...)
	s.kill(2)
	s.leads(1, 1)
	s.write(1, "without it")
	s.has(1, at(1, 1, 2)...)
}

// The leader gives up: the others take over at once, and it is not elected again.
func TestResign(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Say("server 3 resigns")
	s.Resign(3)
	s.Settle()
	s.Pass(200)
	s.leads(2, 2)
	s.follow(2, 1)
	st := s.is(3, zab.RoleLooking, zab.PhaseElection, false)
	require.Equal(t, "this server gives up the leadership", st.Why)
	s.pass(1000)
	s.is(3, zab.RoleLooking, zab.PhaseElection, false)
	s.write(1, "goes on")
	s.has(2, at(1, 1)[0], zxid.Make(2, 1))
}

func TestAFollowerResigns(t *testing.T) {
	s := running(t, 3, 0, 0)
	s.Say("server 1 resigns")
	s.Resign(1)
	s.Settle()
	s.is(1, zab.RoleLooking, zab.PhaseElection, false)
	s.leads(3, 1)
	s.follow(3, 2)
	s.pass(1000)
	s.is(1, zab.RoleLooking, zab.PhaseElection, false)
}

// Two servers elect one of them without the third, which has more. When it is the first one to follow, the elected
// server finds out from ACKEPOCH, and gives way.
func TestElectedWrongly(t *testing.T) {
	s := tell(t, 3, 0)
	s.Given(1, 1, 1, at(1, 1, 2)...)
	s.Given(2, 1, 1, at(1, 1)...)
	s.Given(3, 1, 1, at(1, 1)...)
	s.Say("start 1, 2, 3; server 1 is not heard, and server 2 does not get to connecting")
	s.Hold = func(e zabtest.Event) bool { return e.From == 1 && e.Message != nil || e.From == 2 && e.What == "dial" }
	s.Start(1, 2, 3)
	s.Until("server 1 follows", func() bool { return s.Server(1).Node.Status().Role == zab.RoleFollowing })
	s.Say("server 1 is heard")
	s.Hold = func(e zabtest.Event) bool { return e.From == 2 && e.What == "dial" }
	s.before(zab.MessageAckEpoch, 3)
	s.Say("server 2 connects as well")
	s.Hold = nil
	s.untilLevel()
	require.True(t, s.Has("3 is LOOKING: server 1 has more: epoch 1 up to 0x100000002"))
	s.leads(1, 3)
	s.follow(1, 2, 3)
	s.has(2, at(1, 1, 2)...)
	s.has(3, at(1, 1, 2)...)
}

// A follower has promised the epoch, and its connection breaks without the leader hearing that it looks for one again:
// when it is asked again its promise does not count, and the epoch is not used.
func TestPromiseMadeTwice(t *testing.T) {
	s := tell(t, 3, 0)
	note := func(e zabtest.Event, from zxid.ServerID, role zab.Role) bool {
		return e.Message != nil && e.Message.Kind == zab.MessageNotification && e.From == from && e.Message.Role == role
	}
	s.Say("start 1, 2; that 2 leads is late to reach 1")
	s.Hold = func(e zabtest.Event) bool { return note(e, 2, zab.RoleLeading) }
	s.Start(1, 2)
	s.before(zab.MessageAckEpoch, 2)
	s.Say("the connection breaks before ACKEPOCH arrives")
	s.Hold = func(e zabtest.Event) bool { return note(e, 1, zab.RoleLooking) }
	s.BreakConn(1, 2)
	s.before(zab.MessageAckEpoch, 2)
	s.Say("the promise is made again")
	s.Hold = nil
	s.untilLevel()
	require.True(t, s.Has("1 > 2", "ACKEPOCH", "no vote"))
	s.leads(2, 2)
	require.EqualValues(t, 2, s.Server(1).Disk.Accepted)
	s.write(2, "first")
	s.has(1, at(2, 1)...)
}

// A voter comes that has promised a later epoch than that of the leader: the leader makes way for a new one.
func TestVoterWithALaterEpoch(t *testing.T) {
	s := tell(t, 3, 0)
	s.Given(3, 7, 0)
	s.start(1, 2)
	s.pass(200)
	s.leads(2, 1)
	s.write(2, "in epoch 1")
	s.start(3)
	require.True(t, s.Has("2 is LOOKING: server 3 has accepted epoch 7, this leader's is 1"))
	s.untilLevel()
	require.EqualValues(t, 8, s.Leader().Node.Status().Epoch)
	s.write(1, "in epoch 8")
	for id := range zxid.ServerID(3) {
		s.has(id+1, zxid.Make(1, 1), zxid.Make(8, 1))
	}
}

// The elected leader cannot be reached by those who elected it.
func TestElectedAndCutOff(t *testing.T) {
	s := tell(t, 3, 0)
	s.Say("start 1, 2, 3")
	s.Start(1, 2, 3)
	s.Until("server 3 is elected", func() bool { return s.Server(3).Node.Status().Role == zab.RoleLeading })
	s.Say("server 3 is cut off")
	s.Part(1, 3)
	s.Part(2, 3)
	s.Until("server 2 leads", func() bool { return s.Leader() != nil })
	s.leads(2, 1)
	s.is(3, zab.RoleLooking, zab.PhaseElection, false)
	s.Say("server 3 is reached again")
	s.Join(1, 3)
	s.Join(2, 3)
	s.untilLevel()
	s.follow(2, 1, 3)
}
