//go:build linux

// Package harness runs ZooKeeper servers as separate processes, for tests and measurements that speak to them only through
// sockets, files and signals. It knows Zabra and two releases of Apache ZooKeeper, and can start one after the other on the
// same configuration file and data directory.
package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"syscall"
	"time"
)

// Kind names a server program.
type Kind string

// The server programs that the harness can start.
const (
	Zabra     Kind = "zabra"
	Apache395 Kind = "apache-3.9.5"
	Apache380 Kind = "apache-3.8.0"
)

// Environment variables that choose what is run.
const (
	envServer = "ZABRA_TEST_SERVER"   // a Kind; default zabra
	envBinary = "ZABRA_BIN"           // path of the zabra binary; default bin/zabra of this repository
	envCache  = "ZABRA_INTEROP_CACHE" // where install.sh put the clients; default .interop of this repository
)

const (
	startTimeout = 60 * time.Second // a JVM on a busy two-core machine
	stopTimeout  = 20 * time.Second
)

// SuperAuth is the credential of the super user of every server that the harness configures, SuperDigest its stored form.
const (
	SuperAuth   = "super:test"
	superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
)

// UnderTest returns the server that the suite is to judge: $ZABRA_TEST_SERVER, Zabra when it is not set.
func UnderTest() (Kind, error) {
	switch k := Kind(os.Getenv(envServer)); k {
	case "":
		return Zabra, nil
	case Zabra, Apache395, Apache380:
		return k, nil
	default:
		return "", fmt.Errorf("%s=%q: want %s, %s or %s", envServer, k, Zabra, Apache395, Apache380)
	}
}

// Root returns the top of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Cache returns the folder that integration/interop/install.sh fills.
func Cache() string {
	if dir := os.Getenv(envCache); dir != "" {
		return dir
	}
	return filepath.Join(Root(), ".interop")
}

// Server is a server process on a loopback port, together with its configuration file and data. It is not safe for concurrent use.
type Server struct {
	Kind Kind   // may be changed while the server is stopped
	Dir  string // holds zoo.cfg, data/ and log/
	Port int    // client port on 127.0.0.1, kept over restarts
	// JVM holds arguments for the Apache servers beside the harness's own. Nil means a quick start and a small heap.
	JVM []string
	// Defines are -Dkey=value settings that cannot be said in zoo.cfg; both kinds of server take them.
	Defines []string

	settings map[string]string
	cmd      *exec.Cmd
	exited   chan struct{}
	exitErr  error
	starts   int
	logFile  *os.File
}

// New prepares a server below dir, which must exist; settings are added to zoo.cfg or replace the harness's own.
func New(kind Kind, dir string, settings map[string]string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Kind: kind, Dir: dir, Port: port, settings: map[string]string{
		"dataDir":                "data",
		"clientPortAddress":      "127.0.0.1",
		"tickTime":               "500",
		"maxClientCnxns":         "0",
		"extendedTypesEnabled":   "true",
		"4lw.commands.whitelist": "*",
		"admin.enableServer":     "false",
		"preAllocSize":           "1024",
		"DigestAuthenticationProvider.superDigest": superDigest,
	}}
	for k, v := range settings {
		s.settings[k] = v
	}
	s.settings["dataDir"] = filepath.Join(dir, "data")
	s.settings["clientPort"] = fmt.Sprint(port)
	return s, s.writeConfig()
}

// Set changes settings of zoo.cfg for the next start; an empty value removes the key.
func (s *Server) Set(settings map[string]string) error {
	for k, v := range settings {
		if v == "" {
			delete(s.settings, k)
		} else {
			s.settings[k] = v
		}
	}
	return s.writeConfig()
}

func (s *Server) writeConfig() error {
	keys := make([]string, 0, len(s.settings))
	for k := range s.settings {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s=%s\n", k, s.settings[k])
	}
	return os.WriteFile(s.ConfigFile(), []byte(b.String()), 0o644)
}

// Addr returns the client address.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// ConfigFile returns the path of zoo.cfg.
func (s *Server) ConfigFile() string { return filepath.Join(s.Dir, "zoo.cfg") }

// DataDir returns the path of the data directory.
func (s *Server) DataDir() string { return filepath.Join(s.Dir, "data") }

// LogFile returns the path of the output of the latest start.
func (s *Server) LogFile() string {
	return filepath.Join(s.Dir, fmt.Sprintf("server.%d.log", s.starts))
}

// Log returns the output of the latest start.
func (s *Server) Log() string {
	b, _ := os.ReadFile(s.LogFile())
	return string(b)
}

