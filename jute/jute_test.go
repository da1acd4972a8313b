package jute

import (
	"encoding/hex"
	"errors"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
)

func TestEncoderGolden(t *testing.T) {
	tests := []struct {
		name  string
		write func(e *Encoder)
		want  string
	}{
		{"false", func(e *Encoder) { e.Bool(false) }, "00"},
		{"true", func(e *Encoder) { e.Bool(true) }, "01"},
		{"byte", func(e *Encoder) { e.Byte(0xab) }, "ab"},
		{"int", func(e *Encoder) { e.Int32(0x01020304) }, "01020304"},
		{"negative int", func(e *Encoder) { e.Int32(-2) }, "fffffffe"},
		{"long", func(e *Encoder) { e.Int64(0x0102030405060708) }, "0102030405060708"},
		{"smallest long", func(e *Encoder) { e.Int64(math.MinInt64) }, "8000000000000000"},
		{"null buffer", func(e *Encoder) { e.Buffer(nil) }, "ffffffff"},
		{"empty buffer", func(e *Encoder) { e.Buffer([]byte{}) }, "00000000"},
		{"buffer", func(e *Encoder) { e.Buffer([]byte{0xff}) }, "00000001ff"},
		{"null string", func(e *Encoder) { e.UString(nil) }, "ffffffff"},
		{"empty string", func(e *Encoder) { e.UString([]byte{}) }, "00000000"},
		{"string of bytes", func(e *Encoder) { e.UString([]byte("/é")) }, "000000032fc3a9"},
		{"empty text", func(e *Encoder) { e.String("") }, "00000000"},
		{"text", func(e *Encoder) { e.String("/é") }, "000000032fc3a9"},
		{"vector", func(e *Encoder) { e.Count(3) }, "00000003"},
		{"null vector", func(e *Encoder) { e.Count(-1) }, "ffffffff"},
		{"raw", func(e *Encoder) { e.Raw([]byte{1, 2}) }, "0102"},
		{"patched", func(e *Encoder) { e.Byte(9); e.Int32(0); e.Byte(8); e.PatchInt32(1, 5) }, "090000000508"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e Encoder
			tt.write(&e)
			require.Equal(t, tt.want, hex.EncodeToString(e.Bytes()))
			require.Equal(t, len(tt.want)/2, e.Len())
		})
	}
}

func TestEncoderReset(t *testing.T) {
	var e Encoder
	e.Int32(1)
	e.Reset([]byte{7})
	require.Equal(t, 1, e.Len())
	e.Byte(8)
	require.Equal(t, []byte{7, 8}, e.Bytes())

	buf := make([]byte, 0, 16)
	e.Reset(buf)
	e.Byte(1)
	require.Same(t, &buf[:1][0], &e.Bytes()[0], "Reset uses the capacity that it is given")
}

func TestDecoderFields(t *testing.T) {
	d := NewDecoder(unhex(t, "00"+"02"+"ab"+"fffffffe"+"8000000000000000"+
		"ffffffff"+"00000000"+"0000000161"+ // buffers
		"ffffffff"+"00000000"+"0000000162"+ // strings
		"6364"), 0)
	require.False(t, d.Bool())
	require.True(t, d.Bool(), "any byte but 0 is true")
	require.Equal(t, byte(0xab), d.Byte())
	require.Equal(t, int32(-2), d.Int32())
	require.Equal(t, int64(math.MinInt64), d.Int64())
	require.Nil(t, d.Buffer())
	require.Equal(t, []byte{}, d.Buffer())
	require.Equal(t, []byte("a"), d.Buffer())
	require.Nil(t, d.UString())
	require.Equal(t, []byte{}, d.UString())
	require.Equal(t, []byte("b"), d.UString())
	require.Equal(t, 2, d.Remaining())
	require.Equal(t, []byte("cd"), d.Rest())
	require.Zero(t, d.Remaining())
	require.NoError(t, d.Err())
	require.Empty(t, d.Rest())
}

func TestDecoderAliases(t *testing.T) {
	in := unhex(t, "00000002616200000001630000000164")
	d := NewDecoder(in, 0)
	for range 3 {
		b := d.UString()
		require.Equal(t, len(b), cap(b), "an append must not reach the next field")
	}
	d = NewDecoder(in, 0)
	b := d.Buffer()
	in[4] = 'x'
	require.Equal(t, []byte("xb"), b)
}

