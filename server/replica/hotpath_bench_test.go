package replica

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/wire"
)

// BenchmarkRequest measures whole requests, from the frame that came in to the frame that goes out, the disk left out, one
// after the other. What leaves a trace is undone: see measuredRequests.
func BenchmarkRequest(b *testing.B) {
	for _, req := range measuredRequests {
		b.Run(req.name, func(b *testing.B) {
			s := newStage(b, crowds[0], crowds[0].few)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				req.do(s)
			}
		})
	}
}

// BenchmarkStep is a step in which nothing waits.
func BenchmarkStep(b *testing.B) {
	s := newStage(b, crowds[0], crowds[0].few)
	b.ReportAllocs()
	for b.Loop() {
		if rd := s.w.r.Step(s.w.now, nil); len(rd.Flush) > 0 {
			b.Fatal(rd.Flush)
		}
	}
}

// BenchmarkWrites measures writes of 64 connections that have as many requests each in flight, which share steps and a
// sync. An operation is one write of each that is in flight.
func BenchmarkWrites(b *testing.B) {
	const connections = 64
	data := make([]byte, 100)
	writes := []struct {
		name    string
		request func(conn int) []byte
	}{
		{"setData", func(conn int) []byte {
			return benchRequest(wire.OpSetData, &wire.SetDataRequest{Path: fmt.Appendf(nil, "/p%d", conn), Data: data, Version: -1})
		}},
		{"create", func(conn int) []byte {
			return benchRequest(wire.OpCreate, &wire.CreateRequest{Path: fmt.Appendf(nil, "/p%d/n-", conn), Data: data, ACL: wire.OpenACL, Flags: wire.FlagSequential})
		}},
		{"multi=10", func(conn int) []byte {
			var ops multi
			for range 10 {
				ops = append(ops, wire.MultiOp{Op: wire.OpSetData, Path: fmt.Appendf(nil, "/p%d", conn), Data: data, Version: -1})
			}
			return benchRequest(wire.OpMulti, ops)
		}},
	}
	for _, write := range writes {
		for _, each := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/outstanding=%d", write.name, each), func(b *testing.B) {
				s := newStage(b, crowds[0], crowds[0].few)
				var clients [connections]*client
				var requests [connections][]byte
				for i := range clients {
					clients[i] = s.w.connectFor(stageTimeoutMs)
					clients[i].send(wire.OpCreate, create(fmt.Sprintf("/p%d", i)))
					s.settle()
					clients[i].buf, _ = clients[i].c.Output(nil)
					requests[i] = write.request(i)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for b.Loop() {
					for i, cl := range clients {
						for range each {
							if v, err := cl.c.Receive(requests[i], s.w.now); v != Continue || err != nil {
								b.Fatal(v, err)
							}
						}
					}
					s.settle()
					for _, cl := range clients {
						if cl.buf, _ = cl.c.Output(cl.buf); len(cl.buf) == 0 {
							b.Fatal("no answers")
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(connections*each), "ns/write")
				require.Zero(b, s.w.r.Stats().DigestMismatches)
			})
		}
	}
}

func benchRequest(op wire.Op, r wire.Record) []byte {
	var e jute.Encoder
	(&wire.RequestHeader{Xid: 7, Op: op}).Encode(&e)
	r.Encode(&e)
	return e.Bytes()
}

// BenchmarkGetParallel reads on as many connections as processors (-cpu 1,2,4), each with its own goroutine.
func BenchmarkGetParallel(b *testing.B) {
	s := newStage(b, crowds[0], crowds[0].few)
	connect := make(chan *client, 64)
	for range cap(connect) {
		connect <- s.w.connectFor(stageTimeoutMs)
	}
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c := (<-connect).c
		frame := s.get[int(next.Add(1))%stageTargets]
		spare := make([]byte, 0, 1<<12)
		for pb.Next() {
			if v, err := c.Receive(frame, s.w.now); v != Continue || err != nil {
				panic(fmt.Sprint(v, err))
			}
			spare, _ = c.Output(spare)
		}
	})
}

// BenchmarkOpen is a connection that ends before its handshake.
func BenchmarkOpen(b *testing.B) {
	s := newStage(b, crowds[0], crowds[0].few)
	addr := netip.MustParseAddrPort("127.0.0.1:4711")
	b.ReportAllocs()
	for b.Loop() {
		s.w.r.Open(nil, addr, s.w.now).Closed()
		s.settle()
	}
}
