package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/jute"
	"zabra/wire"
)

func TestLimitPerAddress(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.MaxClientCnxns = 3 }))
	first := s.dial() // one without a session counts too
	s.session()
	s.session()
	until(t, "three connections", func() bool { return s.Held() == 3 })
	s.refused()
	require.Equal(t, 1, s.logs.FilterMessageSnippet("Too many connections from 127.0.0.1 - max is 3").Len())
	require.NoError(t, first.Close())
	until(t, "a connection less", func() bool { return s.Held() == 2 })
	require.Contains(t, s.word("srvr"), "Connections: 3\n")
	until(t, "the word's connection is gone", func() bool { return s.Held() == 2 })
	require.Contains(t, s.word("mntr"), "zk_connection_rejected\t1\n")
}

func TestLimitInTotal(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.MaxCnxns = 2 }))
	s.session()
	s.session()
	s.refused()
	require.Equal(t, 1, s.logs.FilterMessageSnippet("Too many connections - max is 2 (maxCnxns)").Len())
}

// A connection that opens no session is closed; one that has a session is not, whatever it does.
func TestSessionlessTimeout(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.SessionlessTimeoutMs = 100 }))
	established, _ := s.session()
	established.send(getFrame(1, "/zookeeper")[:7])
	silent, half, promised := s.dial(), s.dial(), s.dial()
	half.send([]byte("ru"))
	promised.send(connectFrame(0, nil)[:20])
	for _, c := range []*wireConn{silent, half, promised} {
		c.gone()
	}
	require.Contains(t, s.word("mntr"), "zk_sessionless_connections_expired\t3\n")
	established.send(getFrame(1, "/zookeeper")[7:])
	established.reply(1, wire.CodeOK)
}

// Requests that come with the connect request, in one packet, are answered after it.
func TestRequestsBehindTheConnectRequest(t *testing.T) {
	s := startShell(t, shellConfig(t))
	var all []byte
	all = append(all, connectFrame(0, nil)...)
	const n = 2000
	for i := range n {
		all = append(all, createFrame(int32(2*i+1), fmt.Sprintf("/n%d", i), []byte("x"))...)
		all = append(all, getFrame(int32(2*i+2), fmt.Sprintf("/n%d", i))...)
	}
	c := s.dial()
	go c.Write(all) // more than the socket holds; the test reads at the same time
	require.NotZero(t, c.connected().SessionID)
	for i := range n {
		c.reply(int32(2*i+1), wire.CodeOK)
		body := c.reply(int32(2*i+2), wire.CodeOK)
		require.Equal(t, "x", string(body[4:5]))
	}
}

// A frame may come in pieces of any size.
func TestFramesInPieces(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c := s.dial()
	require.NoError(t, c.SetNoDelay(true))
	for _, b := range connectFrame(0, nil) {
		c.send([]byte{b})
	}
	require.NotZero(t, c.connected().SessionID)
	for _, b := range createFrame(1, "/a", []byte("abc")) {
		c.send([]byte{b})
	}
	c.reply(1, wire.CodeOK)
}

// The limit is on the frame. One byte more ends the connection, and the log says what it was.
func TestFrameLimit(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c, session := s.session()
	limit := s.cfg.JuteMaxBufferBytes
	c.send(createFrame(1, "/a", nil))
	c.reply(1, wire.CodeOK)
	setData := func(frameBytes int) []byte {
		overhead := len(requestFrame(2, wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Data: []byte{}, Version: -1})) - 4
		return requestFrame(2, wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Data: make([]byte, frameBytes-overhead), Version: -1})
	}
	c.send(setData(limit))
	c.reply(2, wire.CodeOK)
	c.send(setData(limit + 1)[:100]) // what comes first is enough to know
	require.Empty(t, c.rest())
	entries := s.logs.FilterMessageSnippet("jute.maxbuffer").All()
	require.Len(t, entries, 1)
	fields := entries[0].ContextMap()
	require.Equal(t, wire.OpSetData.String(), fmt.Sprint(fields["op"]))
	require.Equal(t, "/a", fields["path"])
	require.Equal(t, session.SessionID.String(), fields["session"])
	require.EqualValues(t, limit+1, fields["bytes"])
	require.EqualValues(t, limit, fields["limit"])

	again, resp := s.session(session) // the session is not harmed
	require.Equal(t, session.SessionID, resp.SessionID)
	again.send(getFrame(3, "/a"))
	again.reply(3, wire.CodeOK)
}

