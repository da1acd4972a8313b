package servertest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/server"
	"zabra/server/client"
)

// waitMax bounds everything that a server is waited for. It is far above what is ever needed.
const waitMax = 30 * time.Second

// defaults are the configuration of a test's server. A short tick makes for short session timeouts (1 to 10 s), and the
// number of connections is not limited, because all of them come from one address.
var defaults = [][2]string{
	{"tickTime", "500"},
	{"maxClientCnxns", "0"},
	{"admin.enableServer", "false"},
	{"4lw.commands.whitelist", "*"},
}

// built stands in the version text, since the binary of a test does not know when it was built.
var built = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Option changes how a server is started.
type Option func(*Server)

// WithConfig sets a key of the configuration file, also one of the defaults. An empty value is one too.
func WithConfig(key, value string) Option {
	return func(s *Server) {
		s.config = slices.DeleteFunc(s.config, func(kv [2]string) bool { return kv[0] == key })
		s.config = append(s.config, [2]string{key, value})
	}
}

// WithAdmin gives the server an admin server on a free port, another one after each start.
func WithAdmin() Option {
	return func(s *Server) {
		for _, kv := range [][2]string{{"admin.enableServer", "true"}, {"admin.serverAddress", "127.0.0.1"}, {"admin.serverPort", "0"}} {
			WithConfig(kv[0], kv[1])(s)
		}
	}
}

// WithDataDir starts on a data directory that exists already; it is used as it is, not copied.
func WithDataDir(dir string) Option { return func(s *Server) { s.dataDir = dir } }

// WithLog gives the server a logger. Without one it is silent.
func WithLog(log *zap.Logger) Option { return func(s *Server) { s.log = log } }

// Server is a server that runs in this process, or has stopped and can be started again. Its methods are for the test's
// own goroutine, apart from Addr and DataDir.
type Server struct {
	t       testing.TB
	config  [][2]string
	dataDir string
	log     *zap.Logger
	control *server.Control
	// ensemble is what the server is a member of, with the number id; nil for none.
	ensemble *Ensemble
	id       int
	// observers is how many members of an ensemble have no vote.
	observers int
	addr      string // fixed by the first start
	// secureAddr is that of the client port with TLS, "" without one. Its number in the configuration does not count.
	secureAddr string

	running *server.Server // nil when stopped
	served  chan error     // what running.Serve returned
	disk    *mortalDisk    // the running server's
}

// Start starts a server and returns when it takes connections. If that fails, so does the test.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := newServer(t, opts)
	s.start()
	return s
}

// newServer prepares a server, and its end with the test.
func newServer(t testing.TB, opts []Option) *Server {
	t.Helper()
	s := &Server{t: t, config: slices.Clone(defaults), dataDir: filepath.Join(t.TempDir(), "data"), control: new(server.Control)}
	for _, opt := range opts {
		opt(s)
	}
	t.Cleanup(func() {
		if s.running != nil {
			s.close()
		}
	})
	return s
}

// Addr returns the address of the client port. It stays the same for the life of the test.
func (s *Server) Addr() string { return s.addr }

// MetricsAddr returns where the running server serves /metrics, which it does with metricsProvider.className only.
func (s *Server) MetricsAddr() string { return s.running.MetricsAddr().String() }

// SecureAddr returns the address of the client port with TLS, which the key secureClientPort asks for.
func (s *Server) SecureAddr() string { return s.secureAddr }

// DataDir returns the directory that holds snapshots and logs.
func (s *Server) DataDir() string { return s.dataDir }

// AdminURL is where the commands of the running server's admin server are, without the slash before /commands. The test
// fails if it has none: see WithAdmin.
func (s *Server) AdminURL() string {
	s.t.Helper()
	addr := s.running.AdminAddr()
	if addr == nil {
		s.t.Fatal("servertest: the server has no admin server")
	}
	return "http://" + addr.String()
}

// Client connects to the server. The connection is cut at the end of the test if it has not been closed before. With no
// options it asks for a new session.
func (s *Server) Client(t testing.TB, opts ...client.Options) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	c, err := client.Dial(ctx, s.addr, append(opts, client.Options{})[0])
	if err != nil {
		t.Fatalf("servertest: connecting to %s: %v", s.addr, err)
	}
	t.Cleanup(c.Abandon)
	return c
}

// Stop shuts the server down as an operator would: what was begun is finished.
func (s *Server) Stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	if err := s.running.Shutdown(ctx); err != nil {
		s.t.Fatalf("servertest: shutdown: %v", err)
	}
	s.ended()
}

// Kill stops the server as a crash of its process would: from this moment nothing more reaches the disk, and the
// connections are cut.
func (s *Server) Kill() {
	s.t.Helper()
	s.disk.die()
	s.running.Close() // fails, since nothing can be written
	<-s.served
	s.running = nil
}

