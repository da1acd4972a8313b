//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"zabra/integration/harness"
)

// station is a way to set up servers, at which one or several rows are measured.
type station struct {
	name string
	run  func(*bout) error
}

// stations are visited in this order in each round.
var stations = []station{
	{atBinary, (*bout).size},
	{atStandalone, func(b *bout) error { return b.throughput(1) }},
	{atThree, func(b *bout) error { return b.throughput(3) }},
	{atSessions, (*bout).sessions},
	{atNodes, (*bout).nodes},
	{atKill, (*bout).kill},
}

// throughput starts servers once and does one row after the other on them. After a row that failed there are fresh servers.
func (b *bout) throughput(servers int) error {
	var f *field
	defer func() { f.close() }()
	seen := map[string]bool{} // kinds of work that these servers have done
	for _, r := range b.rows {
		if f == nil {
			var err error
			if f, err = startField(b.data, b.who, servers); err != nil {
				return err
			}
			clear(seen)
		}
		s := span{b.warmup(!seen[r.load.workload]), b.span.measure}
		seen[r.load.workload] = true
		raw, _, err := b.generator.closedRun(r.load, f, s)
		if err == nil {
			err = b.emit(r, record{Run: raw})
		} else {
			f.close()
			f, err = nil, b.fail(r, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sessions measures many sessions: the memory of those that do nothing, on a fresh server, then those that all watch one node.
func (b *bout) sessions() error {
	f, err := startField(b.data, b.who, 1)
	if err != nil {
		return err
	}
	defer f.close()
	for _, r := range b.rows {
		l, s := r.load, b.span
		switch r.id {
		case rowIdle:
			l.sessions, s = b.scale.sessions, span{}
			l.extra = []string{"--hold", b.scale.hold.String(), "--session-timeout", "60s"}
		case rowWatch:
			l.sessions, s.warmup = b.scale.watchers, max(s.warmup, b.jvmWarmup)
		}
		raw, run, err := b.generator.run(l, f, s)
		if err == nil && run.Errors > 0 {
			err = fmt.Errorf("%s: %d errors", l.name(), run.Errors)
		}
		if err == nil {
			err = b.emit(r, record{Run: raw})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// size is that of the binary.
func (b *bout) size() error {
	info, err := os.Stat(zabraBinary())
	if err != nil {
		return err
	}
	return b.emit(b.rows[0], record{Values: map[string]float64{"megabytes": float64(info.Size()) / bytesPerMB}})
}

// kill measures for how long nobody can write when the leader of three is killed.
func (b *bout) kill() error {
	for _, r := range b.rows {
		rec, err := record{}, error(nil)
		if r.id == rowKill {
			rec, err = b.gaps()
		} else {
			rec, err = b.killPicture(r.load)
		}
		if err == nil {
			err = b.emit(r, rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// killLoad is the number of sessions on each server that write beside the probes.
const killLoad = 3

func (b *bout) gaps() (record, error) {
	f := failover{rounds: b.scale.kills, servers: 3, tickMs: 2000, load: killLoad, ways: []string{byKill}, parent: b.data}
	outcomes, err := f.measure(b.who.kind)
	if err != nil {
		return record{}, err
	}
	survivors, gone := outcomes[0], outcomes[1]
	return record{Values: map[string]float64{
		"gap_median_ms": median(survivors.next), "gap_worst_ms": quantile(survivors.next, 1),
		"quiet_median_ms": median(survivors.quiet), "gap_gone_median_ms": median(gone.next),
	}}, nil
}

const (
	pictureRate   = 1000 // writes a second
	pictureWarmup = 2 * time.Second
	pictureKillAt = 2 * time.Second // from the beginning of the measurement
	pictureFill   = 20_000          // writes before it
	pictureLoad   = 300             // transactions, far more than preparing makes, that tell that the load has begun
	loadLook      = 20 * time.Millisecond
)

// killPicture writes at a fixed rate while the leader is killed.
func (b *bout) killPicture(l load) (record, error) {
	f, err := startField(b.data, b.who, 3)
	if err != nil {
		return record{}, err
	}
	defer f.close()
	if err := harness.Fill(f.addrs[0], 1, pictureFill); err != nil { // a JVM is to know what a write is
		return record{}, err
	}
	leader, err := f.peers.WaitLeader()
	if err != nil {
		return record{}, err
	}
	// The generator cannot ask a process about its usage that ends meanwhile.
	f.pids = nil
	stop, killed := make(chan struct{}), make(chan time.Time, 1)
	go func() {
		defer close(killed)
		if awaitLoad(f.peers.Members[leader], stop) {
			time.Sleep(pictureWarmup + pictureKillAt - time.Second*pictureLoad/pictureRate) // the moment of the picture
			f.peers.Members[leader].Kill()
			killed <- time.Now()
		}
	}()
	raw, run, err := b.generator.run(l, f, span{pictureWarmup, b.scale.pictureRun})
	close(stop)
	at, done := <-killed
	switch {
	case err != nil:
		return record{}, err
	case !done:
		return record{}, errors.New("the run ended before the leader was killed")
	}
	began := time.UnixMilli(run.BeganUnixMs)
	if since := at.Sub(began); since < 0 || since > b.scale.pictureRun {
		return record{}, fmt.Errorf("the leader was killed %v after the measurement began", since)
	}
	return record{Run: raw, Values: map[string]float64{"event_s": at.Sub(began).Seconds()}}, nil
}

// awaitLoad waits until the load of the picture has made its first writes. It returns false when it is stopped before.
func awaitLoad(leader *harness.Member, stop <-chan struct{}) bool {
	before, err := leader.Zxid()
	ticker := time.NewTicker(loadLook)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return false
		case <-ticker.C:
		}
		at, now := leader.Zxid()
		if err != nil {
			before, err = at, now
		} else if now == nil && at-before >= pictureLoad {
			return true
		}
	}
}

// fillLoad makes part of the nodes, each part below a root of its own.
func fillLoad(l load, part int, nodes int) load {
	l.extra = []string{"--root", "/filled-" + strconv.Itoa(part), "--nodes", strconv.Itoa(nodes)}
	return l
}
