//go:build interop && linux

package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// clientTimeout bounds one client's whole program.
const clientTimeout = 4 * time.Minute

// clientProgram is a program in the language of a client library. It is given the server's address as its last argument
// and speaks the line protocol of runClient.
type clientProgram struct {
	name      string
	checksMin int // fewer checks than this mean that the program did not do its work
	command   func(addr string) *exec.Cmd
}

func clientPrograms() []clientProgram {
	here := filepath.Join(harness.Root(), "integration", "interop")
	cache := harness.Cache()
	return []clientProgram{
		{"kazoo", 31, func(addr string) *exec.Cmd {
			return exec.Command(filepath.Join(cache, "venv", "bin", "python"), "-B", filepath.Join(here, "python", "interop.py"), addr)
		}},
		{"c", 16, func(addr string) *exec.Cmd {
			return exec.Command(filepath.Join(cache, "bin", "interop-c"), addr)
		}},
		{"node", 14, func(addr string) *exec.Cmd {
			cmd := exec.Command("node", filepath.Join(here, "node", "interop.js"), addr)
			cmd.Env = append(os.Environ(), "INTEROP_NODE_MODULES="+filepath.Join(cache, "node", "node_modules"))
			return cmd
		}},
		{"java", 21, func(addr string) *exec.Cmd { return javaProgram("JavaClient", addr) }},
		{"zkcli", 8, func(addr string) *exec.Cmd { return javaProgram("CommandLine", addr) }},
		{"curator", 13, func(addr string) *exec.Cmd { return javaProgram("CuratorClient", addr) }},
	}
}

// javaProgram runs one of our Java programs with the pinned client libraries.
func javaProgram(class string, args ...string) *exec.Cmd {
	classPath := filepath.Join(harness.Cache(), "classes") + ":" + filepath.Join(harness.Cache(), "jars", "*")
	return exec.Command("java", append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
		"-Dsun.jnu.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classPath, class}, args...)...)
}

// TestInterop runs each real client's program against a server of its own. The clients connect through a proxy, which can
// cut their connections while the server lives on.
func TestInterop(t *testing.T) {
	for _, program := range clientPrograms() {
		t.Run(program.name, func(t *testing.T) {
			server := startServer(t, serverUnderTest(t), map[string]string{"enforceQuota": "true"})
			runClient(t, program, server)
		})
	}
}

// runClient runs the program to its end. Each line "PASS name" or "FAIL name: why" becomes a subtest, a line "CALL what" is
// carried out and answered with "OK", and "END count" must be the last line and agree with the number of checks seen.
func runClient(t *testing.T, program clientProgram, server *harness.Server) {
	proxy, err := harness.NewProxy(server.Addr())
	require.NoError(t, err)
	defer proxy.Close()

	cmd := program.command(proxy.Addr())
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	errFile, err := os.Create(filepath.Join(server.Dir, program.name+".stderr"))
	require.NoError(t, err)
	defer errFile.Close()
	cmd.Stderr = errFile
	require.NoError(t, harness.StartChild(cmd))

	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()

	checks, ended := followClient(t, stdout, stdin, server, proxy)
	waitErr := cmd.Wait()
	if t.Failed() || waitErr != nil || ended != checks || checks < program.checksMin {
		text, _ := os.ReadFile(errFile.Name())
		t.Errorf("%s: %d checks seen, END said %d, at least %d expected, exit: %v\nstderr: %s\nserver log: %s", program.name,
			checks, ended, program.checksMin, waitErr, lastLines(string(text), 8), lastLines(server.Log(), 8))
	}
}

func followClient(t *testing.T, stdout io.Reader, stdin io.Writer, server *harness.Server, proxy *harness.Proxy) (checks, ended int) {
	ended = -1
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for last := time.Now(); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "PASS", "FAIL":
			name, why, _ := strings.Cut(rest, ": ")
			checks++
			t.Run(name, func(t *testing.T) {
				t.Logf("%s %s (%v)", verb, name, time.Since(last).Round(time.Millisecond))
				if verb == "FAIL" {
					t.Error(why)
				}
			})
			last = time.Now()
		case "CALL":
			answer := "OK"
			if err := serve(rest, server, proxy); err != nil {
				answer = "ERR " + strings.ReplaceAll(err.Error(), "\n", " ")
			}
			fmt.Fprintln(stdin, answer)
		case "END":
			ended, _ = strconv.Atoi(rest)
		default:
			t.Log(lines.Text())
		}
	}
	return checks, ended
}

// serve does what a client program asks for. While the server is down, its port refuses connections.
func serve(what string, server *harness.Server, proxy *harness.Proxy) error {
	switch what {
	case "restart":
		proxy.Pause()
		return errors.Join(server.Restart(), proxy.Resume())
	case "kill":
		proxy.Pause()
		server.Kill()
		return errors.Join(server.Start(), proxy.Resume())
	case "cut":
		if proxy.Cut() == 0 {
			return fmt.Errorf("there was no connection to cut")
		}
		return nil
	default:
		return fmt.Errorf("unknown request %q", what)
	}
}