// PID returns the process id, 0 while the server is stopped.
func (s *Server) PID() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Start starts the server and waits until it serves clients.
func (s *Server) Start() error {
	if err := s.Launch(); err != nil {
		return err
	}
	deadline := time.Now().Add(startTimeout)
	for {
		if serving(s.Addr()) {
			return nil
		}
		select {
		case <-s.exited:
			err := fmt.Errorf("%s ended at start: %w\n%s", s.Kind, s.exitErr, tail(s.Log(), 40))
			s.cmd = nil
			return err
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("%s did not serve within %v\n%s", s.Kind, startTimeout, tail(s.Log(), 40))
		}
	}
}

// Launch starts the process without waiting for it to serve.
func (s *Server) Launch() error {
	if s.cmd != nil {
		return errors.New("the server is running")
	}
	cmd, err := s.command()
	if err != nil {
		return err
	}
	s.starts++
	if s.logFile, err = os.Create(s.LogFile()); err != nil {
		return err
	}
	cmd.Dir = s.Dir
	cmd.Stdout, cmd.Stderr = s.logFile, s.logFile
	if err := StartChild(cmd); err != nil {
		s.logFile.Close()
		return fmt.Errorf("start %s: %w", s.Kind, err)
	}
	exited := make(chan struct{})
	s.cmd, s.exited = cmd, exited
	log := s.logFile
	go func() {
		s.exitErr = cmd.Wait()
		log.Close()
		close(exited)
	}()
	return nil
}

// Stop asks the server to end with SIGTERM and waits for it. A server that does not end in time is killed and reported.
func (s *Server) Stop() error {
	if s.cmd == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		s.cmd = nil
		return nil
	case <-time.After(stopTimeout):
		s.Kill()
		return fmt.Errorf("%s did not end within %v of SIGTERM", s.Kind, stopTimeout)
	}
}

// Kill ends the server with SIGKILL and waits for it. It does nothing when the server is stopped.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
	s.cmd = nil
}

// Terminate sends SIGTERM and does not wait.
func (s *Server) Terminate() error { return s.signal(syscall.SIGTERM) }

// Suspend stops the process with SIGSTOP: its sockets stay open and nobody answers. It returns when all threads stand still,
// which takes a moment after the signal.
func (s *Server) Suspend() error {
	if err := s.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pid := s.cmd.Process.Pid
	for began := time.Now(); time.Since(began) < suspendMax; {
		if standsStill(pid) {
			return nil
		}
		time.Sleep(time.Millisecond) // polls the process
	}
	return fmt.Errorf("process %d does not stop", pid)
}

// suspendMax is how long a process may take to stop.
const suspendMax = 5 * time.Second

// standsStill reports whether every thread of a process is in state T.
func standsStill(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		// The state is behind the name, which may have blanks, in parentheses.
		if i := bytes.LastIndexByte(text, ')'); err == nil && (i < 0 || i+2 >= len(text) || text[i+2] != 'T') {
			return false
		}
	}
	return true
}

// Continue lets a suspended process run on.
func (s *Server) Continue() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) error {
	if s.cmd == nil {
		return errors.New("the server is stopped")
	}
	return s.cmd.Process.Signal(sig)
}

// Exited says whether the process has ended; it does so for a server that is stopped, too.
func (s *Server) Exited() bool {
	if s.cmd == nil {
		return true
	}
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// Restart stops the server and starts it again.
func (s *Server) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.Start()
}

func (s *Server) command() (*exec.Cmd, error) {
	if s.Kind == Zabra {
		bin := os.Getenv(envBinary)
		if bin == "" {
			bin = filepath.Join(Root(), "bin", "zabra")
		}
		if _, err := os.Stat(bin); err != nil {
			return nil, fmt.Errorf("the server under test is missing (make build): %w", err)
		}
		args := append([]string{"server"}, s.Defines...)
		return exec.Command(bin, append(args, s.ConfigFile())...), nil
	}
	classPath, err := apacheClassPath(s.Kind)
	if err != nil {
		return nil, err
	}
	jvm := s.JVM
	if jvm == nil {
		jvm = []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}
	}
	args := append([]string{}, jvm...)
	args = append(args, s.Defines...)
	args = append(args, "-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", s.ConfigFile())
	return exec.Command("java", args...), nil
}

func apacheClassPath(kind Kind) (string, error) {
	switch kind {
	case Apache395:
		jars := filepath.Join(Cache(), "jars")
		if _, err := os.Stat(filepath.Join(jars, "zookeeper-3.9.5.jar")); err != nil {
			return "", fmt.Errorf("run integration/interop/install.sh first: %w", err)
		}
		return jars + "/*", nil
	case Apache380:
		// Debian's jar names the rest of its class path in its manifest.
		const jar = "/usr/share/java/zookeeper-3.8.0.jar"
		if _, err := os.Stat(jar); err != nil {
			return "", fmt.Errorf("run integration/interop/install.sh first: %w", err)
		}
		return jar + ":/usr/share/java/servlet-api.jar:/usr/share/java/slf4j-simple.jar", nil
	default:
		return "", fmt.Errorf("unknown server kind %q", kind)
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
