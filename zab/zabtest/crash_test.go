package zabtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zabtest"
	"zabra/zab/zxid"
)

// crashes says where a story of the phase is stopped, for a victim in each role. Server 3 becomes the leader, 1 is a
// follower, 4 an observer.
var crashes = []struct {
	phase zab.Phase
	stop  func(s *story, victim zxid.ServerID)
}{
	{zab.PhaseElection, func(s *story, victim zxid.ServerID) {
		s.before(zab.MessageNotification, victim)
		s.is(victim, zab.RoleLooking, zab.PhaseElection, false)
	}},
	{zab.PhaseDiscovery, func(s *story, victim zxid.ServerID) {
		s.before(zab.MessageLeaderInfo, otherThanLeader(victim))
		require.Equal(s.t, zab.PhaseDiscovery, s.Server(victim).Node.Status().Phase)
	}},
	{zab.PhaseSynchronization, func(s *story, victim zxid.ServerID) {
		s.before(zab.MessageNewLeader, otherThanLeader(victim))
		if victim != 3 { // the observer gets NEWLEADER when the leader is established
			require.Equal(s.t, zab.PhaseSynchronization, s.Server(victim).Node.Status().Phase)
		}
	}},
	{zab.PhaseBroadcast, func(s *story, victim zxid.ServerID) {
		s.untilLevel()
		s.Say("a client writes at 2")
		require.NotZero(s.t, s.Write(2, "under way"))
		kind := zab.MessageProposal
		if victim == 4 {
			kind = zab.MessageInform
		}
		s.before(kind, otherThanLeader(victim))
		require.Equal(s.t, zab.PhaseBroadcast, s.Server(victim).Node.Status().Phase)
	}},
}

func otherThanLeader(victim zxid.ServerID) zxid.ServerID {
	if victim == 3 {
		return 1
	}
	return victim
}

// A server of each role crashes in each phase. The others go on, and it comes back.
func TestCrash(t *testing.T) {
	victims := map[zxid.ServerID]string{3: "leader", 1: "follower", 4: "observer"}
	for _, c := range crashes {
		for _, victim := range []zxid.ServerID{3, 1, 4} {
			t.Run(fmt.Sprintf("%v-%v", c.phase, victims[victim]), func(t *testing.T) {
				s := tell(t, 3, 1)
				for id := range zxid.ServerID(4) {
					s.Given(id+1, 1, 1, at(1, 1)...)
				}
				s.Say("start 1, 2, 3, 4; all have 1:1")
				s.Start(1, 2, 3, 4)
				c.stop(s, victim)
				s.kill(victim)
				s.untilLevel()
				leader := s.Leader().ID
				require.Equal(t, victim == 3, leader != 3)
				s.write(leader, "without it")
				s.start(victim)
				s.untilLevel()
				require.Equal(t, leader, s.Leader().ID, "a return changes nothing")
				for _, h := range s.Servers {
					require.Equal(t, s.Committed, h.State, "server %d", h.ID)
					require.Equal(t, s.Leader().Disk.Log, h.Disk.Log, "server %d", h.ID)
				}
			})
		}
	}
}

// The leader crashes when its proposal is on its own disk only: nobody has heard of it, and when the server comes back
// it gives it up.
func TestLeaderDiesWithItsProposal(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Say("a client writes at 3; it is on the disk of 3 and not sent")
	s.Hold = func(e zabtest.Event) bool { return e.Message != nil && e.Message.Kind == zab.MessageProposal }
	s.Write(3, "lost")
	s.Settle()
	s.Hold = nil
	require.True(t, s.Server(3).Disk.Has(zxid.Make(1, 2)))
	s.kill(3)
	s.leads(2, 2)
	s.write(2, "of epoch 2")
	s.start(3)
	s.follow(2, 1, 3)
	s.has(3, zxid.Make(1, 1), zxid.Make(2, 1))
	require.Equal(t, 1, s.Sent(zab.MessageTrunc))
}

// The leader crashes when its proposal is on the disk of one follower: that one is elected for it, and the transaction
// is kept, although nobody was told that it was committed.
func TestLeaderDiesAndItsProposalLives(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Say("a client writes at 3; the proposal reaches the disk of 1, not that of 2")
	s.Hold = func(e zabtest.Event) bool {
		return e.Message != nil && e.To == 2 && e.Message.Kind == zab.MessageProposal
	}
	s.Write(3, "kept")
	s.before(zab.MessageAck, 3)
	s.Hold = nil
	require.True(t, s.Server(1).Disk.Has(zxid.Make(1, 2)))
	s.kill(3)
	s.untilLevel()
	s.start(3)
	s.untilLevel()
	for id := range zxid.ServerID(3) {
		s.has(id+1, at(1, 1, 2)...)
	}
}

// All crash at once when a write is on two disks. It is there when two of them are back.
func TestAllDie(t *testing.T) {
	s := running(t, 3, 1, 1)
	s.Say("a client writes at 3; it is on the disks of 2 and 3 when all servers crash")
	s.Write(3, "on two disks")
	s.Before("both have it", func(e zabtest.Event) bool {
		return s.Server(3).Disk.Has(zxid.Make(1, 2)) && s.Server(2).Disk.Has(zxid.Make(1, 2)) || s.Server(1).Disk.Has(zxid.Make(1, 2))
	})
	s.Kill(1, 2, 3, 4)
	s.start(1, 2, 3, 4)
	s.untilLevel()
	for id := range zxid.ServerID(4) {
		s.has(id+1, at(1, 1, 2)...)
	}
}
