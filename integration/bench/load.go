//go:build linux

package main

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"zabra/integration/harness"
)

const (
	nodesMax    = 1024            // nodes that the load is spread over
	sessionMs   = 60000           // longer than any run
	replyMax    = 2 * time.Minute // the longest wait for one reply
	xidPrepared = 1
)

// result is what one run measured.
type result struct {
	op        string
	ops       int64
	opsPerSec float64
	p50, p99  time.Duration
	usage     harness.Usage // of the server; its CPU time is that of the measurement alone
}

func (r result) String() string {
	return fmt.Sprintf("op=%s ops=%d ops_per_s=%.0f p50=%v p99=%v server_rss_mib=%.1f server_cpu=%v", r.op, r.ops, r.opsPerSec,
		r.p50.Round(time.Microsecond), r.p99.Round(time.Microsecond), float64(r.usage.RSSBytes)/(1<<20), r.usage.CPU)
}

// run loads the server and measures once it is warm.
func (l *load) run() (result, error) {
	nodes := min(nodesMax, l.sessions*l.outstanding)
	data := make([]byte, l.size)
	for i := range data {
		data[i] = byte('a' + i%26)
	}
	paths, err := prepare(l.addrs[0], nodes, data)
	if err != nil {
		return result{}, err
	}
	for _, addr := range l.addrs[1:] {
		if err := catchUp(addr); err != nil {
			return result{}, err
		}
	}
	var measuring, stop atomic.Bool
	workers := make([]*worker, l.sessions)
	for i := range workers {
		raw, err := harness.DialRaw(l.addrs[i%len(l.addrs)], sessionMs, 0, [16]byte{})
		if err != nil {
			return result{}, err
		}
		workers[i] = &worker{load: l, raw: raw, paths: paths, data: data, rnd: rand.New(rand.NewPCG(1, uint64(i))),
			sent: make([]time.Time, l.outstanding), measuring: &measuring, stop: &stop}
		defer raw.Close()
	}
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(w.run)
	}
	time.Sleep(l.warmup)
	before := serverUsage(l.pids)
	measuring.Store(true)
	start := time.Now()
	time.Sleep(l.duration)
	measuring.Store(false)
	elapsed := time.Since(start)
	after := serverUsage(l.pids)
	stop.Store(true)
	wg.Wait()

	var all histogram
	for _, w := range workers {
		if w.err != nil {
			return result{}, w.err
		}
		all.add(&w.latencies)
	}
	after.CPU -= before.CPU
	return result{op: l.op, ops: all.count, opsPerSec: float64(all.count) / elapsed.Seconds(), p50: all.quantile(0.50), p99: all.quantile(0.99),
		usage: after}, nil
}

// serverUsage adds up what the servers use.
func serverUsage(pids []int) (sum harness.Usage) {
	for _, pid := range pids {
		usage, _ := harness.ProcessUsage(pid) // zeros in the output say that the process could not be read
		sum.RSSBytes += usage.RSSBytes
		sum.CPU += usage.CPU
	}
	return sum
}

// prepare makes the nodes that the load reads and writes.
func prepare(addr string, nodes int, data []byte) ([]string, error) {
	raw, err := harness.DialRaw(addr, sessionMs, 0, [16]byte{})
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	paths := make([]string, nodes)
	frames := harness.AppendCreate(nil, xidPrepared, "/bench", nil, 0)
	for i := range paths {
		paths[i] = fmt.Sprintf("/bench/node-%06d", i)
		frames = harness.AppendCreate(frames, xidPrepared, paths[i], data, 0)
	}
	if err := raw.Write(frames); err != nil {
		return nil, err
	}
	for range nodes + 1 {
		reply, err := raw.ReadReply()
		if err != nil {
			return nil, err
		}
		if reply.Code != harness.CodeOK && reply.Code != harness.CodeNodeExists {
			return nil, fmt.Errorf("create: code %d", reply.Code)
		}
	}
	reply, err := raw.Call(harness.AppendClose(nil, xidPrepared))
	if err != nil || reply.Code != harness.CodeOK {
		return nil, fmt.Errorf("close: code %d, %w", reply.Code, err)
	}
	return paths, nil
}