// Stall makes the disk stand still: whoever changes anything on it waits until the server is killed, and then it has not
// happened.
func (s *Server) Stall() { s.disk.stalled.Store(true) }

// Restart starts the server again, on the same port and data directory. If it is running, it is shut down first.
func (s *Server) Restart() {
	s.t.Helper()
	if s.running != nil {
		s.Stop()
	}
	s.start()
}

func (s *Server) start() {
	s.t.Helper()
	s.launch()
	s.awaitServing()
}

// launch starts the server without waiting until it serves.
func (s *Server) launch() {
	s.t.Helper()
	cfg, err := s.load()
	if err != nil {
		s.t.Fatalf("servertest: configuration: %v", err)
	}
	disk := newMortalDisk()
	opts := server.Options{Log: s.log, FS: disk, Version: "test", Built: built, Control: s.control}
	if s.ensemble != nil {
		opts.DialMember = s.ensemble.net.dialFrom(s.id)
	}
	srv, err := server.New(cfg, opts)
	if err != nil {
		s.t.Fatalf("servertest: start: %v", err)
	}
	s.running, s.disk, s.served = srv, disk, make(chan error, 1)
	if s.addr == "" { // it stays the same, and others may be reading it
		s.addr = srv.Addr().String()
		if secure := srv.SecureAddr(); secure != nil {
			s.secureAddr = secure.String()
		}
	}
	go func(served chan<- error) { served <- srv.Serve() }(s.served)
}

// close is the end of a server that the test left running.
func (s *Server) close() {
	if err := s.running.Close(); err != nil {
		s.t.Errorf("servertest: close: %v", err)
	}
	s.ended()
}

func (s *Server) ended() {
	if err := <-s.served; !errors.Is(err, server.ErrServerClosed) {
		s.t.Errorf("servertest: the server failed: %v", err)
	}
	s.running = nil
}

// load writes the configuration file and reads it as the program does.
func (s *Server) load() (*conf.Config, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n", filepath.ToSlash(s.dataDir), portLater)
	for _, kv := range s.config {
		fmt.Fprintf(&text, "%s=%s\n", kv[0], kv[1])
	}
	file := filepath.Join(s.t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	cfg, err := conf.Load(file, nil)
	if err != nil {
		return nil, err
	}
	cfg.ClientPort, err = s.port(s.addr)
	if cfg.Security.SecureClientPort != conf.Unset && err == nil {
		cfg.Security.SecureClientPort, err = s.port(s.secureAddr)
	}
	return cfg, err
}

// port is that of an earlier start, if there was one, or else a new one.
func (s *Server) port(addr string) (int, error) {
	if addr == "" {
		return freePort(s.t), nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

// portLater stands in the file for the port that is chosen next.
const portLater = 2181

// awaitServing returns when a connection gets an answer: New has bound the port already, so connecting proves nothing.
func (s *Server) awaitServing() {
	s.t.Helper()
	deadline := time.Now().Add(waitMax)
	for {
		select {
		case err := <-s.served:
			s.running = nil
			s.t.Fatalf("servertest: the server failed: %v", err)
		default:
		}
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		answer, err := client.Word(ctx, s.addr, "srvr")
		cancel()
		var op *net.OpError
		if err == nil && strings.Contains(answer, "Mode:") {
			return
		}
		if err != nil && !errors.As(err, &op) || time.Now().After(deadline) {
			s.t.Fatalf("servertest: the server does not answer: %q, %v", answer, err)
		}
		time.Sleep(time.Millisecond) // between two looks at a condition that nothing else tells
	}
}

// await waits for a condition that concerns some servers. If it does not come to be, the test fails and tells their states.
func await(t testing.TB, servers []*Server, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitMax); !cond(); {
		if time.Now().After(deadline) {
			for i, s := range servers {
				if s.running != nil {
					t.Logf("servertest: server %d: %+v", i+1, s.running.Stats())
				}
			}
			t.Fatalf("servertest: it took too long until %s", what)
		}
		time.Sleep(time.Millisecond) // between two looks at a condition that nothing else tells
	}
}

// mortalDisk is the operating system's file system until it dies. From then on nothing can be changed.
type mortalDisk struct {
	*vfs.Fault
	stalled, dead atomic.Bool
	died          chan struct{}
}

func newMortalDisk() *mortalDisk {
	d := &mortalDisk{Fault: vfs.NewFault(vfs.OS{}), died: make(chan struct{})}
	d.Inject(func(op vfs.Op) error {
		if !op.Kind.Changes() {
			return nil
		}
		if d.stalled.Load() {
			<-d.died
		}
		if d.dead.Load() {
			return &fs.PathError{Op: op.Kind.String(), Path: op.Name, Err: errDead}
		}
		return nil
	})
	return d
}

func (d *mortalDisk) die() {
	if d.dead.CompareAndSwap(false, true) {
		close(d.died)
	}
}

var errDead = errors.New("the process is dead")
