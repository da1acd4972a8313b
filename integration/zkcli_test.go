//go:build interop && linux

package integration

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// watcherLine is a line of how an event is printed, or a blank one, as there are around it. zkCli prints events on a thread of its
// own, line by line: the place of each line in the output is not fixed.
var (
	watcherLine = regexp.MustCompile(`(?m)^(?:1\|)?(?:WATCHER::|WatchedEvent .*|)\n`)
	watcherText = regexp.MustCompile(`(?m)^(?:1\|)?WatchedEvent (.*)$`)
)

// TestZkCliRecording runs the recorded commands of zkCli, which package cli compares zabra cli with, by the real zkCli against
// the server under test: users of zkCli see the same of it as of the reference server.
func TestZkCliRecording(t *testing.T) {
	t.Parallel() // it mostly waits
	testdata := filepath.Join(harness.Root(), "internal", "cli", "testdata")
	classes := t.TempDir()
	jars := filepath.Join(harness.Cache(), "jars", "*")
	out, err := exec.Command("javac", "-nowarn", "-encoding", "UTF-8", "-cp", jars, "-d", classes, filepath.Join(testdata, "Record.java")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	server := startServer(t, serverUnderTest(t), nil)
	golden := filepath.Join(testdata, "zkcli.golden")
	cmd := exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8",
		"-Dsun.stdout.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classes+":"+jars, "Record", server.Addr(), golden)
	got, err := cmd.Output()
	require.NoError(t, err)
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	wanted, found := recordedBlocks(string(want)), recordedBlocks(string(got))
	require.Len(t, found, len(wanted))
	for i := range wanted {
		require.Equal(t, wanted[i], found[i])
	}
}

// recordedBlocks splits a recording into its commands, with the events at their end.
func recordedBlocks(text string) (blocks []string) {
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		rest, events := withoutEvents(block + "\n")
		blocks = append(blocks, identities.ReplaceAllStringFunc(rest, sortedLines)+strings.Join(events, "\n"))
	}
	return blocks
}

// identities is what whoami lists, which the reference server does in the order of a hash table.
var identities = regexp.MustCompile(`(?m)(^1\|(ip|digest|super): .*\n)+`)

func sortedLines(text string) string {
	return strings.Join(slices.Sorted(strings.Lines(text)), "")
}

// withoutEvents takes the events out of an output that has some, and the blank lines with them.
func withoutEvents(text string) (rest string, events []string) {
	for _, m := range watcherText.FindAllStringSubmatch(text, -1) {
		events = append(events, m[1])
	}
	if len(events) == 0 {
		return text, nil
	}
	slices.Sort(events)
	return watcherLine.ReplaceAllString(text, ""), events
}

// oneShots are commands that are run as processes of their own by zkCli and by zabra cli, on the same tree. Where a command
// changes something, each has a part of the tree of its own: MINE is its name.
var oneShots = []struct {
	name  string
	stdin string
	args  []string
}{
	{"ls", "", []string{"ls", "/tree"}},
	{"ls -s -R", "", []string{"ls", "-R", "/tree"}},
	{"ls of nothing", "", []string{"ls", "/none"}},
	{"get -s", "", []string{"get", "-s", "/tree/a"}},
	{"get without data", "", []string{"get", "/tree/null"}},
	{"stat", "", []string{"stat", "/tree/e"}},
	{"getAcl", "", []string{"getAcl", "/tree/a"}},
	{"create", "", []string{"create", "/MINE/n", "data"}},
	{"create -s", "", []string{"create", "-s", "/MINE/s-", "data"}},
	{"create twice", "", []string{"create", "/MINE/n", "data"}},
	{"set with an old version", "", []string{"set", "-v", "9", "/MINE/n", "x"}},
	{"set -s", "", []string{"set", "-s", "/MINE/n", "more"}},
	{"delete of a parent", "", []string{"delete", "/MINE"}},
	{"deleteall", "", []string{"deleteall", "/MINE/n"}},
	{"getAllChildrenNumber", "", []string{"getAllChildrenNumber", "/tree"}},
	{"whoami", "", []string{"whoami"}},
	{"config", "", []string{"config"}},
	{"sync", "", []string{"sync", "/tree"}},
	{"no such command", "", []string{"nonsense"}},
	{"missing argument", "", []string{"get"}},
	{"a script", "ls /tree\nget /tree/a\nset /MINE y\nget /MINE\nget /none\nquit\n", nil},
	{"a script that ends in an error", "get /none\n", nil},
}

// TestZkCliProcesses compares whole processes: what stands on stdout and stderr, and the exit code.
func TestZkCliProcesses(t *testing.T) {
	t.Parallel()
	server := startServer(t, serverUnderTest(t), nil)
	c := dial(t, server.Addr())
	for _, path := range []string{"/tree", "/tree/a", "/tree/a/deep", "/tree/b", "/java", "/zabr"} {
		_, err := c.Create(path, []byte("data of "+path), 0, openACL)
		require.NoError(t, err)
	}
	_, err := c.Create("/tree/null", nil, 0, openACL)
	require.NoError(t, err)
	_, err = c.Create("/tree/e", []byte("x"), 1, openACL)
	require.NoError(t, err)
	for _, shot := range oneShots {
		t.Run(shot.name, func(t *testing.T) {
			theirs := runCLI(t, zkCli(server.Addr()), "java", shot.stdin, shot.args)
			ours := runCLI(t, zabraCli(t, server.Addr()), "zabr", shot.stdin, shot.args)
			require.Equal(t, theirs, ours)
		})
	}
}

// cliResult is what a process leaves.
type cliResult struct {
	Code     int
	Out, Err string
}

// zkCli is what zkCli.sh runs.
func zkCli(addr string) *exec.Cmd {
	return exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
		"-cp", filepath.Join(harness.Cache(), "jars", "*"), "org.apache.zookeeper.ZooKeeperMain", "-server", addr)
}

func zabraCli(t *testing.T, addr string) *exec.Cmd {
	binary := os.Getenv("ZABRA_BIN")
	if binary == "" {
		binary = filepath.Join(harness.Root(), "bin", "zabra")
	}
	require.FileExists(t, binary, "run make build first")
	return exec.Command(binary, "cli", "-server", addr)
}

var (
	cliTime = regexp.MustCompile(`(?m)time = .*$`)
	cliZxid = regexp.MustCompile(`Zxid = 0x[0-9a-f]+`)
	// helpLines is the list of commands that follows an unknown one: ours is longer.
	helpLines = regexp.MustCompile(`(?m)^\t.*\n`)
)

func runCLI(t *testing.T, cmd *exec.Cmd, mine, stdin string, args []string) cliResult {
	t.Helper()
	cmd.Args = append(cmd.Args, args...)
	for i := range cmd.Args {
		cmd.Args[i] = strings.ReplaceAll(cmd.Args[i], "MINE", mine)
	}
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.ReplaceAll(stdin, "MINE", mine)), &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return cliResult{cmd.ProcessState.ExitCode(), cleanCLI(out.String(), mine), cleanCLI(errs.String(), mine)}
}

// cleanCLI takes out what differs between two commands of which each has changed something of its own.
func cleanCLI(text, mine string) string {
	text, _ = withoutEvents(text)
	text = helpLines.ReplaceAllString(strings.ReplaceAll(text, mine, "MINE"), "")
	if strings.Contains(text, "MINE") || strings.Contains(text, "dataVersion") {
		text = cliZxid.ReplaceAllString(cliTime.ReplaceAllString(text, "time = TIME"), "Zxid = 0xZXID")
	}
	return text
}
