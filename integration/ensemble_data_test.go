//go:build interop && linux

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// expectedNode is a node as the reference server showed it.
type expectedNode struct {
	Path string
	Data *[]byte
	ACL  []struct {
		Perms      int32
		Scheme, ID string
	}
	Stat struct {
		Czxid, Mzxid, Ctime, Mtime, Pzxid int64
		Version, Cversion, Aversion       int32
		EphemeralOwner                    string
		DataLength, NumChildren           int32
	}
}

// expectedTree reads a file of nodes that was recorded with a directory.
func expectedTree(t *testing.T, directory, file string) map[string]nodeDump {
	text, err := os.ReadFile(filepath.Join(dataDirectories(), directory, file))
	require.NoError(t, err)
	var nodes []expectedNode
	require.NoError(t, json.Unmarshal(text, &nodes))
	require.NotEmpty(t, nodes)
	tree := map[string]nodeDump{}
	for _, n := range nodes {
		d := nodeDump{stat: zk.Stat{Czxid: n.Stat.Czxid, Mzxid: n.Stat.Mzxid, Ctime: n.Stat.Ctime, Mtime: n.Stat.Mtime, Pzxid: n.Stat.Pzxid,
			Version: n.Stat.Version, Cversion: n.Stat.Cversion, Aversion: n.Stat.Aversion, DataLength: n.Stat.DataLength, NumChildren: n.Stat.NumChildren}}
		if n.Data != nil {
			d.data = *n.Data
		}
		owner, err := strconv.ParseUint(n.Stat.EphemeralOwner, 0, 64)
		require.NoError(t, err)
		d.stat.EphemeralOwner = int64(owner)
		for _, a := range n.ACL {
			d.acl = append(d.acl, zk.ACL{Perms: a.Perms, Scheme: a.Scheme, ID: a.ID})
		}
		tree[n.Path] = d
	}
	delete(tree, configNode)
	return tree
}

// copyDirectories gives each member the recorded data of its number.
func copyDirectories(t *testing.T, e *harness.Ensemble, directory string) {
	for _, m := range e.Members {
		from := filepath.Join(dataDirectories(), directory, fmt.Sprintf("n%d", m.ID), "version-2")
		copyData(t, from, filepath.Join(m.DataDir(), "version-2"))
	}
}

// The snapshots of the reference server's releases differ; each is gone on with by the release that wrote it and a newer one.
var takeovers = []struct {
	directory string
	back      []harness.Kind
}{
	{"ensemble3-38", []harness.Kind{harness.Apache380, harness.Apache395}},
	{"diverged3-39", []harness.Kind{harness.Apache395}},
}

// TestTakeover starts three servers under test on the data of three reference servers that were killed, lets them take writes,
// and starts three reference servers on what they leave behind.
func TestTakeover(t *testing.T) {
	for _, takeover := range takeovers {
		for _, back := range takeover.back {
			t.Run(fmt.Sprintf("%s/%s", takeover.directory, back), func(t *testing.T) {
				e := newEnsemble(t, harness.Plan{Kind: serverUnderTest(t), Servers: 3, Defines: nothingReaped})
				copyDirectories(t, e, takeover.directory)
				require.NoError(t, e.Start())
				got := requireEqualTrees(t, e)
				requireExpected(t, takeover.directory, got)
				goOn(t, e, back)
			})
		}
	}
}

// requireExpected compares with what was recorded. Three proposals of diverged3-39 are on one server only; whether they
// survive depends on who leads.
func requireExpected(t *testing.T, directory string, got map[string]nodeDump) {
	file := "expected.json"
	if directory == "diverged3-39" {
		file = "expected-A.json"
		if _, survived := got["/div0"]; survived {
			file = "expected-B.json"
		}
	}
	requireSameTree(t, expectedTree(t, directory, file), got, "beside "+file)
}

// goOn writes through every member, changes to reference servers, and writes again.
func goOn(t *testing.T, e *harness.Ensemble, back harness.Kind) {
	writeThrough(t, e, "/under-test")
	want := requireEqualTrees(t, e)
	require.NoError(t, e.Stop())
	for _, m := range e.Members {
		requireNoDigestMismatch(t, m.Server)
		m.Kind = back
	}
	require.NoError(t, e.Start())
	requireSameTree(t, want, requireEqualTrees(t, e), "after the change to "+string(back))
	writeThrough(t, e, "/reference")
	requireEqualTrees(t, e)
	for _, m := range e.Members {
		requireNoDigestMismatch(t, m.Server)
	}
	require.NoError(t, e.Stop())
}

func writeThrough(t *testing.T, e *harness.Ensemble, base string) {
	c := dial(t, e.Members[0].Addr())
	defer c.Close()
	c.make(t, base)
	for _, m := range e.Members {
		c := dial(t, m.Addr())
		_, err := c.Sync("/")
		require.NoError(t, err)
		for n := range 20 {
			_, err := c.Create(fmt.Sprintf("%s/%d-", base, m.ID), []byte(fmt.Sprint(n)), zk.FlagSequence, openACL)
			require.NoError(t, err)
		}
		c.Close()
	}
}

// TestDivergedIsCutBack starts the two servers of diverged3-39 that agree before the third: its proposals, which nobody
// acknowledged and a new leader never saw, have to go.
func TestDivergedIsCutBack(t *testing.T) {
	e := newEnsemble(t, harness.Plan{Kind: serverUnderTest(t), Servers: 3, Defines: nothingReaped})
	copyDirectories(t, e, "diverged3-39")
	for _, m := range e.Members[:2] {
		require.NoError(t, m.Launch())
	}
	require.NoError(t, harness.Wait(waitTimeout, "two of three serve", func() bool {
		return e.Members[0].Mode() != "" && e.Members[1].Mode() != ""
	}))
	require.NoError(t, e.Members[2].Launch())
	require.NoError(t, e.WaitServing())
	requireSameTree(t, expectedTree(t, "diverged3-39", "expected-A.json"), requireEqualTrees(t, e), "beside expected-A.json")
	goOn(t, e, harness.Apache395)
}