// A client that asks for much and reads nothing holds up nobody, and gets everything when it reads at last.
func TestSlowReader(t *testing.T) {
	s := startShell(t, shellConfig(t))
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<15) // 512 KiB
	writer, _ := s.session()
	writer.send(createFrame(1, "/big", data))
	writer.reply(1, wire.CodeOK)

	slow, _ := s.session()
	const n = 100 // 50 MiB, far more than sockets and the bound on a client's backlog hold
	for i := range n {
		slow.send(getFrame(int32(i+1), "/big"))
	}
	until(t, "the slow client's output fills the socket", func() bool { return bytes.Contains([]byte(s.word("cons")), []byte("[5]")) })
	for i := range 100 {
		writer.send(createFrame(int32(i+2), fmt.Sprintf("/w%d", i), nil))
		writer.reply(int32(i+2), wire.CodeOK)
	}
	for i := range n {
		body := slow.reply(int32(i+1), wire.CodeOK)
		d := jute.NewDecoder(body, len(body))
		require.True(t, bytes.Equal(data, d.Buffer()), "reply %d", i+1)
	}
	slow.send(requestFrame(-2, wire.OpPing, nil))
	slow.reply(-2, wire.CodeOK)
}

// A watcher that does not read is cut off at a bounded backlog, and its watch does not disturb the writer.
func TestBacklogIsBounded(t *testing.T) {
	s := startShell(t, shellConfig(t))
	watcher, _ := s.session()
	require.NoError(t, watcher.SetReadBuffer(4096))
	path := "/" + string(bytes.Repeat([]byte("p"), 60_000))
	writer, _ := s.session()
	writer.send(createFrame(1, path, nil))
	writer.reply(1, wire.CodeOK)
	watcher.send(requestFrame(1, wire.OpAddWatch, &wire.AddWatchRequest{Path: []byte(path), Mode: wire.AddWatchPersistent}))
	watcher.reply(1, wire.CodeOK)
	before := s.Stats().Connections
	const batch = 100
	xid := int32(1)
	for events := 0; s.Stats().Connections == before; events += batch {
		require.Less(t, events, 5000, "300 MB of events, and the client is still there")
		for range batch {
			xid++
			writer.send(requestFrame(xid, wire.OpSetData, &wire.SetDataRequest{Path: []byte(path), Version: -1}))
		}
		for i := range int32(batch) {
			writer.reply(xid-batch+1+i, wire.CodeOK)
		}
	}
	until(t, "the log tells of it", func() bool { return s.logs.FilterMessageSnippet("does not read").Len() == 1 })
}

// A closed session is answered, and the connection ends after the answer.
func TestCloseSession(t *testing.T) {
	s := startShell(t, shellConfig(t))
	for range 20 {
		c, _ := s.session()
		c.send(append(requestFrame(1, wire.OpCloseSession, nil), bytes.Repeat(getFrame(2, "/"), 50)...))
		c.reply(1, wire.CodeOK)
		require.Empty(t, c.rest())
	}
	until(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
}

// Connections that their clients reset leave nothing behind.
func TestClientsThatReset(t *testing.T) {
	s := startShell(t, shellConfig(t))
	for i := range 50 {
		c := s.dial()
		if i%2 == 0 {
			c.send(connectFrame(0, nil))
		}
		require.NoError(t, c.SetLinger(0))
		require.NoError(t, c.Close())
	}
	until(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
	half, _ := s.session()
	require.NoError(t, half.CloseWrite())
	_, err := half.Read(make([]byte, 1))
	require.True(t, err == io.EOF || errors.Is(err, syscall.ECONNRESET), "%v", err)
}

func TestPortIsTaken(t *testing.T) {
	s := startShell(t, shellConfig(t))
	cfg := shellConfig(t, func(cfg *conf.Config) { cfg.ClientPort = s.Addr().(*net.TCPAddr).Port })
	requireStartError(t, cfg, stagePort)
	cfg.ClientPort = 0 // nothing of the failed start is in the way
	startShell(t, cfg)
}

func TestDataDirIsTaken(t *testing.T) {
	s := startShell(t, shellConfig(t))
	requireStartError(t, shellConfig(t, func(cfg *conf.Config) { cfg.DataDir = s.cfg.DataDir }), stageDataDir)
	s.shutdown()
	startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.DataDir = s.cfg.DataDir }))
}

func TestDataDirIsMissing(t *testing.T) {
	requireStartError(t, shellConfig(t, func(cfg *conf.Config) { cfg.DatadirAutocreate = false }), stageDataDir)
	file := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	requireStartError(t, shellConfig(t, func(cfg *conf.Config) { cfg.DataDir = file }), stageDataDir)
}

func TestConfigurationIsFaulty(t *testing.T) {
	requireStartError(t, shellConfig(t, func(cfg *conf.Config) { cfg.TickTimeMs = 0 }), stageConfig)
	requireStartError(t, shellConfig(t, func(cfg *conf.Config) { cfg.DigestAuthAlg = "ROT13" }), stageConfig)
}
