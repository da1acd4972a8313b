package znode

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"zabra/jute"
	"zabra/wire"
)

func unhex(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// TestTxnBytes is the first record of a log that Apache wrote.
func TestTxnBytes(t *testing.T) {
	raw := unhex(t, "0100000ed6d90000 00000000 0000000000000001 000001a22b7b9b18 fffffff6 00007530 00000002 0000000051c6d660")
	var h TxnHeader
	var txn Txn
	d, has, err := DecodeTxn(raw, 0, &h, &txn)
	require.NoError(t, err)
	require.True(t, has)
	require.Equal(t, Digest{2, 1371985504}, d)
	require.Equal(t, TxnHeader{ClientID: 0x100000ed6d90000, Zxid: 1, Time: 0x1a22b7b9b18, Type: wire.OpCreateSession}, h)
	require.EqualValues(t, 30000, txn.Timeout)
	require.Equal(t, raw, AppendTxn(nil, &h, &txn, &d))
}

// txnGen draws any transaction, valid or not for some tree.
func txnGen(rt *rapid.T, top bool) Txn {
	types := []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete, wire.OpDeleteContainer, wire.OpSetData, wire.OpError, wire.OpCheck}
	if top {
		types = append(types[:len(types)-1], wire.OpReconfig, wire.OpSetACL, wire.OpCreateSession, wire.OpCloseSession, wire.OpMulti)
	}
	t := Txn{Type: rapid.SampledFrom(types).Draw(rt, "type")}
	path := func() []byte {
		return []byte(rapid.StringOfN(rapid.RuneFrom([]rune("/abcé€\x00")), 0, 12, -1).Draw(rt, "path"))
	}
	data := func() []byte {
		if rapid.Bool().Draw(rt, "null") {
			return nil
		}
		return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "data")...)
	}
	acl := func() []wire.ACL { return testACLs[rapid.IntRange(0, len(testACLs)-1).Draw(rt, "acl")] }
	num := rapid.Int32()
	switch t.Type {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		t.Path, t.Data, t.ACL, t.ParentCVersion = path(), data(), acl(), num.Draw(rt, "cversion")
		if t.Type == wire.OpCreateTTL {
			t.TTL = rapid.Int64().Draw(rt, "ttl")
		} else if t.Type != wire.OpCreateContainer {
			t.Ephemeral = rapid.Bool().Draw(rt, "ephemeral")
		}
	case wire.OpDelete, wire.OpDeleteContainer:
		t.Path = path()
	case wire.OpSetData, wire.OpReconfig:
		t.Path, t.Data, t.Version = path(), data(), num.Draw(rt, "version")
	case wire.OpSetACL:
		t.Path, t.ACL, t.Version = path(), acl(), num.Draw(rt, "version")
	case wire.OpCheck:
		t.Path, t.Version = path(), num.Draw(rt, "version")
	case wire.OpError:
		t.Err = wire.Code(num.Draw(rt, "code"))
	case wire.OpCreateSession:
		t.Timeout = num.Draw(rt, "timeout")
	case wire.OpCloseSession:
		if t.HasPaths = rapid.Bool().Draw(rt, "paths"); t.HasPaths {
			for range rapid.IntRange(0, 3).Draw(rt, "n") {
				t.Paths = append(t.Paths, append(path(), 'x'))
			}
		}
	case wire.OpMulti:
		for range rapid.IntRange(0, 4).Draw(rt, "n") {
			t.Multi = append(t.Multi, txnGen(rt, false))
		}
	}
	return t
}

// normalTxn drops the difference between empty and missing slices that DecodeTxn keeps for later use.
func normalTxn(t Txn) Txn {
	if len(t.Paths) == 0 {
		t.Paths = nil
	}
	if len(t.Multi) == 0 {
		t.Multi = nil
	}
	multi := t.Multi
	t.Multi = nil
	for _, op := range multi {
		t.Multi = append(t.Multi, normalTxn(op))
	}
	return t
}

func TestTxnRoundTrip(t *testing.T) {
	var h2 TxnHeader
	var txn2 Txn // used again and again: nothing of the one before may be left
	rapid.Check(t, func(rt *rapid.T) {
		txn := txnGen(rt, true)
		h := TxnHeader{
			ClientID: testSessions[rapid.IntRange(0, 3).Draw(rt, "session")], Cxid: rapid.Int32().Draw(rt, "cxid"), Zxid: zx(rapid.Int64().Draw(rt, "zxid")),
			Time: rapid.Int64().Draw(rt, "time"), Type: txn.Type,
		}
		var d *Digest
		if rapid.Bool().Draw(rt, "digest") {
			d = &Digest{2, rapid.Uint64().Draw(rt, "value")}
		}
		raw := AppendTxn([]byte("before"), &h, &txn, d)
		require.Equal(rt, "before", string(raw[:6]))
		raw = raw[6:]
		got, has, err := DecodeTxn(raw, 0, &h2, &txn2)
		require.NoError(rt, err)
		require.Equal(rt, d != nil, has)
		if has {
			require.Equal(rt, *d, got)
		}
		require.Equal(rt, h, h2)
		want := txn
		if want.Type == wire.OpCreate2 || want.Type == wire.OpCreate {
			want.Ephemeral = txn.Ephemeral
		}
		require.Equal(rt, normalTxn(want), normalTxn(txn2))
		// Later versions may add fields behind the digest.
		if has && (txn.Type != wire.OpCloseSession || txn.HasPaths) { // there they would look like paths
			_, has, err = DecodeTxn(append(bytes.Clone(raw), 1, 2, 3), 0, &h2, &txn2)
			require.NoError(rt, err)
			require.True(rt, has)
		}
		requirePrefixesRefused(rt, &h, &txn, raw, d != nil)
	})
}

