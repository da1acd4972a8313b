package server_test

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/wire"
)

// idleClients are sockets without a goroutine, a buffer or anything else that would count as the server's memory.
type idleClients []int

// dialIdle opens n connections with sessions, and sends as many requests on each.
func dialIdle(t testing.TB, s *shell, n, requests int) idleClients {
	t.Helper()
	addr := s.Addr().(*net.TCPAddr)
	sa := &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
	clients := make(idleClients, n)
	for i := range clients {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, syscall.Connect(fd, sa))
		clients[i] = fd
		clients.send(t, i, connectFrame(0, nil))
	}
	t.Cleanup(clients.close)
	for i := range clients {
		clients.receive(t, i)
	}
	get := getFrame(1, "/zookeeper")
	for range requests {
		for i := range clients {
			clients.send(t, i, get)
		}
		for i := range clients {
			clients.receive(t, i)
		}
	}
	return clients
}

// close may be called twice.
func (c idleClients) close() {
	for i, fd := range c {
		if fd >= 0 {
			syscall.Close(fd)
			c[i] = -1
		}
	}
}

func (c idleClients) send(t testing.TB, i int, b []byte) {
	n, err := syscall.Write(c[i], b)
	require.NoError(t, err)
	require.Equal(t, len(b), n)
}

func (c idleClients) receive(t testing.TB, i int) {
	var b [512]byte
	for have, want := 0, 4; have < want; {
		n, err := syscall.Read(c[i], b[have:])
		require.NoError(t, err)
		require.Positive(t, n)
		if have += n; have >= 4 {
			want = 4 + int(binary.BigEndian.Uint32(b[:]))
		}
	}
}

// memoryInUse returns the bytes of heap objects and of stacks, after what is unused was collected.
func memoryInUse() (heap, stacks uint64) {
	for range 3 { // pools need two rounds, stacks shrink by half in each
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}

// idleCost returns what one of n idle connections costs.
func idleCost(t testing.TB, n int) (heap, stack float64) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.MaxSessionTimeoutMs = 600_000 }))
	dialIdle(t, s, 10, 1) // what every server needs
	heapBefore, stacksBefore := memoryInUse()
	clients := dialIdle(t, s, n, 3)
	heapAfter, stacksAfter := memoryInUse()
	require.Equal(t, n+10, s.Stats().Connections)
	clients.close()
	require.NoError(t, s.Close())
	return float64(heapAfter-heapBefore) / float64(n), float64(stacksAfter-stacksBefore) / float64(n)
}

func TestIdleConnectionIsCheap(t *testing.T) {
	heap, stack := idleCost(t, 1000)
	require.Less(t, heap+stack, float64(idleBytesMax), "heap %.0f, stack %.0f", heap, stack)
}

func BenchmarkIdleConnection(b *testing.B) {
	for b.Loop() {
		heap, stack := idleCost(b, 5000)
		b.ReportMetric(heap, "heapB/conn")
		b.ReportMetric(stack, "stackB/conn")
	}
}

// Announced lengths cost nothing, even on many connections at once.
func TestAnnouncedLengthsCostNothing(t *testing.T) {
	const n, bytesMax = 500, 16 << 10
	s := startShell(t, shellConfig(t))
	clients := dialIdle(t, s, n, 1)
	before, _ := memoryInUse()
	var frame [4 + 1000]byte
	binary.BigEndian.PutUint32(frame[:], uint32(s.cfg.JuteMaxBufferBytes))
	for i := range clients {
		clients.send(t, i, frame[:])
	}
	until(t, "everything is received", func() bool { return s.bytesReceived() >= int64(n*len(frame)) })
	after, _ := memoryInUse()
	require.Less(t, float64(after)-float64(before), float64(n*bytesMax))
}

func BenchmarkGetData(b *testing.B) {
	s := startShell(b, shellConfig(b))
	c, _ := s.session()
	c.send(createFrame(1, "/a", make([]byte, 100)))
	c.reply(1, wire.CodeOK)
	get := getFrame(2, "/a")
	b.ReportAllocs()
	var reply [4096]byte
	for b.Loop() {
		c.send(get)
		_, err := c.Read(reply[:])
		require.NoError(b, err)
	}
}

// BenchmarkPipelinedGetData keeps a connection's requests coming in packets of many.
func BenchmarkPipelinedGetData(b *testing.B) {
	s := startShell(b, shellConfig(b))
	c, _ := s.session()
	c.send(createFrame(1, "/a", make([]byte, 100)))
	c.reply(1, wire.CodeOK)
	const perPacket = 100
	get := getFrame(2, "/a")
	var packet []byte
	for range perPacket {
		packet = append(packet, get...)
	}
	c.send(get)
	replyBytes := 4 + len(c.frame())
	b.ReportAllocs()
	replies := make([]byte, perPacket*replyBytes)
	for b.Loop() {
		c.send(packet)
		_, err := io.ReadFull(c, replies)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.N)*perPacket/b.Elapsed().Seconds(), "reads/s")
}

// BenchmarkSetData measures writes of many clients at once, which share syncs.
func BenchmarkSetData(b *testing.B) {
	s := startShell(b, shellConfig(b))
	const clients = 64
	first, _ := s.session()
	first.send(createFrame(1, "/a", nil))
	first.reply(1, wire.CodeOK)
	conns := make([]*wireConn, clients)
	for i := range conns {
		conns[i], _ = s.session()
	}
	set := requestFrame(2, wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Data: make([]byte, 100), Version: -1})
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range conns {
			c.send(set)
		}
		for _, c := range conns {
			c.reply(2, wire.CodeOK)
		}
	}
	b.ReportMetric(float64(b.N)*clients/b.Elapsed().Seconds(), "writes/s")
}