func TestDecoderErrors(t *testing.T) {
	tests := []struct {
		name string
		in   string
		read func(d *Decoder)
		want error
	}{
		{"bool", "", func(d *Decoder) { d.Bool() }, ErrShort},
		{"byte", "", func(d *Decoder) { d.Byte() }, ErrShort},
		{"int", "010203", func(d *Decoder) { d.Int32() }, ErrShort},
		{"long", "01020304050607", func(d *Decoder) { d.Int64() }, ErrShort},
		{"length of a buffer", "000000", func(d *Decoder) { d.Buffer() }, ErrShort},
		{"content of a buffer", "0000000201", func(d *Decoder) { d.Buffer() }, ErrShort},
		{"content of a string", "0000000261", func(d *Decoder) { d.UString() }, ErrShort},
		{"length -2", "fffffffe", func(d *Decoder) { d.Buffer() }, ErrLength},
		{"smallest length", "80000000", func(d *Decoder) { d.UString() }, ErrLength},
		{"largest length", "7fffffff", func(d *Decoder) { d.Buffer() }, ErrLength},
		{"length above the bound", "0000000b" + "6162636465666768696a6b", func(d *Decoder) { d.Buffer() }, ErrLength},
		{"length of a vector", "000000", func(d *Decoder) { d.Vector(1) }, ErrShort},
		{"vector of bytes", "00000003" + "0102", func(d *Decoder) { d.Vector(1) }, ErrLength},
		{"vector of strings", "00000002" + "00000000000000", func(d *Decoder) { d.Vector(4) }, ErrLength},
		{"largest vector", "7fffffff" + "00000000", func(d *Decoder) { d.Vector(4) }, ErrLength},
		{"largest vector of no size", "7fffffff" + "00000000", func(d *Decoder) { d.Vector(0) }, ErrLength},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDecoder(unhex(t, tt.in), 10)
			tt.read(&d)
			require.ErrorIs(t, d.Err(), tt.want)
			requireFailed(t, &d)
		})
	}
}

// requireFailed checks that a decoder with an error gives nothing but zero values.
func requireFailed(t *testing.T, d *Decoder) {
	t.Helper()
	first := d.Err()
	require.Error(t, first)
	require.Zero(t, d.Remaining())
	require.False(t, d.Bool())
	require.Zero(t, d.Byte())
	require.Zero(t, d.Int32())
	require.Zero(t, d.Int64())
	require.Nil(t, d.Buffer())
	require.Nil(t, d.UString())
	n, null := d.Vector(1)
	require.Zero(t, n)
	require.False(t, null, "an unread vector is not null")
	require.Empty(t, d.Rest())
	d.Fail(errors.New("later"))
	require.Equal(t, first, d.Err(), "the first error stays")
}

func TestDecoderFail(t *testing.T) {
	d := NewDecoder(make([]byte, 100), 0)
	d.Fail(nil)
	require.NoError(t, d.Err())
	require.Equal(t, 100, d.Remaining())
	why := errors.New("not allowed")
	d.Fail(why)
	require.Equal(t, why, d.Err())
	requireFailed(t, &d)
}

func TestDecoderErrorTellsWhere(t *testing.T) {
	d := NewDecoder(unhex(t, "0000000000000009"), 0)
	d.Int32()
	d.Buffer()
	require.EqualError(t, d.Err(), "jute: input too short: 9 bytes wanted at offset 8, 0 left")
	d = NewDecoder(unhex(t, "00000009"+"00"), 5)
	d.Buffer()
	require.EqualError(t, d.Err(), "jute: bad length: field of 9 bytes before offset 4, at most 5 allowed")
	d = NewDecoder(unhex(t, "00000009"+"00"), 5)
	d.Vector(4)
	require.EqualError(t, d.Err(), "jute: bad length: vector of 9 elements before offset 4, each of 4 bytes or more, 1 left")
}

func TestVector(t *testing.T) {
	tests := []struct {
		name, in string
		elem     int
		n        int
		null     bool
	}{
		{"null", "ffffffff", 4, 0, true},
		{"other negative is empty", "fffffffe", 4, 0, false},
		{"smallest is empty", "80000000", 4, 0, false},
		{"empty", "00000000", 4, 0, false},
		{"just fits", "00000002" + "0000000000000000", 4, 2, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDecoder(unhex(t, tt.in), 0)
			n, null := d.Vector(tt.elem)
			require.NoError(t, d.Err())
			require.Equal(t, tt.n, n)
			require.Equal(t, tt.null, null)
		})
	}
}

func TestFieldBytesMaxDefault(t *testing.T) {
	var e Encoder
	e.Buffer(make([]byte, FieldBytesMaxDefault))
	d := NewDecoder(e.Bytes(), 0)
	require.Len(t, d.Buffer(), FieldBytesMaxDefault)
	require.NoError(t, d.Err())

	e.Reset(nil)
	e.Buffer(make([]byte, FieldBytesMaxDefault+1))
	d = NewDecoder(e.Bytes(), 0)
	d.Buffer()
	require.ErrorIs(t, d.Err(), ErrLength)
	d = NewDecoder(e.Bytes(), FieldBytesMaxDefault+1)
	require.Len(t, d.Buffer(), FieldBytesMaxDefault+1)
}

