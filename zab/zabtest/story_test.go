package zabtest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zabtest"
	"zabra/zab/zxid"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// story is a World with its transcript. What the script does is written down between the lines.
type story struct {
	*zabtest.World
	*zabtest.Transcript
	t *testing.T
}

// tell begins a story of so many voters and observers. At its end the transcript is compared with the golden file of the
// test's name.
func tell(t *testing.T, voters, observers int) *story {
	w := zabtest.New(zabtest.Options{Voters: voters, Observers: observers})
	s := &story{World: w, Transcript: w.Record(), t: t}
	t.Cleanup(func() {
		if !t.Failed() {
			s.compare()
		}
	})
	return s
}

// compare wants the transcript as it was when it was last written with -update. A story that ends with the writing off
// is not for reading.
func (s *story) compare() {
	require.NoError(s.t, s.Err())
	if s.Off {
		return
	}
	path := filepath.Join("testdata", strings.ReplaceAll(strings.TrimPrefix(s.t.Name(), "Test"), "/", "_")+".txt")
	if *update {
		require.NoError(s.t, os.WriteFile(path, []byte(s.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(s.t, err)
	require.Equal(s.t, string(want), s.String(), "run with -update if the new course is right")
}

// names renders servers for the script.
func names(ids []zxid.ServerID) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(ids), "[]")), ", ")
}

func (s *story) start(ids ...zxid.ServerID) {
	s.Say("start %s", names(ids))
	s.Start(ids...)
	s.Settle()
}

func (s *story) kill(ids ...zxid.ServerID) {
	s.Say("kill %s", names(ids))
	s.Kill(ids...)
	s.Settle()
}

// write is a client's write, which may come to its end or not.
func (s *story) write(id zxid.ServerID, payload string) uint64 {
	s.Say("a client writes %s at %d", payload, id)
	n := s.Write(id, payload)
	require.NotZero(s.t, n, "server %d serves nobody", id)
	s.Settle()
	return n
}

func (s *story) pass(ms int64) {
	s.Say("%d ms pass", ms)
	s.Pass(ms)
}

// before stops the story right before a message of that kind arrives at a server.
func (s *story) before(kind zab.MessageKind, to zxid.ServerID) {
	s.Before(fmt.Sprintf("%v for %d", kind, to), func(e zabtest.Event) bool { return e.Message != nil && e.Message.Kind == kind && e.To == to })
	require.NoError(s.t, s.Err())
}

// beforeDisk stops the story right before an operation of that kind reaches the disk of a server.
func (s *story) beforeDisk(kind zab.PersistKind, at zxid.ServerID) {
	s.Before(fmt.Sprintf("persist operation %v at %d", kind, at), func(e zabtest.Event) bool { return e.Op != nil && e.Op.Kind == kind && e.To == at })
	require.NoError(s.t, s.Err())
}

// untilLevel lets time pass until everybody who is up serves the same.
func (s *story) untilLevel() {
	s.Until("everybody serves", s.Level)
	require.NoError(s.t, s.Err())
}

// is checks what a server has become.
func (s *story) is(id zxid.ServerID, role zab.Role, phase zab.Phase, serving bool) zab.Status {
	s.t.Helper()
	require.NoError(s.t, s.Err())
	st := s.Server(id).Node.Status()
	require.Equal(s.t, []any{role, phase, serving}, []any{st.Role, st.Phase, st.Serving}, "server %d: %+v", id, st)
	return st
}

// leads and follows are checks of servers that are where they should be.
func (s *story) leads(id zxid.ServerID, epoch zxid.Epoch) {
	s.t.Helper()
	st := s.is(id, zab.RoleLeading, zab.PhaseBroadcast, true)
	require.Equal(s.t, epoch, st.Epoch)
}

func (s *story) follow(leader zxid.ServerID, ids ...zxid.ServerID) {
	s.t.Helper()
	for _, id := range ids {
		role := zab.RoleFollowing
		if !s.Ensemble.Voter(id) {
			role = zab.RoleObserving
		}
		require.Equal(s.t, leader, s.is(id, role, zab.PhaseBroadcast, true).Leader)
	}
}

// has checks what a server has applied.
func (s *story) has(id zxid.ServerID, want ...zxid.Zxid) {
	s.t.Helper()
	got := []zxid.Zxid{}
	for _, e := range s.Server(id).State {
		got = append(got, e.Zxid)
	}
	require.Equal(s.t, append([]zxid.Zxid{}, want...), got, "server %d", id)
}

func at(epoch zxid.Epoch, counters ...uint32) (list []zxid.Zxid) {
	for _, c := range counters {
		list = append(list, zxid.Make(epoch, c))
	}
	return list
}

// running begins with an ensemble that serves, under the voter with the highest id, with some transactions of epoch 1.
// That part is not written down.
func running(t *testing.T, voters, observers, transactions int) *story {
	s := tell(t, voters, observers)
	s.Off = true
	for _, h := range s.Servers {
		s.Start(h.ID)
	}
	s.untilLevel()
	for i := range transactions {
		s.Write(zxid.ServerID(voters), fmt.Sprintf("w%d", i+1))
	}
	s.untilLevel()
	s.Off = false
	s.leads(zxid.ServerID(voters), 1)
	return s
}
