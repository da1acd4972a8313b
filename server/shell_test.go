package server_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/server"
	"zabra/wire"
	"zabra/zab/zxid"
)

// shellWaitMax bounds what a test of the shell waits for, far above what is ever needed.
const shellWaitMax = 30 * time.Second

// shell is a server of which a test knows everything.
type shell struct {
	*server.Server
	t      testing.TB
	cfg    *conf.Config
	logs   *observer.ObservedLogs
	disk   *vfs.Fault
	served chan error
}

// shellConfig is a configuration on a fresh directory and a free port.
func shellConfig(t testing.TB, changes ...func(*conf.Config)) *conf.Config {
	cfg := conf.Default()
	cfg.DataDir, cfg.ClientPort, cfg.ClientPortAddress = t.TempDir(), 0, "127.0.0.1"
	cfg.TickTimeMs, cfg.MinSessionTimeoutMs, cfg.MaxSessionTimeoutMs = 500, 1000, 60000
	cfg.AutopurgePurgeIntervalHours, cfg.FourLetterWords, cfg.MaxClientCnxns = 0, []string{"*"}, 0
	cfg.Admin.Enabled = false
	for _, change := range changes {
		change(cfg)
	}
	return cfg
}

// startShell starts a server, which is closed with the test.
func startShell(t testing.TB, cfg *conf.Config) *shell {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	s := &shell{t: t, cfg: cfg, logs: logs, disk: vfs.NewFault(vfs.OS{}), served: make(chan error, 1)}
	var err error
	s.Server, err = server.New(cfg, server.Options{Log: zap.New(core), FS: s.disk, Version: "test"})
	require.NoError(t, err)
	go func() { s.served <- s.Serve() }()
	t.Cleanup(func() { s.Close() })
	return s
}

// ended waits for Serve to return.
func (s *shell) ended() error {
	s.t.Helper()
	select {
	case err := <-s.served:
		return err
	case <-time.After(shellWaitMax):
		s.t.Fatal("Serve does not return")
		return nil
	}
}

func (s *shell) shutdown() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
	defer cancel()
	require.NoError(s.t, s.Shutdown(ctx))
	require.ErrorIs(s.t, s.ended(), server.ErrServerClosed)
}

// wireConn is a connection on which the test says every byte.
type wireConn struct {
	*net.TCPConn
	t testing.TB
}

func (s *shell) dial() *wireConn {
	s.t.Helper()
	c, err := net.DialTimeout("tcp", s.Addr().String(), shellWaitMax)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(shellWaitMax)))
	return &wireConn{c.(*net.TCPConn), s.t}
}

func (c *wireConn) send(b []byte) {
	c.t.Helper()
	_, err := c.Write(b)
	require.NoError(c.t, err)
}

// refused requires that the server ends a new connection without a byte. It may do so before the client knows that it is
// connected.
func (s *shell) refused() {
	s.t.Helper()
	c, err := net.DialTimeout("tcp", s.Addr().String(), shellWaitMax)
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	require.NoError(s.t, err)
	defer c.Close()
	require.NoError(s.t, c.SetDeadline(time.Now().Add(shellWaitMax)))
	(&wireConn{c.(*net.TCPConn), s.t}).gone()
}

// rest reads until the server ends the connection, which must be in an orderly way.
func (c *wireConn) rest() string {
	c.t.Helper()
	b, err := io.ReadAll(c)
	require.NoError(c.t, err)
	return string(b)
}

// gone requires that the connection ends, in whatever way, without a byte.
func (c *wireConn) gone() {
	c.t.Helper()
	b, err := io.ReadAll(c)
	if netErr, ok := err.(net.Error); ok && netErr.Timeout() {
		c.t.Fatal("the connection does not end")
	}
	require.Empty(c.t, b)
}

func (c *wireConn) frame() []byte {
	c.t.Helper()
	var head [4]byte
	_, err := io.ReadFull(c, head[:])
	require.NoError(c.t, err)
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err = io.ReadFull(c, body)
	require.NoError(c.t, err)
	return body
}

// reply reads the next reply and requires its xid and code.
func (c *wireConn) reply(xid int32, code wire.Code) []byte {
	c.t.Helper()
	d := jute.NewDecoder(c.frame(), jute.FieldBytesMaxDefault)
	var h wire.ReplyHeader
	h.Decode(&d)
	require.NoError(c.t, d.Err())
	require.Equal(c.t, xid, h.Xid)
	require.Equal(c.t, code, h.Err)
	return d.Rest()
}

func connectFrame(session zxid.SessionID, password []byte) []byte {
	var e jute.Encoder
	start := wire.BeginFrame(&e)
	req := wire.ConnectRequest{TimeoutMs: 30000, SessionID: session, Password: password, HasReadOnly: true}
	req.Encode(&e)
	wire.EndFrame(&e, start)
	return e.Bytes()
}

func requestFrame(xid int32, op wire.Op, r wire.Record) []byte {
	var e jute.Encoder
	wire.AppendRequest(&e, wire.RequestHeader{Xid: xid, Op: op}, r)
	return e.Bytes()
}

func createFrame(xid int32, path string, data []byte) []byte {
	return requestFrame(xid, wire.OpCreate, &wire.CreateRequest{Path: []byte(path), Data: data, ACL: wire.OpenACL})
}

func getFrame(xid int32, path string) []byte {
	return requestFrame(xid, wire.OpGetData, &wire.PathWatchRequest{Path: []byte(path)})
}

// session opens a session or takes one up again.
func (s *shell) session(old ...wire.ConnectResponse) (*wireConn, wire.ConnectResponse) {
	s.t.Helper()
	c := s.dial()
	var ask wire.ConnectResponse
	if len(old) > 0 {
		ask = old[0]
	}
	c.send(connectFrame(ask.SessionID, ask.Password))
	return c, c.connected()
}

func (c *wireConn) connected() wire.ConnectResponse {
	c.t.Helper()
	d := jute.NewDecoder(c.frame(), jute.FieldBytesMaxDefault)
	var resp wire.ConnectResponse
	resp.Decode(&d)
	require.NoError(c.t, d.Err())
	resp.Password = append([]byte(nil), resp.Password...)
	return resp
}

// word asks for a four-letter word.
func (s *shell) word(word string) string {
	s.t.Helper()
	c := s.dial()
	c.send([]byte(word))
	return c.rest()
}

// until waits for a condition that nothing tells of.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(shellWaitMax); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen within %v", what, shellWaitMax)
		}
	}
}

// bytesReceived reads the counter of bytes from clients.
func (s *shell) bytesReceived() int64 {
	s.t.Helper()
	var n int64
	for line := range strings.Lines(s.word("mntr")) {
		if _, err := fmt.Sscanf(line, "zk_bytes_received_count\t%d\n", &n); err == nil {
			return n
		}
	}
	s.t.Fatal("mntr has no zk_bytes_received_count")
	return 0
}
