package server_test

import (
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

const (
	// parallelNodes is how many nodes the connections of a parallel benchmark read, a different one each.
	parallelNodes = 64
	// parallelConns is how many connections there are for each processor.
	parallelConns = 8
)

// pipeline is a connection of a benchmark: a packet of requests is sent, and all answers are awaited.
type pipeline struct {
	*wireConn
	packet, replies []byte
}

// newPipeline prepares a packet of so many of each of the requests.
func (s *shell) newPipeline(each int, requests ...[]byte) *pipeline {
	c, _ := s.session()
	require.NoError(s.t, c.SetDeadline(time.Time{}))
	p := &pipeline{wireConn: c}
	size := 0
	for _, r := range requests {
		c.send(r)
		n := 4 + len(c.frame())
		for range each {
			p.packet = append(p.packet, r...)
			size += n
		}
	}
	p.replies = make([]byte, size)
	return p
}

// exchange asks nothing of the testing package unless it fails: connections would wait for that in turn.
func (p *pipeline) exchange() {
	_, err := p.Write(p.packet)
	if err == nil {
		_, err = io.ReadFull(p, p.replies)
	}
	if err != nil {
		p.t.Error(err)
	}
}

// startParallel starts a server with nodes to read and write.
func startParallel(b *testing.B) *shell {
	s := startShell(b, shellConfig(b))
	c, _ := s.session()
	for i := range parallelNodes {
		c.send(createFrame(1, fmt.Sprintf("/n%d", i), make([]byte, 100)))
		c.reply(1, wire.CodeOK)
	}
	return s
}

// runParallel lets connections exchange packets, and reports requests per second. An operation is a packet.
func runParallel(b *testing.B, perPacket int, connect func(i int) *pipeline) {
	pipelines := make(chan *pipeline, parallelConns*runtime.GOMAXPROCS(0))
	for i := range cap(pipelines) {
		pipelines <- connect(i % parallelNodes)
	}
	b.SetParallelism(parallelConns)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		p := <-pipelines
		for pb.Next() {
			p.exchange()
		}
	})
	b.ReportMetric(float64(b.N)*float64(perPacket)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkGetParallel reads over many connections at once (-cpu 1,2,4): reads must not wait for one another.
func BenchmarkGetParallel(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("outstanding=%d", n), func(b *testing.B) {
			s := startParallel(b)
			runParallel(b, n, func(i int) *pipeline { return s.newPipeline(n, getFrame(2, fmt.Sprintf("/n%d", i))) })
		})
	}
}

// BenchmarkSetParallel writes over many connections at once: writes share steps and syncs.
func BenchmarkSetParallel(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("outstanding=%d", n), func(b *testing.B) {
			s := startParallel(b)
			runParallel(b, n, func(i int) *pipeline { return s.newPipeline(n, setFrame(2, fmt.Sprintf("/n%d", i))) })
		})
	}
}

// BenchmarkMixedParallel reads on some connections while others write.
func BenchmarkMixedParallel(b *testing.B) {
	const n = 16
	for _, writers := range []int{2, 8} {
		b.Run(fmt.Sprintf("outstanding=%d/writers=1in%d", n, writers), func(b *testing.B) {
			s := startParallel(b)
			runParallel(b, n, func(i int) *pipeline {
				path := fmt.Sprintf("/n%d", i)
				if i%writers == 0 {
					return s.newPipeline(n, setFrame(2, path))
				}
				return s.newPipeline(n, getFrame(2, path))
			})
		})
	}
}

// BenchmarkConnect opens sessions and closes them, over many connections at once.
func BenchmarkConnect(b *testing.B) {
	s := startParallel(b)
	b.SetParallelism(parallelConns)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c, _ := s.session()
			c.send(requestFrame(1, wire.OpCloseSession, nil))
			c.reply(1, wire.CodeOK)
			require.Empty(b, c.rest())
			require.NoError(b, c.Close())
		}
	})
}

func setFrame(xid int32, path string) []byte {
	return requestFrame(xid, wire.OpSetData, &wire.SetDataRequest{Path: []byte(path), Data: make([]byte, 100), Version: -1})
}
