package tools

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// writing starts a process that has a file open for writing, until the test ends it.
func writing(t *testing.T, file string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `exec 3>>"$0"; echo open; read line`, file)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return cmd.Process.Pid, func() {
		stdin.Close()
		_ = cmd.Wait() // its input ended, which it takes for a failure
	}
}

// A server of ZooKeeper takes no lock: only its open log shows it.
func TestDoctorSeesWhoWritesWithoutALock(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	pid, end := writing(t, filepath.Join(dir, dataFolder, "log.98"))
	d := diagnosed(t, dir)
	require.False(t, d.Use.Locked)
	require.Len(t, d.Use.Writers, 1)
	require.Equal(t, pid, d.Use.Writers[0].PID)
	require.Contains(t, d.text(t), "takes no lock: stop it first")
	require.False(t, d.Standalone.Starts || d.Apache.Starts)
	require.True(t, d.Sound())
	end()
	require.Empty(t, diagnosed(t, dir).Use.Writers)
}

// The file counts and not its path, which is another one for a process in a container.
func TestDoctorSeesWritersUnderOtherPaths(t *testing.T) {
	dir, other := copyFixture(t, "standalone-39"), t.TempDir()
	require.NoError(t, os.Link(filepath.Join(dir, dataFolder, "log.98"), filepath.Join(other, "log.98")))
	pid, end := writing(t, filepath.Join(other, "log.98"))
	defer end()
	d := diagnosed(t, dir)
	require.Len(t, d.Use.Writers, 1)
	require.Equal(t, pid, d.Use.Writers[0].PID)
	require.Equal(t, filepath.Join(dir, dataFolder, "log.98"), d.Use.Writers[0].File)

	another := copyFixture(t, "standalone-39")
	require.Empty(t, diagnosed(t, another).Use.Writers, "a file of that name elsewhere is another file")
}

// The holder of a lock is found by device and number: other disks have files of the same number.
func TestHolder(t *testing.T) {
	const list = "1: FLOCK  ADVISORY  WRITE 4242 fe:01:13 0 EOF\n" +
		"2: FLOCK  ADVISORY  WRITE 77 103:02:13 0 EOF\n" +
		"2: -> FLOCK  ADVISORY  WRITE 78 103:02:14 0 EOF\n" +
		"3: POSIX  ADVISORY  WRITE 79 fe:00:15 0 EOF\n" +
		"4: FLOCK  ADVISORY  READ 80 fe:00:16 0 EOF\n" +
		"5: FLOCK\n"
	tests := []struct {
		device string
		inode  uint64
		pid    int
	}{
		{"fe:01", 13, 4242}, {"103:02", 13, 77}, {"", 13, 4242},
		{"fe:00", 13, 0}, {"03:02", 13, 0}, {"fe:01", 3, 0}, {"", 3, 0}, {"103:02", 14, 0}, {"fe:00", 15, 0}, {"fe:00", 16, 0},
	}
	for _, tt := range tests {
		pid, ok := holder(list, tt.device, tt.inode)
		require.Equal(t, tt.pid, pid, tt)
		require.Equal(t, tt.pid != 0, ok, tt)
	}
}

// The tools give back every file that they open.
func TestToolsCloseWhatTheyOpen(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	require.NoError(t, startedOn(t, dir).Close())    // it leaves a state file, which stays open in a store
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector would close what was forgotten
	diagnosed(t, dir)
	_, err := run(func(o Output) error { return VerifySnapshots(o, []string{dir}, "") })
	require.NoError(t, err)
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range fds {
		target, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		require.NotContains(t, target, dir)
	}
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
	f, err := os.Open(lock)
	require.NoError(t, err)
	require.True(t, lockRefused(f), "where the list does not tell, trying does")
	require.NoError(t, f.Close())
	require.NoError(t, s.Close())
	held, _, err = lockHeld(lock)
	require.NoError(t, err)
	require.False(t, held)
	f, err = os.Open(lock)
	require.NoError(t, err)
	require.False(t, lockRefused(f))
	require.NoError(t, f.Close())
}
