package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"zabra/jute"
)

const multiEnd = "ffffffff 01 ffffffff"

func TestMultiRoundTrip(t *testing.T) {
	var reused []MultiOp
	rapid.Check(t, func(t *rapid.T) {
		want := multiOps(t)
		var e jute.Encoder
		AppendMulti(&e, want)
		d := jute.NewDecoder(e.Bytes(), 0)
		got, err := DecodeMulti(&d, reused)
		require.NoError(t, err)
		require.Zero(t, d.Remaining())
		require.Equal(t, want, append([]MultiOp{}, got...))
		reused = got

		for cut := range e.Len() {
			d := jute.NewDecoder(e.Bytes()[:cut], 0)
			got, err := DecodeMulti(&d, nil)
			require.Error(t, err, "prefix of %d bytes", cut)
			require.Empty(t, got)
		}
	})
}

func TestMultiResultsRoundTrip(t *testing.T) {
	var reused []MultiResult
	rapid.Check(t, func(t *rapid.T) {
		want := multiResults(t)
		var e jute.Encoder
		AppendMultiResults(&e, want)
		d := jute.NewDecoder(e.Bytes(), 0)
		got, err := DecodeMultiResults(&d, reused)
		require.NoError(t, err)
		require.Zero(t, d.Remaining())
		require.Equal(t, want, append([]MultiResult{}, got...))
		reused = got

		for cut := range e.Len() {
			d := jute.NewDecoder(e.Bytes()[:cut], 0)
			got, err := DecodeMultiResults(&d, nil)
			require.Error(t, err, "prefix of %d bytes", cut)
			require.Empty(t, got)
		}
	})
}

func TestMultiGolden(t *testing.T) {
	in := "00000001 00 ffffffff  00000002 2f61 00000001 78" + goldenOpen + "00000003" +
		"00000015 00 ffffffff  00000002 2f62 ffffffff ffffffff 00000063 ffffffffffffffff" +
		"00000002 00 ffffffff  00000002 2f63 00000007" +
		"00000005 00 ffffffff  00000002 2f64 ffffffff ffffffff" +
		"0000000d 00 ffffffff  00000002 2f65 00000000" +
		"00000004 00 ffffffff  00000002 2f66 00" +
		"00000008 00 ffffffff  00000000 00" + multiEnd
	want := []MultiOp{
		{Op: OpCreate, Create: CreateTTLRequest{Path: []byte("/a"), Data: []byte("x"), ACL: OpenACL, Flags: 3, TTL: -1}},
		{Op: OpCreateTTL, Create: CreateTTLRequest{Path: []byte("/b"), Flags: 99, TTL: -1}},
		{Op: OpDelete, Path: []byte("/c"), Version: 7},
		{Op: OpSetData, Path: []byte("/d"), Version: -1},
		{Op: OpCheck, Path: []byte("/e")},
		{Op: OpGetData, Path: []byte("/f")},
		{Op: OpGetChildren, Path: []byte{}},
	}
	var e jute.Encoder
	AppendMulti(&e, want)
	require.Equal(t, unhex(t, in), e.Bytes())
	d := jute.NewDecoder(e.Bytes(), 0)
	got, err := DecodeMulti(&d, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for i, path := range []string{"/a", "/b", "/c", "/d", "/e", "/f", ""} {
		require.Equal(t, path, string(got[i].Target()))
	}
}

func TestMultiAccepted(t *testing.T) {
	deleteA := MultiOp{Op: OpDelete, Path: []byte("/a"), Version: -1}
	tests := []struct {
		name, in string
		want     []MultiOp
		left     int
	}{
		{"nothing but the end", multiEnd, []MultiOp{}, 0},
		{"odd end", "00000063 07 00000005", []MultiOp{}, 0},
		{"odd error in a header", "00000002 00 00000009 00000002 2f61 ffffffff" + multiEnd, []MultiOp{deleteA}, 0},
		{"bytes behind the end", "00000002 00 ffffffff 00000002 2f61 ffffffff" + multiEnd + "0102", []MultiOp{deleteA}, 2},
		{
			"watch flag of any value", "00000004 00 ffffffff 00000002 2f61 09" + multiEnd,
			[]MultiOp{{Op: OpGetData, Path: []byte("/a")}}, 0,
		},
		{
			"empty ACL", "0000000f 00 ffffffff 00000002 2f61 ffffffff 00000000 00000004" + multiEnd,
			[]MultiOp{{Op: OpCreate2, Create: CreateTTLRequest{Path: []byte("/a"), ACL: []ACL{}, Flags: 4, TTL: -1}}}, 0,
		},
		{
			"createTTL as a container, with a ttl", "00000015 00 ffffffff 00000002 2f61 ffffffff ffffffff 00000004 0000000000000005" + multiEnd,
			[]MultiOp{{Op: OpCreateTTL, Create: CreateTTLRequest{Path: []byte("/a"), Flags: 4, TTL: 5}}}, 0,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := jute.NewDecoder(unhex(t, tt.in), 0)
			got, err := DecodeMulti(&d, make([]MultiOp, 1))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.left, d.Remaining())
		})
	}
}

