//go:build interop && linux

package integration

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// contender is a process that prints READY when it is connected, works once it is given a line, and prints DONE.
type contender struct {
	name  string
	cmd   *exec.Cmd
	lines *bufio.Scanner
	err   strings.Builder
	begin func() error
}

func startContender(t *testing.T, name string, cmd *exec.Cmd) *contender {
	c := &contender{name: name, cmd: cmd}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = &c.err
	require.NoError(t, harness.StartChild(cmd))
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop(); _ = cmd.Process.Kill() })
	c.lines = bufio.NewScanner(stdout)
	c.begin = func() error { _, err := fmt.Fprintln(stdin, "go"); return err }
	return c
}

func (c *contender) expect(t *testing.T, want string) {
	if !c.lines.Scan() || c.lines.Text() != want {
		_ = c.cmd.Wait()
		require.Failf(t, "contender failed", "%s printed %q, want %s: %s", c.name, c.lines.Text(), want, c.err.String())
	}
}

// TestCrossLanguageLock lets kazoo, Curator and go-zookeeper/zk contend for one lock node: their recipes name and order the
// nodes of contenders alike, so that together they are one lock.
func TestCrossLanguageLock(t *testing.T) {
	const lock, counter, rounds = "/shared-lock", "/shared-count", 40
	server := startServer(t, serverUnderTest(t), nil)
	c := dial(t, server.Addr())
	c.make(t, lock)
	_, err := c.Create(counter, []byte("0"), 0, openACL)
	require.NoError(t, err)

	here := filepath.Join(harness.Root(), "integration", "interop")
	python := exec.Command(filepath.Join(harness.Cache(), "venv", "bin", "python"), "-B", filepath.Join(here, "python", "contend.py"),
		server.Addr(), lock, counter, strconv.Itoa(rounds))
	contenders := []*contender{
		startContender(t, "kazoo", python),
		startContender(t, "curator", javaProgram("CuratorClient", "contend", server.Addr(), lock, counter, strconv.Itoa(rounds))),
	}
	for _, one := range contenders {
		one.expect(t, "READY")
	}
	for _, one := range contenders {
		require.NoError(t, one.begin())
	}
	require.NoError(t, incrementUnderLock(dial(t, server.Addr()), lock, counter, rounds))
	for _, one := range contenders {
		one.expect(t, "DONE")
		require.NoError(t, one.cmd.Wait(), one.name)
	}
	data, _, err := c.Get(counter)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(3*rounds), string(data), "increments under the lock")
	names, _, err := c.Children(lock)
	require.NoError(t, err)
	require.Empty(t, names, "contenders left")
}
