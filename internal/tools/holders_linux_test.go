package tools

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server of ZooKeeper takes no lock: only its open log shows it.
func TestDoctorSeesWhoWritesWithoutALock(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	cmd := exec.Command("sh", "-c", `exec 3>>"$0"; echo open; read line`, filepath.Join(dir, dataFolder, "log.98"))
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)

	d := diagnosed(t, dir)
	require.False(t, d.Use.Locked)
	require.Len(t, d.Use.Writers, 1)
	require.Equal(t, cmd.Process.Pid, d.Use.Writers[0].PID)
	require.Contains(t, d.text(t), "takes no lock: stop it first")
	require.False(t, d.Standalone.Starts || d.Apache.Starts)
	require.True(t, d.Sound())
	require.NoError(t, stdin.Close())
	_ = cmd.Wait() // its input ended, which it takes for a failure
	require.Empty(t, diagnosed(t, dir).Use.Writers)
}

func TestLockHeld(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	lock := filepath.Join(dir, dataFolder, "zabra.lock")
	held, _, err := lockHeld(lock)
	require.NoError(t, err)
	require.False(t, held)
	s := startedOn(t, dir)
	held, pid, err := lockHeld(lock)
	require.NoError(t, err)
	require.True(t, held)
	require.Contains(t, []int{0, os.Getpid()}, pid)
	require.NoError(t, s.Close())
	held, _, err = lockHeld(lock)
	require.NoError(t, err)
	require.False(t, held)
}