// catchUp waits until a server knows all that was written on the others.
func catchUp(addr string) error {
	c := harness.Client{Addrs: []string{addr}, TimeoutMs: sessionMs}
	if err := c.Connect(replyMax); err != nil {
		return err
	}
	defer c.End(replyMax)
	xid := c.NextXid()
	reply, err := c.Do(xid, harness.AppendSync(nil, xid, "/bench"), replyMax)
	if err == nil && reply.Code != harness.CodeOK {
		err = fmt.Errorf("sync: code %d", reply.Code)
	}
	return err
}

// worker is one session that keeps its requests outstanding. It refills with one write what it has read from one packet.
type worker struct {
	*load
	raw             *harness.Raw
	paths           []string
	data            []byte
	rnd             *rand.Rand
	sent            []time.Time // by xid modulo the number outstanding
	measuring, stop *atomic.Bool
	latencies       histogram
	err             error
}

func (w *worker) run() {
	w.raw.SetReadDeadline(time.Now().Add(w.warmup + w.duration + replyMax))
	next, frames := w.refill(0, w.outstanding, nil)
	if w.err = w.raw.Write(frames); w.err != nil {
		return
	}
	for want := int32(0); want < next; {
		batch := 0
		for batch == 0 || (want < next && w.raw.Buffered()) {
			reply, err := w.raw.ReadReply()
			if err != nil || reply.Xid != want || reply.Code != harness.CodeOK {
				w.err = fmt.Errorf("%s: reply xid %d code %d, want xid %d: %w", w.op, reply.Xid, reply.Code, want, err)
				return
			}
			if w.measuring.Load() {
				w.latencies.record(time.Since(w.sent[int(want)%w.outstanding]))
			}
			want++
			batch++
		}
		if w.stop.Load() {
			continue // only what is outstanding is still read
		}
		next, frames = w.refill(next, batch, frames[:0])
		if w.err = w.raw.Write(frames); w.err != nil {
			return
		}
	}
}

func (w *worker) refill(xid int32, n int, frames []byte) (int32, []byte) {
	now := time.Now()
	for range n {
		path := w.paths[w.rnd.IntN(len(w.paths))]
		if w.op == "set" {
			frames = harness.AppendSet(frames, xid, path, w.data)
		} else {
			frames = harness.AppendGet(frames, xid, path)
		}
		w.sent[int(xid)%w.outstanding] = now
		xid++
	}
	return xid, frames
}

// histogram counts durations in buckets of 1/16 of a power of two, about 6 % wide.
type histogram struct {
	buckets [64 * 16]int64
	count   int64
}

func (h *histogram) record(d time.Duration) {
	h.buckets[bucket(uint64(max(d, 1)))]++
	h.count++
}

func bucket(ns uint64) int {
	exponent := bits.Len64(ns) - 1
	if exponent < 4 {
		return int(ns)
	}
	return exponent*16 + int(ns>>(exponent-4))&15
}

// lowest returns the smallest duration of a bucket.
func lowest(bucket int) time.Duration {
	exponent := bucket / 16
	if exponent < 4 {
		return time.Duration(bucket)
	}
	return time.Duration(uint64(16+bucket%16) << (exponent - 4))
}

func (h *histogram) add(o *histogram) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.count += o.count
}

func (h *histogram) quantile(q float64) time.Duration {
	left := int64(q * float64(h.count))
	for i, n := range h.buckets {
		if left -= n; left < 0 {
			return lowest(i)
		}
	}
	return 0
}

// idle opens sessions that do nothing and returns by how much the server's memory grew for each.
func idle(addr string, pid, sessions int) (bytesPerConnection int64, err error) {
	before, err := harness.ProcessUsage(pid)
	if err != nil {
		return 0, err
	}
	conns := make([]*harness.Raw, 0, sessions)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range sessions {
		c, err := harness.DialRaw(addr, sessionMs, 0, [16]byte{})
		if err != nil {
			return 0, fmt.Errorf("session %d: %w", len(conns), err)
		}
		conns = append(conns, c)
	}
	for _, c := range conns { // each has been served at least once
		if reply, err := c.Call(harness.AppendPing(nil)); err != nil || reply.Xid != -2 {
			return 0, fmt.Errorf("ping: xid %d, %w", reply.Xid, err)
		}
	}
	after, err := harness.ProcessUsage(pid)
	if err != nil {
		return 0, err
	}
	return (after.RSSBytes - before.RSSBytes) / int64(sessions), nil
}
