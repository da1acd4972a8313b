package server_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/opsrecord"
	"zabra/server/client"
	"zabra/server/servertest"
)

// The files in testdata/ops hold what Apache ZooKeeper 3.9.5 and 3.8.0 answered to operators: every byte that came over the
// wire. They are made by `make capture-ops`. The tests ask Zabra the same in the same state and compare.

// opsScene is a server of a certain role after the recorded conversation.
type opsScene struct {
	role     string
	addr     string   // of the client port
	sessions []int64  // of the conversation, in order
	member   int      // its id in the ensemble; 0 for a standalone server
	servers  []string // addresses of the whole ensemble
}

// opsOptions are the recorded servers' configuration.
func opsOptions(extra ...servertest.Option) (opts []servertest.Option) {
	for key, value := range opsrecord.Settings() {
		opts = append(opts, servertest.WithConfig(key, value))
	}
	return append(opts, extra...)
}

// playStandalone starts a server and has the conversation with it.
func playStandalone(t *testing.T, opts ...servertest.Option) (*servertest.Server, opsScene) {
	t.Helper()
	s := servertest.Start(t, opsOptions(opts...)...)
	return s, opsScene{role: "standalone", addr: s.Addr(), sessions: play(t, s.Addr())}
}

func play(t *testing.T, addrs ...string) []int64 {
	t.Helper()
	scene, err := opsrecord.Play(addrs...)
	require.NoError(t, err)
	t.Cleanup(scene.Close)
	return scene.Sessions()
}

// playEnsemble starts three voters and an observer and has the conversation with them.
func playEnsemble(t *testing.T, opts ...servertest.Option) (*servertest.Ensemble, []opsScene) {
	t.Helper()
	const size, observer = 4, 4
	e := servertest.StartEnsemble(t, size, opsOptions(append(opts, servertest.WithObservers(1))...)...)
	leader, follower := e.Leader(), e.Followers(2)[0]
	var servers []string
	for id := 1; id <= size; id++ {
		servers = append(servers, e.Server(id).Addr())
	}
	sessions := play(t, servers[leader-1], servers[follower-1], servers[observer-1])
	until(t, "all members have applied everything", func() bool {
		for id := 1; id <= size; id++ {
			if e.Stats(id).Zxid != e.Stats(leader).Zxid {
				return false
			}
		}
		return e.Stats(leader).SyncedLearners == size-1
	})
	scenes := []opsScene{{role: "leader", member: leader}, {role: "follower", member: follower}, {role: "observer", member: observer}}
	for i := range scenes {
		scenes[i].addr, scenes[i].sessions, scenes[i].servers = servers[scenes[i].member-1], sessions, servers
	}
	return e, scenes
}

// playAlone gives a member of three whose others are down.
func playAlone(t *testing.T, opts ...servertest.Option) (*servertest.Server, opsScene) {
	t.Helper()
	e := servertest.StartEnsemble(t, 3, opsOptions(opts...)...)
	for id := 1; id <= e.Size(); id++ {
		e.Stop(id)
	}
	e.Start(1)
	s := e.Server(1)
	until(t, "the client port is open", func() bool {
		answer, err := client.Word(t.Context(), s.Addr(), "ruok")
		return err == nil && answer == "imok"
	})
	return s, opsScene{role: "alone", addr: s.Addr(), member: 1}
}

// opsRecordings reads the files of a role, by version; those of words and of HTTP are the same.
func opsRecordings(t *testing.T, role string) map[string]*opsrecord.Recording {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "ops", "*-"+role+".jsonl"))
	require.NoError(t, err)
	recordings := make(map[string]*opsrecord.Recording, len(names))
	for _, name := range names {
		r, err := opsrecord.Read(name)
		require.NoError(t, err)
		require.Equal(t, role, r.Role)
		version, ok := strings.CutPrefix(r.From, "apache-")
		require.True(t, ok, r.From)
		recordings[version] = r
	}
	require.Len(t, recordings, 2, "3.9.5 and 3.8.0")
	return recordings
}

// opsException is a question that Zabra means to answer otherwise.
type opsException struct {
	versions, roles []string // none: all
	question        string
	why             string
}

func (e *opsException) covers(version, role, question string) bool {
	return e.question == question && (e.versions == nil || slices.Contains(e.versions, version)) &&
		(e.roles == nil || slices.Contains(e.roles, role))
}

// excepted looks a question up and notes that the exception was needed.
func excepted(list []opsException, used map[string]bool, version, role, question string) bool {
	for i := range list {
		if list[i].covers(version, role, question) {
			used[list[i].question+": "+list[i].why] = true
			return true
		}
	}
	return false
}

// requireAllUsed fails for an exception that nothing needs any more.
func requireAllUsed(t *testing.T, list []opsException, used map[string]bool) {
	t.Helper()
	for _, e := range list {
		require.True(t, used[e.question+": "+e.why], "the exception for %q is not needed: take it out", e.question)
	}
}
