package cli

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
	"zabra/wire"
)

// waitMax bounds everything that the tests wait for.
const waitMax = 20 * time.Second

// screen is a command line on a terminal of its own.
type screen struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	cond *sync.Cond
	text []byte
	seen int // what expect has passed
	over bool
}

// openScreen starts zabra cli on a terminal. It answers the question for the cursor's place, as terminals do.
func openScreen(t *testing.T, home string, args ...string) *screen {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asMain+"="+strings.Join(args, "\n"), "HOME="+home, "TERM=xterm", "NO_COLOR=1", "CLIENT_JVMFLAGS=")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	require.NoError(t, err)
	s := &screen{t: t, tty: tty, cmd: cmd}
	s.cond = sync.NewCond(&s.mu)
	go s.read()
	t.Cleanup(func() {
		cmd.Process.Kill()
		tty.Close()
	})
	return s
}

func (s *screen) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		s.text = append(s.text, buf[:n]...)
		s.over = err != nil
		s.cond.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
		for range bytes.Count(buf[:n], []byte("\x1b[6n")) {
			io.WriteString(s.tty, "\x1b[1;1R")
		}
	}
}

// expect waits until the text stands behind what was expected before.
func (s *screen) expect(want string) {
	s.t.Helper()
	timer := time.AfterFunc(waitMax, func() {
		s.mu.Lock()
		s.over = true
		s.cond.Broadcast()
		s.mu.Unlock()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if i := bytes.Index(s.text[s.seen:], []byte(want)); i >= 0 {
			s.seen += i + len(want)
			return
		}
		require.False(s.t, s.over, "%q does not come; behind what was expected before stands %q", want, s.text[s.seen:])
		s.cond.Wait()
	}
}

func (s *screen) send(keys string) {
	s.t.Helper()
	_, err := io.WriteString(s.tty, keys)
	require.NoError(s.t, err)
}

// exitCode waits for the end.
func (s *screen) exitCode() int {
	s.t.Helper()
	late := time.AfterFunc(waitMax, func() { s.cmd.Process.Kill() })
	defer late.Stop()
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

func TestTerminal(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	for _, path := range []string{"/app", "/app/config", "/app/cache", "/app/cache/one"} {
		_, err := zk.Create(t.Context(), path, []byte("data of "+path), wire.OpenACL, 0)
		require.NoError(t, err)
	}
	home := t.TempDir()
	s := openScreen(t, home, "-server", server.Addr())
	s.expect("help lists the commands, Tab completes, Ctrl-D ends")
	s.expect("WatchedEvent state:SyncConnected type:None path:null zxid: -1")
	s.expect("[zk: " + server.Addr() + "(CONNECTED) 0] ")

	// A command, an option, a path and the one below it are completed.
	s.send("getAl\t")
	s.expect("getAllChildrenNumber ")
	s.send("/a\t")
	s.expect("/app/")
	s.send("con\t")
	s.expect("/app/config ")
	s.send("\x03")
	s.expect("^C")
	s.expect("(CONNECTED) 0] ")
	s.send("get /app/co\t\r")
	s.expect("data of /app/config")
	s.expect("(CONNECTED) 1] ")
	s.send("ls /app/ca\t\r")
	s.expect("Path must not end with / character")
	s.expect("(CONNECTED) 2] ")

	// Ctrl-C ends a command, not the session, and events come while a line is being written.
	s.send("watch /app\r")
	s.expect("watching /app")
	_, err := zk.SetData(t.Context(), "/app/cache/one", []byte("new"), -1)
	require.NoError(t, err)
	s.expect("NodeDataChanged     zxid=0x")
	s.expect("/app/cache/one")
	s.send("\x03")
	s.expect("(CONNECTED) 3] ")
	s.send("get -w /app\r")
	s.expect("(CONNECTED) 4] ")
	s.send("hist")
	s.expect("hist")
	_, err = zk.SetData(t.Context(), "/app", []byte("changed"), -1)
	require.NoError(t, err)
	s.expect("WatchedEvent state:SyncConnected type:NodeDataChanged path:/app zxid: ")
	s.expect("hist") // the line is written again
	s.send("ory\r")
	s.expect("0 - get /app/config")

	// The history goes on in the next session, without passwords.
	s.send("addauth digest bob:hidden\r")
	s.expect("(CONNECTED) 6] ")
	s.send("\x1b[A")
	s.expect("history")
	s.send("\x03")
	s.expect("^C")
	s.expect("(CONNECTED) 6] ")
	s.send("history\r")
	s.expect("5 - addauth digest ******")
	s.expect("(CONNECTED) 7] ")
	s.send("\x04")
	require.Equal(t, 0, s.exitCode())
	file, err := os.ReadFile(filepath.Join(home, ".zabra_history"))
	require.NoError(t, err)
	require.Equal(t, "get /app/config \nls /app/cache/\nwatch /app\nget -w /app\nhistory\n", string(file))
	info, err := os.Stat(filepath.Join(home, ".zabra_history"))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	s = openScreen(t, home, "-server", server.Addr(), "-q")
	s.expect("(CONNECTED) 0] ")
	s.send("\x1b[A\x1b[A")
	s.expect("get -w /app")
	s.send("\r")
	s.expect("changed")
	s.expect("(CONNECTED) 1] ")
	s.send("get /none\r")
	s.expect("Node does not exist: /none")
	s.expect("(CONNECTED) 2] ")
	s.send("quit\r")
	require.Equal(t, 1, s.exitCode(), "the code of the last command")
}

// The prompt tells that the connection is lost, while a line is being written.
func TestTerminalReconnects(t *testing.T) {
	server := servertest.Start(t)
	s := openScreen(t, t.TempDir(), "-server", server.Addr(), "--history=")
	s.expect("(CONNECTED) 0] ")
	s.send("create -e /mine x\r")
	s.expect("Created /mine")
	s.expect("(CONNECTED) 1] ")
	server.Kill()
	s.expect("WatchedEvent state:Disconnected type:None path:null zxid: -1")
	s.expect("(CONNECTING) 1] ")
	server.Restart()
	s.expect("WatchedEvent state:SyncConnected type:None path:null zxid: -1")
	s.expect("(CONNECTED) 1] ")
	s.send("getEphemerals\r")
	s.expect("[/mine]")
	s.expect("(CONNECTED) 2] ")
	s.send("\x04")
	require.Equal(t, 0, s.exitCode())
}

// What asks for the end of the process ends it, at the prompt and in a command, with its session and a usable terminal.
func TestTerminalEnds(t *testing.T) {
	// Tests that run under nohup ignore SIGHUP, and so would their children, which leave it ignored then. What is caught here
	// is not ignored there.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	server := servertest.Start(t)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		for _, command := range []string{"", "watch /"} {
			s := openScreen(t, t.TempDir(), "-server", server.Addr(), "-q", "--history=")
			s.expect("(CONNECTED) 0] ")
			s.send("create -e /mine\r")
			s.expect("(CONNECTED) 1] ")
			if command != "" {
				s.send(command + "\r")
				s.expect("watching /")
			}
			require.NoError(t, s.cmd.Process.Signal(sig))
			require.Equal(t, ExitInterrupted, s.exitCode(), "%v %s", sig, command)
			require.Equal(t, "[zookeeper]\n", ok(t, server.Addr(), "ls", "/"), "the session is closed")
		}
	}
}

// Ctrl-C ends a single command: watch in the ordinary way, others with a code of their own.
func TestInterrupt(t *testing.T) {
	server := servertest.Start(t)
	s := openScreen(t, t.TempDir(), "-server", server.Addr(), "-q", "watch", "/")
	s.expect("watching / and what is below it, Ctrl-C ends")
	s.send("\x03")
	require.Equal(t, 0, s.exitCode())

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	s = openScreen(t, t.TempDir(), "-server", silent.Addr().String(), "-waitforconnection", "get", "/")
	s.expect("Connecting to")
	_, err = silent.Accept()
	require.NoError(t, err)
	s.send("\x03")
	require.Equal(t, ExitInterrupted, s.exitCode())
}
