package zabtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zabtest"
	"zabra/zab/zxid"
)

// aheadOfAll has server 1 of five log two transactions that nobody but the leader has, which is gone then. Server 1 goes on running
// without the others, who write in epoch 2.
func aheadOfAll(t *testing.T) *story {
	s := running(t, 5, 0, 2)
	s.Say("clients write at 5; only 1 hears of it")
	s.Hold = func(e zabtest.Event) bool { return e.From == 5 && e.To != 1 && e.To != 5 && e.Message != nil }
	s.Write(5, "lost")
	s.Write(5, "lost too")
	s.Settle()
	require.Equal(t, zxid.Make(1, 4), s.Server(1).Disk.Last())
	s.Say("5 dies, 1 is cut off")
	s.Hold, s.Off = nil, true
	for id := range zxid.ServerID(3) {
		s.Part(1, id+2)
	}
	s.Kill(5)
	s.Until("server 4 leads", func() bool { return s.Leader() != nil })
	s.untilServing(2, 3, 4)
	s.Write(4, "of epoch 2")
	s.Settle()
	s.Off = false
	s.leads(4, 2)
	s.has(1, at(1, 1, 2)...)
	return s
}

// untilServing lets time pass until some servers serve.
func (s *story) untilServing(ids ...zxid.ServerID) {
	s.Until("servers serve", func() bool {
		for _, id := range ids {
			if !s.Server(id).Node.Status().Serving {
				return false
			}
		}
		return true
	})
}

// A follower that went on running has more than the leader. What it has logged is not in its state: only the log is cut.
func TestTruncWhileRunning(t *testing.T) {
	s := aheadOfAll(t)
	s.Say("1 is reached again")
	for id := range zxid.ServerID(3) {
		s.Join(1, id+2)
	}
	s.untilLevel()
	require.True(t, s.Has("4 > 1", "TRUNC", "1:2"))
	require.False(t, s.Has("loaded anew"))
	s.has(1, at(1, 1)[0], zxid.Make(1, 2), zxid.Make(2, 1))
}

// The same follower has been restarted: its state has all of its log, and is loaded anew.
func TestTruncAfterARestart(t *testing.T) {
	s := aheadOfAll(t)
	s.kill(1)
	for id := range zxid.ServerID(3) {
		s.Join(1, id+2)
	}
	s.start(1)
	s.untilLevel()
	require.True(t, s.Has("1 disk: truncates to 1:2, the state is loaded anew"))
	require.True(t, s.Has("1 has the state of 1:2 from disk"))
	s.has(1, zxid.Make(1, 1), zxid.Make(1, 2), zxid.Make(2, 1))
}

// A follower crashes when the truncation is on its disk and not confirmed.
func TestCrashInTrunc(t *testing.T) {
	s := aheadOfAll(t)
	s.kill(1)
	for id := range zxid.ServerID(3) {
		s.Join(1, id+2)
	}
	s.Say("start 1")
	s.Start(1)
	s.beforeDisk(zab.PersistTruncate, 1)
	s.kill(1)
	s.start(1)
	s.beforeOp1(zab.PersistSetCurrent)
	s.kill(1)
	s.start(1)
	s.untilLevel()
	s.has(1, zxid.Make(1, 1), zxid.Make(1, 2), zxid.Make(2, 1))
}

// beforeOp1 is beforeDisk for server 1, unless it is past that.
func (s *story) beforeOp1(kind zab.PersistKind) {
	if !s.Level() {
		s.beforeDisk(kind, 1)
	}
}

// A follower was away. What it lacks is in the memory of the leader.
func TestDiffFromMemory(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.kill(1)
	s.write(3, "a")
	s.write(2, "b")
	s.start(1)
	require.True(t, s.Has("3 > 1  DIFF", "1:1"))
	require.True(t, s.Has("3 > 1  PROPOSAL", "1:2..1:3 after 1:1"))
	require.False(t, s.Has("reads its log"))
	s.has(1, at(1, 1, 2, 3)...)
}

