//go:build linux

package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The kernel sends Pdeathsig when the THREAD that started the child ends, so that all children are started by one
// goroutine that owns its thread for good: a test run that is killed leaves no server behind.
var childStarts = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for start := range childStarts {
			start()
		}
	}()
}

// StartChild starts cmd so that it is killed when this process ends, however it ends.
func StartChild(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	childStarts <- func() { done <- cmd.Start() }
	return <-done
}

// Ports are taken from below the range that the kernel gives to outgoing connections: while a server is down, a client
// that dials its port again and again could otherwise be given that very port and connect to itself.
const (
	portMin = 20000
	portMax = 32000
)

// portsGiven are the ports that FreePort has returned: a server that is down does not hold its own.
var portsGiven sync.Map

// FreePort returns a TCP port that was free on the loopback interface a moment ago, and never the same one twice.
func FreePort() (int, error) {
	for range 1000 {
		port := portMin + rand.IntN(portMax-portMin)
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		if _, given := portsGiven.LoadOrStore(port, true); !given {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", portMin, portMax)
}

// FourLetter sends a four-letter word to addr and returns the answer.
func FourLetter(addr, word string) (string, error) {
	return fourLetterWithin(addr, word, 5*time.Second)
}

func fourLetterWithin(addr, word string, limit time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit))
	if _, err := conn.Write([]byte(word)); err != nil {
		return "", err
	}
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return b.String(), nil
}

// serving says whether the server at addr answers as one that serves clients.
func serving(addr string) bool {
	answer, err := FourLetter(addr, "srvr")
	return err == nil && strings.Contains(answer, "Mode: ")
}

// Monitor returns the values of the `mntr` word by name, without the zk_ in front.
func Monitor(addr string) (map[string]string, error) {
	answer, err := FourLetter(addr, "mntr")
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, line := range strings.Split(answer, "\n") {
		if name, value, ok := strings.Cut(line, "\t"); ok {
			values[strings.TrimPrefix(name, "zk_")] = value
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("mntr answered %q", answer)
	}
	return values, nil
}

// Usage is what a process has used so far.
type Usage struct {
	RSSBytes    int64         // resident set now
	RSSMaxBytes int64         // its high-water mark
	CPU         time.Duration // user and system time of all threads
}

// ProcessUsage reads the usage of a process from /proc.
func ProcessUsage(pid int) (Usage, error) {
	var u Usage
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for _, line := range strings.Split(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			u.RSSBytes = parseKiB(fields[1])
		case "VmHWM:":
			u.RSSMaxBytes = parseKiB(fields[1])
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The command name in parentheses may hold blanks; utime and stime are the 12th and 13th field behind it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return u, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return u, err
		}
		u.CPU += time.Duration(ticks) * (time.Second / clockTicksPerSecond)
	}
	return u, nil
}

// clockTicksPerSecond is USER_HZ, which Linux fixes at 100 for what it shows in /proc.
const clockTicksPerSecond = 100

func parseKiB(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n * 1024
}