func TestMultiRefused(t *testing.T) {
	const create = " 00 ffffffff 00000002 2f61 ffffffff"
	tests := []struct {
		name, in string
		want     error
	}{
		{"empty body", "", jute.ErrShort},
		{"no end", "00000002 00 ffffffff 00000002 2f61 ffffffff", jute.ErrShort},
		{"end looks like one but for its flag", "ffffffff 00 ffffffff", errMultiOp},
		{"setACL", "00000007 00 ffffffff 00000002 2f61" + goldenOpen + "ffffffff" + multiEnd, errMultiOp},
		{"exists", "00000003 00 ffffffff 00000002 2f61 00" + multiEnd, errMultiOp},
		{"deleteContainer", "00000014 00 ffffffff 00000002 2f61" + multiEnd, errMultiOp},
		{"multi", "0000000e 00 ffffffff" + multiEnd + multiEnd, errMultiOp},
		{"notification", "00000000 00 ffffffff" + multiEnd, errMultiOp},
		{"unknown", "000001f4 00 ffffffff" + multiEnd, errMultiOp},
		{"delete of null", "00000002 00 ffffffff ffffffff ffffffff" + multiEnd, errMultiNull},
		{"setData of null", "00000005 00 ffffffff ffffffff ffffffff ffffffff" + multiEnd, errMultiNull},
		{"check of null", "0000000d 00 ffffffff ffffffff ffffffff" + multiEnd, errMultiNull},
		{"getData of null", "00000004 00 ffffffff ffffffff 00" + multiEnd, errMultiNull},
		{"create of null", "00000001 00 ffffffff ffffffff ffffffff 00000000 00000000" + multiEnd, errMultiNull},
		{"createTTL of null", "00000015 00 ffffffff ffffffff ffffffff 00000000 00000005 0000000000000001" + multiEnd, errMultiNull},
		{"create, null ACL", "00000001" + create + "ffffffff 00000000" + multiEnd, ErrMultiNullACL},
		{"create2, null ACL", "0000000f" + create + "ffffffff 00000000" + multiEnd, ErrMultiNullACL},
		{"createContainer, null ACL", "00000013" + create + "ffffffff 00000004" + multiEnd, ErrMultiNullACL},
		{"create, flags -1", "00000001" + create + goldenOpen + "ffffffff" + multiEnd, errMultiFlags},
		{"create, flags 5", "00000001" + create + goldenOpen + "00000005" + multiEnd, errMultiFlags},
		{"create2, flags 6", "0000000f" + create + goldenOpen + "00000006" + multiEnd, errMultiFlags},
		{"null ACL in front of what cannot be read", "00000001" + create + "ffffffff 00000000", ErrMultiNullACL},
		{"null ACL behind a null path", "00000002 00 ffffffff ffffffff ffffffff" + "00000001" + create + "ffffffff 00000000" + multiEnd, ErrMultiNullACL},
		{"null ACL with flags 5", "00000001" + create + "ffffffff 00000005" + multiEnd, ErrMultiNullACL},
		{"null ACL with flags 7", "00000001" + create + "ffffffff 00000007" + multiEnd, errMultiFlags},
		{"createContainer, flags 7", "00000013" + create + goldenOpen + "00000007" + multiEnd, errMultiFlags},
		{"bad length inside", "00000002 00 ffffffff fffffffe" + multiEnd, jute.ErrLength},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := jute.NewDecoder(unhex(t, tt.in), 0)
			got, err := DecodeMulti(&d, make([]MultiOp, 3))
			require.ErrorIs(t, err, tt.want)
			require.Error(t, d.Err())
			require.Empty(t, got)
		})
	}
}

