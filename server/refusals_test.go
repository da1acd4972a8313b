package server

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"zabra/jute"
	"zabra/wire"
)

func TestRefusalsAreRareInTheLog(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	var r refusals
	r.init(zap.New(core))
	a := netip.MustParseAddrPort("10.0.0.1:1000")
	other := netip.MustParseAddrPort("10.0.0.2:1000")
	for i := range 100 {
		port := netip.AddrPortFrom(a.Addr(), uint16(2000+i))
		r.note(1000+int64(i), refusal{kind: "k", remote: port, why: "why"})
	}
	r.note(1100, refusal{kind: "k", remote: other, why: "why"})
	r.note(1100, refusal{kind: "another", remote: a, why: "why"})
	require.Len(t, logs.TakeAll(), 3)

	r.note(1000+refusalQuietMs, refusal{kind: "k", remote: a, why: "again", session: 5, op: wire.OpSetData, hasOp: true, path: "/p", bytes: 7, limit: 6})
	entries := logs.TakeAll()
	require.Len(t, entries, 1)
	require.Equal(t, map[string]any{
		"remote": "10.0.0.1:1000", "session": "0x5", "op": wire.OpSetData.String(), "path": "/p", "bytes": int64(7), "limit": int64(6),
		"notToldBefore": int64(99),
	}, entries[0].ContextMap())
}

func TestRefusalsMemory(t *testing.T) {
	var r refusals
	r.init(zap.NewNop())
	for i := range 3 * refusalKeysMax {
		r.note(int64(i), refusal{kind: fmt.Sprint(i), remote: netip.MustParseAddrPort("10.0.0.1:1")})
		require.LessOrEqual(t, len(r.known), refusalKeysMax)
	}
}

func TestDescribe(t *testing.T) {
	request := func(op wire.Op, body func(e *jute.Encoder)) []byte {
		var e jute.Encoder
		e.Int32(1)
		e.Int32(int32(op))
		body(&e)
		return e.Bytes()
	}
	long := "/" + strings.Repeat("x", 2*refusedPeekBytes)
	tests := []struct {
		name  string
		bytes []byte
		op    wire.Op
		path  string
		ok    bool
	}{
		{"setData", request(wire.OpSetData, func(e *jute.Encoder) { e.String("/a/b"); e.Buffer(make([]byte, 100)) }), wire.OpSetData, "/a/b", true},
		{"path cut", request(wire.OpCreate, func(e *jute.Encoder) { e.Int32(10); e.Raw([]byte("/abc")) }), wire.OpCreate, "/abc...", true},
		{"long path", request(wire.OpCreate2, func(e *jute.Encoder) { e.String(long) }), wire.OpCreate2, long[:refusedPeekBytes] + "...", true},
		{"multi", request(wire.OpMulti, func(e *jute.Encoder) {
			e.Int32(int32(wire.OpCreate))
			e.Bool(false)
			e.Int32(-1)
			e.String("/m")
		}), wire.OpMulti, "/m", true},
		{"setWatches", request(wire.OpSetWatches, func(e *jute.Encoder) { e.Int64(1); e.Count(1) }), wire.OpSetWatches, "", true},
		{"no path", request(wire.OpGetData, func(e *jute.Encoder) { e.String("abc") }), wire.OpGetData, "", true},
		{"null path", request(wire.OpGetData, func(e *jute.Encoder) { e.Int32(-1) }), wire.OpGetData, "", true},
		{"malformed text", request(wire.OpGetData, func(e *jute.Encoder) { e.Buffer([]byte("/a\xff\n")) }), wire.OpGetData, "/a\ufffd\n", true},
		{"header only", request(wire.OpGetData, func(*jute.Encoder) {}), wire.OpGetData, "", true},
		{"less than a header", []byte{0, 0, 0, 1, 0}, 0, "", false},
		{"nothing", nil, 0, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			op, path, ok := describe(tt.bytes)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.op, op)
			require.Equal(t, tt.path, path)
		})
	}
	// No beginning of a request may upset it.
	for _, tt := range tests {
		for n := range tt.bytes {
			describe(tt.bytes[:n])
		}
	}
}

// What comes from a client cannot make a line of its own, nor a long one.
func TestRefusalTexts(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	var r refusals
	r.init(zap.New(core))
	evil := "/a\n2026-01-01 ERROR \x1b[31m\xff" + strings.Repeat("\x00", 1<<20)
	r.note(1, refusal{kind: "k", remote: netip.MustParseAddrPort("10.0.0.1:1"), path: evil, why: evil, detail: evil})
	entries := logs.TakeAll()
	require.Len(t, entries, 1)
	fields := entries[0].ContextMap()
	for _, text := range []string{entries[0].Message, fields["path"].(string), fields["detail"].(string)} {
		require.True(t, strings.HasPrefix(text, `"/a\n2026-01-01 ERROR \x1b[31m`), text)
		require.NotContains(t, text, "\n")
		require.Less(t, len(text), 4*refusalTextBytesMax+20)
	}
	require.Equal(t, "/grün", printable("/grün"))
	require.Equal(t, strings.Repeat("x", refusalTextBytesMax)+"...", printable(strings.Repeat("x", refusalTextBytesMax+1)))
}

// A log that stands still holds up nobody; what finds no room is counted.
func TestRefusalQueueNeverBlocks(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	s := &Server{quit: make(chan struct{})}
	s.refusals.init(zap.New(core))
	for i := range refusalQueueMax + 7 {
		s.refusals.enqueue(1, refusal{kind: fmt.Sprint(i), remote: netip.MustParseAddrPort("10.0.0.1:1"), why: "why"})
	}
	require.Zero(t, logs.Len())
	close(s.quit)
	s.refusalLoop()
	entries := logs.TakeAll()
	require.Len(t, entries, refusalQueueMax)
	require.EqualValues(t, 7, entries[0].ContextMap()["overflowed"])
}