// requirePrefixesRefused cuts a transaction everywhere. Some shorter ones exist: that without its digest, a create
// without the last field as old servers wrote it, and a closeSession without paths.
func requirePrefixesRefused(t require.TestingT, h *TxnHeader, txn *Txn, raw []byte, digest bool) {
	body := len(raw)
	if digest {
		body -= digestBytes
	}
	for n := range raw {
		var h2 TxnHeader
		var got Txn
		_, has, err := DecodeTxn(raw[:n], 0, &h2, &got)
		switch {
		case digest && n == body,
			txn.Type == wire.OpCreate && n == body-4,
			txn.Type == wire.OpCloseSession && n == 32:
			require.NoError(t, err)
			require.False(t, has)
			require.Equal(t, *h, h2)
		case txn.Type == wire.OpCloseSession && len(txn.Paths) == 2 && n == 32+digestBytes:
			// What is left looks like a digest.
		default:
			require.Error(t, err, "%d of %d bytes", n, len(raw))
		}
	}
}

func TestTxnOddities(t *testing.T) {
	header := func(op wire.Op) []byte {
		var e jute.Encoder
		e.Raw(make([]byte, 28))
		e.Int32(int32(op))
		return e.Bytes()
	}
	body := func(op wire.Op, f func(e *jute.Encoder)) []byte {
		var e jute.Encoder
		e.Reset(header(op))
		f(&e)
		return e.Bytes()
	}
	decode := func(raw []byte) (Txn, Digest, bool, error) {
		var h TxnHeader
		var txn Txn
		d, has, err := DecodeTxn(raw, 100, &h, &txn)
		return txn, d, has, err
	}

	txn, _, has, err := decode(body(wire.OpCreate, func(e *jute.Encoder) {
		e.String("/old")
		e.Buffer([]byte("x"))
		wire.AppendACLs(e, wire.ReadACL)
		e.Bool(true)
	}))
	require.NoError(t, err)
	require.False(t, has)
	require.EqualValues(t, -1, txn.ParentCVersion)
	require.True(t, txn.Ephemeral)

	txn, d, has, err := decode(body(wire.OpCloseSession, func(e *jute.Encoder) { e.Int32(2); e.Int64(99) }))
	require.NoError(t, err)
	require.True(t, has && !txn.HasPaths)
	require.Equal(t, Digest{2, 99}, d)
	txn, _, has, err = decode(body(wire.OpCloseSession, func(e *jute.Encoder) { e.Count(1); e.String("/abc") })) // 12 bytes
	require.NoError(t, err)
	require.True(t, !has && txn.HasPaths)
	require.Equal(t, "/abc", string(txn.Paths[0]))
	txn, _, has, err = decode(body(wire.OpCloseSession, func(e *jute.Encoder) { e.Count(0); e.Int32(2); e.Int64(1) }))
	require.NoError(t, err)
	require.True(t, has && txn.HasPaths)
	require.Empty(t, txn.Paths)

	for name, raw := range map[string][]byte{
		"unknown type":     header(99),
		"ping":             header(wire.OpPing),
		"check alone":      body(wire.OpCheck, func(e *jute.Encoder) { e.String("/a"); e.Int32(1) }),
		"null path":        body(wire.OpDelete, func(e *jute.Encoder) { e.Buffer(nil) }),
		"null ephemeral":   body(wire.OpCloseSession, func(e *jute.Encoder) { e.Count(1); e.Buffer(nil); e.Int64(0); e.Int64(0) }),
		"long path":        body(wire.OpDelete, func(e *jute.Encoder) { e.Buffer(make([]byte, 101)) }),
		"many operations":  body(wire.OpMulti, func(e *jute.Encoder) { e.Count(math.MaxInt32) }),
		"multi in multi":   body(wire.OpMulti, func(e *jute.Encoder) { e.Count(1); e.Int32(14); e.Buffer([]byte{0, 0, 0, 0}) }),
		"setACL in multi":  body(wire.OpMulti, func(e *jute.Encoder) { e.Count(1); e.Int32(7); e.Buffer(make([]byte, 30)) }),
		"null operation":   body(wire.OpMulti, func(e *jute.Encoder) { e.Count(1); e.Int32(2); e.Buffer(nil) }),
		"part of a digest": body(wire.OpError, func(e *jute.Encoder) { e.Int32(-1); e.Int32(2); e.Int32(0) }),
	} {
		_, _, _, err := decode(raw)
		require.Error(t, err, name)
	}
}

func FuzzTxn(f *testing.F) {
	for _, dir := range apacheDirs(f) {
		for i, p := range apachePayloads(f, dir) {
			if i%10 == 0 && len(p) < 1000 {
				f.Add(p)
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var h, h2 TxnHeader
		var txn, txn2 Txn
		d, has, err := DecodeTxn(raw, 1<<16, &h, &txn)
		if err != nil {
			return
		}
		dp := &d
		if !has {
			dp = nil
		}
		again := AppendTxn(nil, &h, &txn, dp)
		d2, has2, err := DecodeTxn(again, 1<<20, &h2, &txn2) // malformed text may have become longer
		require.NoError(t, err)
		require.Equal(t, []any{d, has, h}, []any{d2, has2, h2})
		require.Equal(t, again, AppendTxn(nil, &h2, &txn2, dp))
		g := newGrower(Config{ExtendedTypes: true}, 10)
		g.fill(t, 10)
		var res Result
		for range 2 {
			g.t.Apply(&h, &txn, &res)
			require.NoError(t, g.t.Check())
		}
	})
}