func TestMultiErrorTellsWhere(t *testing.T) {
	d := jute.NewDecoder(unhex(t, "00000002 00 ffffffff 00000002 2f61 ffffffff 00000007 00 ffffffff"), 0)
	_, err := DecodeMulti(&d, nil)
	require.EqualError(t, err, "multi, operation 1 (setACL): wire: operation not allowed in a multi")
	d = jute.NewDecoder(unhex(t, "00000002 00 ffffffff 00000000"), 0)
	_, err = DecodeMultiResults(&d, nil)
	require.EqualError(t, err, "multi, result 1: jute: input too short: 1 bytes wanted at offset 13, 0 left")
}

// TestMultiOpsBound fills a frame of the greatest size with the smallest operations.
func TestMultiOpsBound(t *testing.T) {
	op := []MultiOp{{Op: OpGetData, Path: []byte{}}}
	var one jute.Encoder
	AppendMulti(&one, op)
	require.Equal(t, multiOpBytesMin+multiHeaderBytes, one.Len())

	n := (FrameBytesMaxDefault - multiHeaderBytes) / multiOpBytesMin
	var e jute.Encoder
	for range n {
		e.Raw(one.Bytes()[:multiOpBytesMin])
	}
	e.Raw(unhex(t, multiEnd))
	require.LessOrEqual(t, e.Len(), FrameBytesMaxDefault)
	d := jute.NewDecoder(e.Bytes(), 0)
	ops, err := DecodeMulti(&d, nil)
	require.NoError(t, err)
	require.Len(t, ops, n)
}

func TestMultiResultsGolden(t *testing.T) {
	results := []MultiResult{
		{Op: OpCreate, Path: []byte("/a")},
		{Op: OpCreateContainer, Path: []byte("/b"), Stat: goldenStatValue},
		{Op: OpCreateTTL, Path: []byte("/c"), Stat: goldenStatValue},
		{Op: OpDelete},
		{Op: OpSetData, Stat: goldenStatValue},
		{Op: OpCheck},
		{Op: OpGetData, Data: []byte("x"), Stat: goldenStatValue},
		{Op: OpGetChildren, Children: texts0("k")},
		{Op: OpError, Err: CodeNoNode},
	}
	want := "00000001 00 00000000 00000002 2f61" +
		"0000000f 00 00000000 00000002 2f62" + goldenStat +
		"0000000f 00 00000000 00000002 2f63" + goldenStat +
		"00000002 00 00000000" +
		"00000005 00 00000000" + goldenStat +
		"0000000d 00 00000000" +
		"00000004 00 00000000 00000001 78" + goldenStat +
		"00000008 00 00000000 00000001 00000001 6b" +
		"ffffffff 00 ffffff9b ffffff9b" + multiEnd
	var e jute.Encoder
	AppendMultiResults(&e, results)
	require.Equal(t, unhex(t, want), e.Bytes())
	results[1].Op, results[2].Op = OpCreate2, OpCreate2
	d := jute.NewDecoder(e.Bytes(), 0)
	got, err := DecodeMultiResults(&d, nil)
	require.NoError(t, err)
	require.Equal(t, results, got)
}

