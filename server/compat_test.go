package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
)

// The compatibility tests state what stock clients rely on, each found by a client that failed on a server that was not
// quite ZooKeeper. The numbers in their names are those of the list of cases.

// compatTick is the server's tick, compatTimeoutMin and compatTimeoutMax the session timeouts that follow from it.
const (
	compatTick       = 500 * time.Millisecond
	compatTimeoutMin = 2 * compatTick
	compatTimeoutMax = 20 * compatTick
	// compatWaitMax bounds what a test waits for, far above what is ever needed.
	compatWaitMax = 60 * time.Second
)

func compatContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), compatWaitMax)
	t.Cleanup(cancel)
	return ctx
}

// client connects and makes the connection end with the test.
func (s *compat) client(opts ...client.Options) *client.Client {
	s.t.Helper()
	c, err := client.Dial(compatContext(s.t), s.addr, append(opts, client.Options{})[0])
	require.NoError(s.t, err)
	s.t.Cleanup(c.Abandon)
	return c
}

// closing is client for a session that is closed in the end, so that it leaves nothing behind on a shared server.
func (s *compat) closing(opts ...client.Options) *client.Client {
	c := s.client(opts...)
	s.t.Cleanup(func() { c.Close(compatContext(s.t)) })
	return c
}

// again takes up a session on a new connection.
func (s *compat) again(c *client.Client) (*client.Client, error) {
	again, err := client.Dial(compatContext(s.t), s.addr, client.Options{
		Session: c.Session(), Password: c.Password(), Timeout: c.Timeout(), LastZxidSeen: c.LastZxid(),
	})
	if err == nil {
		s.t.Cleanup(again.Abandon)
	}
	return again, err
}

// base makes a node for the test to play under, with a name that a shared server has not seen yet.
func (s *compat) base(c *client.Client) string {
	s.t.Helper()
	name := strings.NewReplacer("/", "-").Replace(s.t.Name())
	path := "/" + name + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	s.create(c, path, nil, wire.FlagPersistent)
	return path
}

func (s *compat) create(c *client.Client, path string, data []byte, flags int32) string {
	s.t.Helper()
	got, err := c.Create(compatContext(s.t), path, data, wire.OpenACL, flags)
	require.NoError(s.t, err, path)
	return got
}

func (s *compat) delete(c *client.Client, path string) {
	s.t.Helper()
	require.NoError(s.t, c.Delete(compatContext(s.t), path, -1), path)
}

func (s *compat) setData(c *client.Client, path, data string) wire.Stat {
	s.t.Helper()
	stat, err := c.SetData(compatContext(s.t), path, []byte(data), -1)
	require.NoError(s.t, err, path)
	return stat
}

func (s *compat) stat(c *client.Client, path string) wire.Stat {
	s.t.Helper()
	stat, err := c.Exists(compatContext(s.t), path, false)
	require.NoError(s.t, err, path)
	return stat
}

// word asks for a four-letter word.
func (s *compat) word(word string) string {
	s.t.Helper()
	answer, err := client.Word(compatContext(s.t), s.addr, word)
	require.NoError(s.t, err)
	return answer
}

// mntr returns one value of the word mntr.
func (s *compat) mntr(key string) int64 {
	s.t.Helper()
	for line := range strings.Lines(s.word("mntr")) {
		if value, ok := strings.CutPrefix(line, key+"\t"); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(s.t, err, line)
			return int64(n)
		}
	}
	s.t.Fatalf("mntr has no %s", key)
	return 0
}

// alive requires that the server still serves.
func (s *compat) alive() {
	s.t.Helper()
	c := s.client()
	_, err := c.GetChildren(compatContext(s.t), "/", false)
	require.NoError(s.t, err)
	require.NoError(s.t, c.Close(compatContext(s.t)))
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(compatWaitMax); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen within %v", what, compatWaitMax)
		}
	}
}

// event is a watch event without its zxid.
type event struct {
	Type wire.EventType
	Path string
}

// nextEvent waits for an event.
func nextEvent(t testing.TB, c *client.Client) client.Event {
	t.Helper()
	select {
	case e := <-c.Events():
		require.Equal(t, int32(wire.StateSyncConnected), e.State)
		return e
	case <-c.Done():
		t.Fatalf("no event, the connection is lost: %v", c.Err())
	case <-time.After(compatWaitMax):
		t.Fatalf("no event")
	}
	panic("not reached")
}