// The leader has been restarted meanwhile and has nothing in memory: it reads its log, in parts.
func TestDiffFromDisk(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.ChunkEntries = 2
	s.Off = true
	s.Kill(1)
	for range 5 {
		s.Write(3, "while 1 is away")
	}
	s.untilLevel()
	s.Kill(2, 3)
	s.Start(2, 3)
	s.untilLevel()
	s.Off = false
	s.start(1)
	s.untilLevel()
	require.True(t, s.Has("3 reads its log after 1:1"))
	require.True(t, s.Has("3 > 1  DIFF", "1:1"))
	require.True(t, s.Has("3 > 1  PROPOSAL", "1:4..1:5 after 1:3"))
	s.has(1, at(1, 1, 2, 3, 4, 5, 6)...)
}

// purged is an ensemble whose servers 2 and 3 have thrown away the log that server 1 would need.
func purged(t *testing.T) *story {
	s := running(t, 3, 0, 1)
	s.Off = true
	s.Kill(1)
	for range 3 {
		s.Write(3, "while 1 is away")
	}
	s.untilLevel()
	s.Server(2).Snapshot(true)
	s.Server(3).Snapshot(true)
	s.Kill(2, 3)
	s.Start(2, 3)
	s.untilLevel()
	s.Off = false
	s.leads(3, 2)
	return s
}

// The leader's log does not reach back to what the follower has: a snapshot is sent, and what came after it.
func TestSnap(t *testing.T) {
	s := purged(t)
	s.write(2, "after the snapshot")
	s.start(1)
	s.untilLevel()
	require.True(t, s.Has("3 > 1  SNAP", "1:4"))
	require.True(t, s.Has("1 has the state of 1:4 from disk"))
	s.has(1, append(at(1, 1, 2, 3, 4), zxid.Make(2, 1))...)
	require.Equal(t, zxid.Make(1, 4), s.Server(1).Disk.Start, "nothing older is left")
}

// The connection breaks while the snapshot is on its way: nothing has changed at the learner, and it comes again.
func TestSnapBreaksOff(t *testing.T) {
	s := purged(t)
	s.Say("start 1")
	s.Start(1)
	s.Before("the second part of the snapshot", func(e zabtest.Event) bool { return e.What == "snapshot" })
	s.Say("the connection breaks")
	s.BreakConn(1, 3)
	s.is(1, zab.RoleLooking, zab.PhaseElection, false)
	require.Equal(t, zxid.Make(1, 1), s.Server(1).Disk.Last())
	s.untilLevel()
	require.Equal(t, 2, s.Sent(zab.MessageSnap))
	s.has(1, at(1, 1, 2, 3, 4)...)
}

// The leader dies while its snapshot is being installed: the installation is waited for before the next vote.
func TestLeaderDiesInSnap(t *testing.T) {
	s := purged(t)
	s.Say("start 1")
	s.Start(1)
	s.beforeDisk(zab.PersistInstallSnapshot, 1)
	s.Server(1).Disk.Hung = true
	s.kill(3)
	s.pass(1000)
	s.is(1, zab.RoleLooking, zab.PhaseElection, false)
	require.False(t, s.HasLately("1 > 2", "vote"), "a server does not vote before it knows what its disk holds")
	s.Say("the disk of 1 goes on")
	s.Server(1).Disk.Hung = false
	s.Settle()
	require.True(t, s.HasLately("1 > 2", "vote 2 (epoch 2, 1:4)"))
	s.untilLevel()
	s.follow(2, 1)
	s.has(1, at(1, 1, 2, 3, 4)...)
}

// The learner crashes right before the snapshot is installed.
func TestLearnerDiesInSnap(t *testing.T) {
	s := purged(t)
	s.Say("start 1")
	s.Start(1)
	s.beforeDisk(zab.PersistInstallSnapshot, 1)
	s.kill(1)
	require.Equal(t, zxid.Make(1, 1), s.Server(1).Disk.Last())
	s.start(1)
	s.untilLevel()
	s.has(1, at(1, 1, 2, 3, 4)...)
}