func TestMultiResultsRefused(t *testing.T) {
	for _, op := range []string{"00000000", "00000003", "00000007", "0000000e", "00000013", "00000015", "ffffff00"} {
		d := jute.NewDecoder(unhex(t, op+"00 00000000 00000000"+multiEnd), 0)
		_, err := DecodeMultiResults(&d, nil)
		require.ErrorIs(t, err, errMultiResult, op)
	}
}

// Encoding what no multi can hold is a bug of the caller's, which must not become bytes.
func TestMultiPanics(t *testing.T) {
	var e jute.Encoder
	require.Panics(t, func() { AppendMulti(&e, []MultiOp{{Op: OpSetACL}}) })
	require.Panics(t, func() { AppendMultiResults(&e, []MultiResult{{Op: OpSetACL}}) })
}

func multiOps(t *rapid.T) []MultiOp {
	kinds := []Op{
		OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpCheck, OpSetData, OpGetData, OpGetChildren,
	}
	ops := []MultiOp{}
	for range rapid.IntRange(0, 4).Draw(t, "n") {
		m := MultiOp{Op: rapid.SampledFrom(kinds).Draw(t, "op")}
		path := []byte(stringsOf(t))
		switch m.Op {
		case OpCreate, OpCreate2, OpCreateContainer:
			m.Create = CreateTTLRequest{Path: path, Data: buffers(t), ACL: append([]ACL{}, aclLists(t)...), TTL: -1}
			m.Create.Flags = rapid.Int32Range(FlagPersistent, FlagContainer).Draw(t, "flags")
		case OpCreateTTL:
			m.Create = CreateTTLRequest{Path: path, Data: buffers(t), ACL: aclLists(t), Flags: int32s(t), TTL: int64s(t)}
		case OpDelete, OpCheck:
			m.Path, m.Version = path, int32s(t)
		case OpSetData:
			m.Path, m.Data, m.Version = path, buffers(t), int32s(t)
		case OpGetData, OpGetChildren:
			m.Path = path
		}
		ops = append(ops, m)
	}
	return ops
}

func multiResults(t *rapid.T) []MultiResult {
	kinds := []Op{OpCreate, OpCreate2, OpDelete, OpCheck, OpSetData, OpGetData, OpGetChildren, OpError}
	results := []MultiResult{}
	for range rapid.IntRange(0, 4).Draw(t, "n") {
		r := MultiResult{Op: rapid.SampledFrom(kinds).Draw(t, "op")}
		switch r.Op {
		case OpCreate:
			r.Path = texts(t)
		case OpCreate2:
			r.Path, r.Stat = texts(t), stats(t)
		case OpSetData:
			r.Stat = stats(t)
		case OpGetData:
			r.Data, r.Stat = buffers(t), stats(t)
		case OpGetChildren:
			r.Children = textLists(t)
		case OpError:
			r.Err = Code(int32s(t))
		}
		results = append(results, r)
	}
	return results
}

func TestDecodeMultiReadLetsNullsThrough(t *testing.T) {
	body := unhex(t, "00000004 00 ffffffff ffffffff 00"+"00000002 00 ffffffff ffffffff ffffffff"+multiEnd)
	d := jute.NewDecoder(body, 1<<20)
	ops, err := DecodeMultiRead(&d, nil)
	require.NoError(t, err)
	require.Len(t, ops, 2)
	require.Nil(t, ops[0].Path)
	d = jute.NewDecoder(body, 1<<20)
	_, err = DecodeMulti(&d, nil)
	require.ErrorIs(t, err, errMultiNull)
}
