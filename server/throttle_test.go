package server_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/wire"
)

// TestSessionThrottle: while the bucket is empty, who asks for a session is sent away and told of once; sessions that are there
// stay, and a reload opens the way.
func TestSessionThrottle(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) {
		cfg.Throttle.Sessions.Tokens, cfg.Throttle.Sessions.FillMs = 2, 1_000_000_000
	}))
	first, session := s.session()
	second, _ := s.session()
	for range 3 {
		late := s.dial()
		late.send(connectFrame(0, nil))
		late.gone()
	}
	again := s.dial()
	again.send(connectFrame(session.SessionID, session.Password))
	again.gone()
	for i, c := range []*wireConn{first, second} {
		c.send(getFrame(int32(i), "/zookeeper"))
		c.reply(int32(i), wire.CodeOK)
	}
	mntr := s.word("mntr")
	for _, line := range []string{"zk_connection_drop_count\t4\n", "zk_connection_rejected\t4\n", "zk_connection_drop_probability\t0.0\n",
		"zk_max_connection_token_deficit\t2\n"} {
		require.Contains(t, mntr, line)
	}
	require.Equal(t, 1, s.logs.FilterMessageSnippet("more sessions are asked for than connection_throttle_tokens allows").Len())
	s.reconfigure(func(cfg *conf.Config) { cfg.Throttle.Sessions.Tokens = 0 })
	s.session()
}

// TestLargeFrames: one that does not fit into the budget ends its connection when its length is known, before it is there. What is
// being read is given back when it ends.
func TestLargeFrames(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) {
		cfg.Throttle.LargeRequestBytes, cfg.Throttle.LargeRequestsBytesMax = 100_000, 150_000
	}))
	frame := createFrame(1, "/large", bytes.Repeat([]byte{1}, 120_000))
	slow, _ := s.session()
	before := s.bytesReceived()
	slow.send(frame[:90_000])
	until(t, "a large part of it has come", func() bool { return s.bytesReceived() >= before+90_000 })
	other, _ := s.session()
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(frame)-4))
	other.send(head[:])
	other.gone()
	require.Contains(t, s.word("mntr"), "zk_large_requests_rejected\t1\n")
	require.Equal(t, 1, s.logs.FilterMessageSnippet("the large ones in process would take more than largeRequestMaxBytes").Len())
	slow.send(frame[90_000:])
	slow.reply(1, wire.CodeOK)

	// A connection that ends in the middle of a large frame gives its part back.
	slow.send(frame[:90_000])
	until(t, "a large part of it has come", func() bool { return s.bytesReceived() >= before+int64(len(frame))+90_000 })
	require.NoError(t, slow.Close())
	until(t, "it is gone", func() bool { return s.Stats().Connections == 0 })
	third, _ := s.session()
	third.send(frame)
	third.reply(1, wire.CodeNodeExists)
	third.send(createFrame(2, "/small", nil))
	third.reply(2, wire.CodeOK)
}

// TestStrangersHaveNothingOfTheBudget: who has announced a large frame and has no session keeps no client from writing.
func TestStrangersHaveNothingOfTheBudget(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) {
		cfg.Throttle.LargeRequestBytes, cfg.Throttle.LargeRequestsBytesMax = 100_000, 150_000
	}))
	frame := createFrame(1, "/large", bytes.Repeat([]byte{1}, 120_000))
	stranger := s.dial()
	before := s.bytesReceived()
	stranger.send(frame[:60_000])
	until(t, "a part of it has come", func() bool { return s.bytesReceived() >= before+60_000 })
	c, _ := s.session()
	c.send(frame)
	c.reply(1, wire.CodeOK)
}