// events returns all events of changes that have been acknowledged to anybody: they come before the answer to a ping.
func events(t testing.TB, c *client.Client) []event {
	t.Helper()
	require.NoError(t, c.Ping(compatContext(t)))
	got := []event{}
	for {
		select {
		case e := <-c.Events():
			require.Equal(t, int32(wire.StateSyncConnected), e.State)
			got = append(got, event{e.Type, e.Path})
		default:
			return got
		}
	}
}

// raw is a connection on which the test says every word itself.
type raw struct {
	*client.Conn
	t testing.TB
}

// raw connects without a handshake.
func (s *compat) raw() *raw {
	s.t.Helper()
	c, err := client.DialConn(compatContext(s.t), s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(compatWaitMax)))
	return &raw{c, s.t}
}

// session connects and gets a new session with the longest timeout.
func (s *compat) session() *raw {
	s.t.Helper()
	r := s.raw()
	resp := r.handshake(&wire.ConnectRequest{TimeoutMs: 1 << 30, HasReadOnly: true})
	require.NotZero(s.t, resp.SessionID)
	return r
}

func (r *raw) handshake(req *wire.ConnectRequest) wire.ConnectResponse {
	r.t.Helper()
	resp, err := r.Handshake(req)
	require.NoError(r.t, err)
	return resp
}

func (r *raw) send(xid int32, op wire.Op, record wire.Record) {
	r.t.Helper()
	require.NoError(r.t, r.WriteRequest(xid, op, record))
}

// sendBytes sends a request with a body that need not be a record.
func (r *raw) sendBytes(xid int32, op wire.Op, body []byte) {
	r.t.Helper()
	var e jute.Encoder
	h := wire.RequestHeader{Xid: xid, Op: op}
	h.Encode(&e)
	e.Raw(body)
	require.NoError(r.t, r.WriteFrame(e.Bytes()))
}

func (r *raw) reply() (wire.ReplyHeader, []byte) {
	r.t.Helper()
	h, body, err := r.ReadReply()
	require.NoError(r.t, err)
	return h, body
}

// expect requires a reply with this xid and code, and returns the rest.
func (r *raw) expect(xid int32, code wire.Code) (zxid.Zxid, []byte) {
	r.t.Helper()
	h, body := r.reply()
	require.Equal(r.t, [2]any{xid, code}, [2]any{h.Xid, h.Err})
	return h.Zxid, body
}

// closed requires that the server closes the connection and says nothing more.
func (r *raw) closed() {
	r.t.Helper()
	frame, err := r.ReadFrame()
	require.Error(r.t, err, "instead of closing, the server sent %x", frame)
	require.True(r.t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "%v", err)
}

// encode returns the bytes of a record.
func encode(records ...wire.Record) []byte {
	var e jute.Encoder
	for _, r := range records {
		r.Encode(&e)
	}
	return bytes.Clone(e.Bytes())
}

// bytesRecord is a body that is sent as it is.
type bytesRecord []byte

func (b bytesRecord) Encode(e *jute.Encoder) { e.Raw(b) }
func (b bytesRecord) Decode(*jute.Decoder)   { panic("bytesRecord is only sent") }

// rawString encodes a string without looking at what is in it, unlike jute.Encoder.UString.
func rawString(s string) []byte {
	var e jute.Encoder
	e.Buffer([]byte(s))
	return e.Bytes()
}

// decode reads a record that must fill body exactly.
func decode(t testing.TB, body []byte, r wire.Record) {
	t.Helper()
	d := jute.NewDecoder(body, len(body))
	r.Decode(&d)
	require.NoError(t, d.Err())
	require.Zero(t, d.Remaining(), "%x", body)
}

func digestACL(user string) []wire.ACL {
	return []wire.ACL{{Perms: wire.PermAll, Scheme: "digest", ID: user}}
}

func paths(format string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

// encodeV1 returns the bytes of a setWatches request.
func encodeV1(req *wire.SetWatchesRequest) []byte {
	var e jute.Encoder
	req.EncodeV1(&e)
	return e.Bytes()
}
