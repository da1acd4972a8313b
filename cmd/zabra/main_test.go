package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asMain makes the test binary behave as the program itself.
const asMain = "ZABRA_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// deadline bounds everything that a child process is waited for.
const deadline = 30 * time.Second

// execute runs one command line in this process.
func execute(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

// program prepares the program as a process of its own, in a fresh folder.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), asMain+"=1", "JVMFLAGS=", "SERVER_JVMFLAGS=")
	return cmd
}

// fail runs the program to its end and returns its exit code and stderr.
func fail(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := program(t, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	return exit.ExitCode(), stderr.String()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestVersion(t *testing.T) {
	code, out, _ := execute("version")
	require.Equal(t, exitOK, code)
	require.Regexp(t, `^zabra devel(, revision [0-9a-f]+)?(, built .*)?\ngo1\.`, out)
}

func TestUnknownVerbAndFlag(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"server", "--nonsense"}, {"version", "x"}, {"check-conf"}, {}} {
		code, _, _ := execute(args...)
		require.Equal(t, exitConfig, code, "%q", args)
	}
}

func TestCheckConf(t *testing.T) {
	t.Setenv("SERVER_JVMFLAGS", "-Xmx1G -Dzookeeper.snapCount=7 -Dzookeeper.maxCnxns=1")
	t.Setenv("JVMFLAGS", "-Dzookeeper.maxCnxns=2 -Djute.maxbuffer=5000")
	path := writeFile(t, "zoo.cfg", "dataDir=/d\nclientPort=2181\ntickTme=5\n")
	code, out, warnings := execute("check-conf", "-Djute.maxbuffer=6000", path)
	require.Equal(t, exitOK, code)
	for _, line := range []string{"# set by " + path, "clientPort=2181", "snapCount=7", "maxCnxns=2", "jute.maxbuffer=6000", "tickTime=3000"} {
		require.Contains(t, strings.Split(out, "\n"), line)
	}
	require.Contains(t, warnings, "warning: "+path+":3: tickTme: unknown key")

	code, out, faults := execute("check-conf", writeFile(t, "zoo.cfg", "clientPort=x\ntickTime=y\n"))
	require.Equal(t, exitConfig, code)
	require.Empty(t, out)
	require.Contains(t, faults, "dataDir is not set")
	require.Contains(t, faults, `:1: clientPort: For input string: "x"`)
	require.Contains(t, faults, `:2: tickTime: For input string: "y"`)

	code, _, faults = execute("check-conf", "/nowhere/zoo.cfg")
	require.Equal(t, exitConfig, code)
	require.Contains(t, faults, "Error processing /nowhere/zoo.cfg")
}

// running is a server in a process of its own.
type running struct {
	cmd   *exec.Cmd
	lines chan string // its log
	ended chan error
}

// launch starts the program and reads its log until the line that says it serves, which contains the text.
func launch(t *testing.T, cmd *exec.Cmd, serving string) (*running, string) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	r := &running{cmd: cmd, lines: make(chan string, 1000), ended: make(chan error, 1)}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			r.lines <- scanner.Text()
		}
		close(r.lines)
		r.ended <- cmd.Wait()
	}()
	return r, r.await(t, serving)
}

// await returns the next line of the log that contains the text.
func (r *running) await(t *testing.T, text string) string {
	t.Helper()
	timeout := time.After(deadline)
	for {
		select {
		case line, ok := <-r.lines:
			require.True(t, ok, "the program ended before it said %q", text)
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			require.FailNow(t, "no such line in the log", text)
		}
	}
}

// stop sends the signal and returns how the program ended.
func (r *running) stop(t *testing.T, sig syscall.Signal) error {
	t.Helper()
	require.NoError(t, r.cmd.Process.Signal(sig))
	r.await(t, "stopping; a second signal")
	go func() {
		for range r.lines { // let it write to its end
		}
	}()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(deadline):
		require.FailNow(t, "the program does not stop")
		return nil
	}
}

// freePort returns a port that nobody used a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func ask(t *testing.T, port int, word string) string {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(deadline)))
	_, err = io.WriteString(conn, word)
	require.NoError(t, err)
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(text)
}

func TestServerFromFile(t *testing.T) {
	port := freePort(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte("3\n"), 0o600))
	cfg := writeFile(t, "zoo.cfg", fmt.Sprintf("dataDir=%s\nserver.3=localhost:2888:3888;127.0.0.1:%d\n4lw.commands.whitelist=*\n", dir, port))
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} { // the second time on the data of the first
		r, line := launch(t, program(t, "server", cfg), "] - serving {")
		require.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \[myid:3\] - INFO  \[main:server@\d+\] - serving \{`, line)
		require.Contains(t, line, fmt.Sprintf(`"address": "127.0.0.1:%d"`, port))
		require.Contains(t, line, `"nodes": 5`)
		require.Equal(t, "imok", ask(t, port, "ruok"))
		require.NoError(t, r.stop(t, sig), "a graceful stop ends with 0")
	}
}

func TestServerFromArguments(t *testing.T) {
	port := freePort(t)
	cmd := program(t, "server", "-Dzookeeper.4lw.commands.whitelist=conf", "--log-format=json", fmt.Sprint(port), "data", "500", "7")
	r, line := launch(t, cmd, `"msg":"serving"`)
	require.Contains(t, line, `"nodes":5`)
	text := ask(t, port, "conf")
	require.Contains(t, text, "tickTime=500\n")
	require.Contains(t, text, "maxClientCnxns=7\n")
	require.DirExists(t, filepath.Join(cmd.Dir, "data", "version-2"))
	require.NoError(t, r.stop(t, syscall.SIGTERM))
}

func TestExitCodes(t *testing.T) {
	code, stderr := fail(t, "server", writeFile(t, "zoo.cfg", "clientPort=2181\n"))
	require.Equal(t, exitConfig, code)
	require.Equal(t, "Invalid config, exiting abnormally\n", stderr)

	code, stderr = fail(t, "server", "1", "2", "3", "4", "5")
	require.Equal(t, exitConfig, code)
	require.Equal(t, serverUsage+"\n", stderr)

	code, _ = fail(t, "server", "--log-level=loud")
	require.Equal(t, exitConfig, code)
	code, _ = fail(t, "server", "--log-format=xml")
	require.Equal(t, exitConfig, code)

	file := writeFile(t, "data", "not a folder")
	code, stderr = fail(t, "server", fmt.Sprint(freePort(t)), file)
	require.Equal(t, exitDataDir, code)
	require.Equal(t, "Unable to access datadir, exiting abnormally\n", stderr)

	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer l.Close()
	code, stderr = fail(t, "server", fmt.Sprint(l.Addr().(*net.TCPAddr).Port), "data")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "address already in use")
}

func TestExitErrorsAreKept(t *testing.T) {
	var e *exit
	require.True(t, errors.As(fmt.Errorf("wrapped: %w", &exit{code: exitDataDir, stderr: "x"}), &e))
	require.Equal(t, exitDataDir, e.code)
}
