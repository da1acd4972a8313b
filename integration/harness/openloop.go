//go:build linux

package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const (
	openLoopTimeoutMs = 60000
	openLoopWait      = time.Minute // the longest wait for one answer
	openLoopBacklog   = 1 << 16     // requests that one session may have outstanding
	openLoopBytes     = 100         // of data in a write
	fillDepth         = 512         // writes that Fill has outstanding
)

// openLoopPath names the nodes that Fill and the open loop write; Fill makes them.
func openLoopPath(n int) string { return fmt.Sprintf("/load/n%03d", n) }

// Fill makes so many nodes below /load, unless they are there, and then writes them so many times as fast as it can.
func Fill(addr string, nodes, writes int) error {
	raw, err := DialRaw(addr, openLoopTimeoutMs, 0, [16]byte{})
	if err != nil {
		return err
	}
	defer raw.Close()
	data := bytes.Repeat([]byte{'x'}, openLoopBytes)
	frames := AppendCreate(nil, 0, "/load", nil, 0)
	for n := range nodes {
		frames = AppendCreate(frames, int32(n+1), openLoopPath(n), data, 0)
	}
	if err := raw.Write(frames); err != nil {
		return err
	}
	read := func() error {
		raw.SetReadDeadline(time.Now().Add(openLoopWait))
		reply, err := raw.ReadReply()
		if err == nil && reply.Code != CodeOK && reply.Code != CodeNodeExists {
			err = fmt.Errorf("code %d", reply.Code)
		}
		return err
	}
	for range nodes + 1 {
		if err := read(); err != nil {
			return fmt.Errorf("create: %w", err)
		}
	}
	for sent, answered := 0, 0; answered < writes; answered++ {
		frames = frames[:0]
		for ; sent < writes && sent-answered < fillDepth; sent++ {
			frames = AppendSet(frames, int32(sent), openLoopPath(sent%nodes), data)
		}
		if err := raw.Write(frames); err != nil {
			return err
		}
		if err := read(); err != nil {
			return fmt.Errorf("write %d of %d: %w", answered, writes, err)
		}
	}
	_, err = raw.Call(AppendClose(nil, 0))
	return err
}

// OpenLoop writes at a fixed rate, whether answers come or not, so that a stall is seen by all writes that fall into it.
type OpenLoop struct {
	stop     atomic.Bool
	wg       sync.WaitGroup
	sessions []*openSession
}

// OpenStats is what an open loop has seen.
type OpenStats struct {
	Writes  int
	P50     time.Duration // from when a write was due to its answer
	P99     time.Duration
	Longest time.Duration
}

// openSession is a session with a goroutine that sends and one that reads.
type openSession struct {
	raw   *Raw
	due   chan time.Time
	times []time.Duration
	err   error
}

// StartOpenLoop begins to write so many times a second, in sessions that are dealt out to the addresses. Fill must have made the
// nodes, at least as many as there are sessions.
func StartOpenLoop(addrs []string, sessions, perSecond int) (*OpenLoop, error) {
	l := &OpenLoop{}
	for i := range sessions {
		raw, err := DialRaw(addrs[i%len(addrs)], openLoopTimeoutMs, 0, [16]byte{})
		if err != nil {
			l.stop.Store(true)
			return nil, errors.Join(err, l.close())
		}
		l.sessions = append(l.sessions, &openSession{raw: raw, due: make(chan time.Time, openLoopBacklog)})
	}
	period := time.Second * time.Duration(sessions) / time.Duration(perSecond)
	start := time.Now()
	for i, s := range l.sessions {
		first := start.Add(period * time.Duration(i) / time.Duration(sessions))
		path := openLoopPath(i)
		l.wg.Go(func() { s.send(&l.stop, first, period, path) })
		l.wg.Go(s.read)
	}
	return l, nil
}

func (s *openSession) send(stop *atomic.Bool, due time.Time, period time.Duration, path string) {
	defer close(s.due)
	data := bytes.Repeat([]byte{'y'}, openLoopBytes)
	for xid := int32(0); !stop.Load(); xid++ {
		time.Sleep(time.Until(due)) // the rate of the load
		select {
		case s.due <- due:
		default:
			return // the reader reports it: there are far fewer answers than writes
		}
		if s.raw.Write(AppendSet(nil, xid, path, data)) != nil {
			return // the reader meets the same error
		}
		due = due.Add(period)
	}
}

func (s *openSession) read() {
	for due := range s.due {
		s.raw.SetReadDeadline(time.Now().Add(openLoopWait))
		reply, err := s.raw.ReadReply()
		if err == nil && reply.Code != CodeOK {
			err = fmt.Errorf("code %d", reply.Code)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("no answer for %v: %w", openLoopWait, err)
		}
		if err != nil {
			s.err = err
			s.raw.Close()
			return
		}
		s.times = append(s.times, time.Since(due))
	}
}

func (l *OpenLoop) close() error {
	l.wg.Wait()
	var errs []error
	for _, s := range l.sessions {
		s.raw.Close()
		errs = append(errs, s.err)
	}
	return errors.Join(errs...)
}

// Stop waits for the answers that are outstanding. A lost connection or a refused write is an error.
func (l *OpenLoop) Stop() (OpenStats, error) {
	l.stop.Store(true)
	err := l.close()
	var all []time.Duration
	for _, s := range l.sessions {
		all = append(all, s.times...)
	}
	if err != nil || len(all) == 0 {
		return OpenStats{}, fmt.Errorf("open loop with %d answers: %w", len(all), err)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(q float64) time.Duration { return all[min(len(all)-1, int(q*float64(len(all))))] }
	return OpenStats{Writes: len(all), P50: at(0.5), P99: at(0.99), Longest: all[len(all)-1]}, nil
}
