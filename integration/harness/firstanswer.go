//go:build linux

package harness

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

const (
	answerSessionMs  = 30000
	answerTimeout    = 2 * time.Minute // a large directory on a busy machine
	answerPauseMin   = time.Millisecond
	answerPauseShare = 200 // the pause between two attempts is that part of the time so far, so the result is good to 0.5 %
	// attemptsMax bounds the attempts at one time. More than one are needed: the reference server leaves a connection that comes
	// at a bad moment of its start without an answer for good.
	attemptsMax  = 16
	attemptLimit = time.Second
)

// StartMeasured starts the server and returns how long it took from the start of the process to the first read that a client
// got answered.
func (s *Server) StartMeasured() (time.Duration, error) {
	began := time.Now()
	if err := s.Launch(); err != nil {
		return 0, err
	}
	answers := make(chan error, attemptsMax)
	var last error
	next := time.After(0)
	for running := 0; ; {
		took := time.Since(began)
		select {
		case last = <-answers:
			running--
			if last == nil {
				return time.Since(began), nil
			}
		case <-next:
			if running < attemptsMax {
				running++
				go func() { answers <- readRoot(s.Addr()) }()
			}
			next = time.After(max(answerPauseMin, took/answerPauseShare))
		}
		if s.Exited() {
			return 0, fmt.Errorf("%s ended at start\n%s", s.Kind, tail(s.Log(), 40))
		}
		if took > answerTimeout {
			s.Kill()
			return 0, fmt.Errorf("%s did not answer within %v: %w\n%s", s.Kind, answerTimeout, last, tail(s.Log(), 40))
		}
	}
}

// readRoot opens a session, reads the root's data and closes the session.
func readRoot(addr string) error {
	raw, err := Greet(addr, Greeting{TimeoutMs: answerSessionMs}, attemptLimit)
	if err != nil {
		return err
	}
	defer raw.Close()
	raw.SetReadDeadline(time.Now().Add(attemptLimit))
	reply, err := raw.Call(AppendGet(nil, 1, "/"))
	if err != nil {
		return err
	}
	if reply.Code != CodeOK {
		return fmt.Errorf("get /: code %d", reply.Code)
	}
	return raw.Write(AppendClose(nil, 2))
}

// ErrNoLiveHeap says that there is no way to ask a server for its live heap.
var ErrNoLiveHeap = errors.New("no way to ask for the live heap")

var heapUsed = regexp.MustCompile(`heap\s+total \d+K, used (\d+)K`)

// LiveHeap returns the bytes that are in use on the server's heap after a full collection: of a JVM through jcmd, of Zabra
// by its own account in mntr. It returns ErrNoLiveHeap where neither is there.
func (s *Server) LiveHeap() (int64, error) {
	if s.Kind == Zabra {
		values, err := Monitor(s.Addr())
		if err != nil {
			return 0, err
		}
		if text, known := values["live_heap_bytes"]; known {
			return strconv.ParseInt(text, 10, 64)
		}
		return 0, ErrNoLiveHeap
	}
	jcmd, err := exec.LookPath("jcmd")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoLiveHeap, err)
	}
	pid := strconv.Itoa(s.PID())
	if out, err := exec.Command(jcmd, pid, "GC.run").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("jcmd GC.run: %w: %s", err, out)
	}
	out, err := exec.Command(jcmd, pid, "GC.heap_info").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("jcmd GC.heap_info: %w: %s", err, out)
	}
	match := heapUsed.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("jcmd GC.heap_info: no used heap in %q", out)
	}
	kib, err := strconv.ParseInt(string(match[1]), 10, 64)
	return kib << 10, err
}
