//go:build interop && linux

package integration

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// nodeDump is all that a client can learn about a node. Null data is not empty data.
type nodeDump struct {
	data []byte
	acl  []zk.ACL
	stat zk.Stat
}

// dumpTree reads the whole tree as the super user.
func dumpTree(t *testing.T, addr string) map[string]nodeDump {
	const workers = 16
	c := dial(t, addr)
	defer c.Close()
	require.NoError(t, c.AddAuth("digest", []byte(harness.SuperAuth)))

	var (
		mu      sync.Mutex
		tree    = map[string]nodeDump{}
		dumpErr error
		pending sync.WaitGroup
		slots   = make(chan struct{}, workers)
	)
	var visit func(path string)
	visit = func(path string) {
		defer pending.Done()
		slots <- struct{}{}
		node, children, err := dumpNode(c, path)
		<-slots
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			dumpErr = errors.Join(dumpErr, fmt.Errorf("%s: %w", path, err))
			return
		}
		tree[path] = node
		for _, name := range children {
			pending.Add(1)
			go visit(strings.TrimSuffix(path, "/") + "/" + name)
		}
	}
	pending.Add(1)
	go visit("/")
	pending.Wait()
	require.NoError(t, dumpErr)
	return tree
}

func dumpNode(c *goClient, path string) (node nodeDump, children []string, err error) {
	data, stat, err := c.Get(path)
	if err != nil {
		return node, nil, err
	}
	node.data, node.stat = data, *stat
	if node.acl, _, err = c.GetACL(path); err != nil {
		return node, nil, err
	}
	if stat.NumChildren > 0 {
		children, _, err = c.Children(path)
	}
	return node, children, err
}

// requireSameTree compares two dumps and shows the first differences.
func requireSameTree(t *testing.T, want, got map[string]nodeDump, when string) {
	t.Helper()
	var diffs []string
	for path, w := range want {
		g, ok := got[path]
		if !ok {
			diffs = append(diffs, fmt.Sprintf("%s: missing (owner %#x)", path, w.stat.EphemeralOwner))
			continue
		}
		if (w.data == nil) != (g.data == nil) || !bytes.Equal(w.data, g.data) {
			diffs = append(diffs, fmt.Sprintf("%s: data %.60q, want %.60q", path, g.data, w.data))
		}
		if fmt.Sprint(w.acl) != fmt.Sprint(g.acl) {
			diffs = append(diffs, fmt.Sprintf("%s: acl %v, want %v", path, g.acl, w.acl))
		}
		if w.stat != g.stat {
			diffs = append(diffs, fmt.Sprintf("%s: stat %+v, want %+v", path, g.stat, w.stat))
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			diffs = append(diffs, path+": was not there before")
		}
	}
	sort.Strings(diffs)
	shown := diffs[:min(len(diffs), 10)]
	require.Empty(t, diffs, "%s: %d differences in %d nodes:\n%s", when, len(diffs), len(want), strings.Join(shown, "\n"))
}

// copyData copies a data directory.
func copyData(t *testing.T, from, to string) {
	out, err := exec.Command("cp", "-r", from, to).CombinedOutput()
	require.NoError(t, err, string(out))
}