// TestRoundTrip writes a random series of values and reads it back, then reads each proper prefix of it.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Encoder
		var reads []func(d *Decoder) bool // each reports whether it saw what was written
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			reads = append(reads, writeRandom(t, &e))
		}
		d := NewDecoder(e.Bytes(), 0)
		for i, read := range reads {
			require.True(t, read(&d), "value %d", i)
		}
		require.NoError(t, d.Err())
		require.Zero(t, d.Remaining())

		for cut := range e.Len() {
			d := NewDecoder(e.Bytes()[:cut], 0)
			for _, read := range reads {
				read(&d)
			}
			require.Error(t, d.Err(), "prefix of %d bytes", cut)
		}
	})
}

func writeRandom(t *rapid.T, e *Encoder) func(d *Decoder) bool {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		v := rapid.Bool().Draw(t, "bool")
		e.Bool(v)
		return func(d *Decoder) bool { return d.Bool() == v }
	case 1:
		v := rapid.Byte().Draw(t, "byte")
		e.Byte(v)
		return func(d *Decoder) bool { return d.Byte() == v }
	case 2:
		v := rapid.Int32().Draw(t, "int")
		e.Int32(v)
		return func(d *Decoder) bool { return d.Int32() == v }
	case 3:
		v := rapid.Int64().Draw(t, "long")
		e.Int64(v)
		return func(d *Decoder) bool { return d.Int64() == v }
	case 4:
		v := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "buffer")
		if rapid.Bool().Draw(t, "null") {
			v = nil
		}
		e.Buffer(v)
		return func(d *Decoder) bool { return same(d.Buffer(), v) }
	case 5:
		v := rapid.StringOfN(rapid.RuneFrom([]rune("a/é€\uffff")), 0, 9, -1).Draw(t, "string")
		e.UString([]byte(v))
		return func(d *Decoder) bool { return same(d.UString(), []byte(v)) }
	default:
		n := rapid.IntRange(-1, 5).Draw(t, "count")
		e.Count(n)
		e.Raw(make([]byte, max(n, 0)))
		return func(d *Decoder) bool {
			got, null := d.Vector(1)
			for range got {
				d.Byte()
			}
			return null == (n == -1) && got == max(n, 0)
		}
	}
}

// same compares null and empty as different values.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && string(a) == string(b) }

// FuzzDecoder lets the input choose what is read from the rest of itself, and checks that the decoder neither panics nor
// takes more than there is.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("\x05\x06\x07"), unhexF(f, "00000002c3a9"+"ffffffff"+"0000000100"))
	f.Add([]byte("\x06"), unhexF(f, "00000003eda0bd"))
	f.Add([]byte("\x07\x05"), unhexF(f, "7fffffff"))
	f.Fuzz(func(t *testing.T, script, in []byte) {
		d := NewDecoder(in, 64)
		for _, step := range script {
			before := d.Remaining()
			fuzzStep(t, &d, step, before)
			if d.Err() != nil {
				requireFailed(t, &d)
				return
			}
			require.LessOrEqual(t, d.Remaining(), before)
		}
	})
}

func fuzzStep(t *testing.T, d *Decoder, step byte, before int) {
	switch step % 8 {
	case 0:
		d.Bool()
	case 1:
		d.Byte()
	case 2:
		d.Int32()
	case 3:
		d.Int64()
	case 4:
		require.LessOrEqual(t, len(d.Buffer()), min(before, 64))
	case 5, 6:
		b := d.UString()
		require.True(t, utf8.Valid(b))
		require.LessOrEqual(t, len(b), 3*before, "a byte becomes one U+FFFD at most")
	case 7:
		n, _ := d.Vector(2)
		require.LessOrEqual(t, 2*n, before)
	}
}

func unhexF(f *testing.F, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(f, err)
	return b
}

func TestNoAllocation(t *testing.T) {
	var e Encoder
	e.UString([]byte("/some/path/with a name é"))
	e.Buffer([]byte("data"))
	e.Count(1)
	e.Int64(7)
	e.Bool(true)
	in := e.Bytes()
	buf := make([]byte, 0, 256)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		d := NewDecoder(in, 0)
		path, data := d.UString(), d.Buffer()
		n, _ := d.Vector(8)
		v, ok := d.Int64(), d.Bool()
		if d.Err() != nil || n != 1 {
			panic(d.Err())
		}
		var e Encoder
		e.Reset(buf)
		e.UString(path)
		e.Buffer(data)
		e.Count(n)
		e.Int64(v)
		e.Bool(ok)
		e.String("text")
		e.PatchInt32(0, 1)
	}))
}

func BenchmarkUStringDecode(b *testing.B) {
	var e Encoder
	e.UString([]byte("/services/orders/instance-0000000042"))
	b.ReportAllocs()
	for b.Loop() {
		d := NewDecoder(e.Bytes(), 0)
		if len(d.UString()) == 0 {
			b.Fatal(d.Err())
		}
	}
}

func BenchmarkUStringEncode(b *testing.B) {
	path := []byte("/services/orders/instance-0000000042")
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		var e Encoder
		e.Reset(buf)
		e.UString(path)
	}
}