// A follower's log has transactions of epoch 1 and 2 that were never committed: it goes back to where the logs part.
func TestDivergedInAnOlderEpoch(t *testing.T) {
	s := tell(t, 3, 0)
	s.Given(1, 2, 2, append(at(1, 1, 2, 3), at(2, 1, 2)...)...)
	s.Given(2, 3, 3, append(at(1, 1, 2), at(3, 1)...)...)
	s.Given(3, 3, 3, append(at(1, 1, 2), at(3, 1)...)...)
	s.start(2, 3)
	s.pass(200)
	s.leads(3, 4)
	s.start(1)
	require.True(t, s.Has("3 > 1  TRUNC", "1:2"))
	s.untilLevel()
	s.has(1, append(at(1, 1, 2), at(3, 1)...)...)
}

// The same, but the leader began with a snapshot and has to look into its log to see where they part.
func TestDivergedBeforeTheSnapshot(t *testing.T) {
	s := tell(t, 3, 0)
	s.Given(1, 1, 1, at(1, 1, 2, 3)...)
	for _, id := range []zxid.ServerID{2, 3} {
		s.Given(id, 3, 3, append(at(1, 1, 2), at(3, 1, 2)...)...)
		s.GivenSnapshot(id, zxid.Make(3, 2), false)
	}
	s.start(2, 3)
	s.pass(200)
	s.start(1)
	require.True(t, s.Has("3 reads its log after 1:3"))
	require.True(t, s.Has("3 > 1  TRUNC", "1:2"))
	s.untilLevel()
	s.has(1, append(at(1, 1, 2), at(3, 1, 2)...)...)
}

// The follower has made a snapshot of what it has too much: its log cannot be cut so far back. It is given a snapshot.
func TestDivergedBeyondItsFloor(t *testing.T) {
	s := tell(t, 3, 0)
	s.Given(1, 1, 1, at(1, 1, 2, 3, 4)...)
	s.GivenSnapshot(1, zxid.Make(1, 3), true)
	for _, id := range []zxid.ServerID{2, 3} {
		s.Given(id, 3, 3, append(at(1, 1, 2), at(3, 1)...)...)
	}
	s.start(2, 3)
	s.pass(200)
	s.leads(3, 4)
	s.Server(3).Snapshot(false)
	s.write(3, "after the snapshot")
	s.start(1)
	require.True(t, s.Has("1 > 3  ACKEPOCH", "1:4", "floor 1:3"))
	require.True(t, s.Has("3 reads its log after 1:2, a snapshot only"))
	require.True(t, s.Has("3 > 1  SNAP", "3:1"))
	s.untilLevel()
	s.has(1, append(at(1, 1, 2), zxid.Make(3, 1), zxid.Make(4, 1))...)
	require.Equal(t, zxid.Make(3, 1), s.Server(1).Disk.Start)
}

// There is no snapshot that would do: the learner is turned away, and tries again until there is one.
func TestNoSnapshotForTheLearner(t *testing.T) {
	s := tell(t, 3, 0)
	s.Given(1, 1, 1, at(1, 1, 2, 3, 4)...)
	s.GivenSnapshot(1, zxid.Make(1, 3), true)
	for _, id := range []zxid.ServerID{2, 3} {
		s.Given(id, 3, 3, append(at(1, 1, 2), at(3, 1)...)...)
	}
	s.start(2, 3)
	s.pass(200)
	s.Say("start 1")
	s.Start(1)
	s.Until("server 1 is turned away", func() bool { return s.Has("3 > 1  hangs up: its history cannot be had") })
	s.leads(3, 4)
	s.follow(3, 2)
	s.Say("the leader makes a snapshot")
	s.Server(3).Snapshot(false)
	s.untilLevel()
	s.has(1, append(at(1, 1, 2), zxid.Make(3, 1))...)
}
