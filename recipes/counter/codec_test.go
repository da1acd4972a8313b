package counter

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
)

// The bytes are those that Curator and kazoo write.
func TestCodecBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codec Codec
		n     int64
		data  string
	}{
		{Curator64, 0, "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{Curator64, 258, "\x00\x00\x00\x00\x00\x00\x01\x02"},
		{Curator64, -1, "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{Curator64, math.MinInt64, "\x80\x00\x00\x00\x00\x00\x00\x00"},
		{Curator32, 258, "\x00\x00\x01\x02"},
		{Curator32, math.MinInt32, "\x80\x00\x00\x00"},
		{KazooText, 0, "0"},
		{KazooText, -12, "-12"},
		{KazooText, math.MaxInt64, "9223372036854775807"},
	} {
		data, err := c.codec.Encode(c.n)
		require.NoError(t, err)
		require.Equal(t, c.data, string(data))
		n, err := c.codec.Decode(data)
		require.NoError(t, err)
		require.Equal(t, c.n, n)
	}
}

func TestCodecRefuses(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxInt64} {
		_, err := Curator32.Encode(n)
		require.ErrorIs(t, err, ErrOverflow)
	}
	for _, c := range []struct {
		codec Codec
		data  string
	}{
		{Curator64, "1234567"}, {Curator64, "123456789"}, {Curator32, "12345678"}, {Curator32, "1"},
		{KazooText, "1.5"}, {KazooText, "9223372036854775808"}, {KazooText, " 1"}, {KazooText, "0x10"}, {KazooText, "1_000"},
		{KazooText, "something that is much longer than an error should show"},
	} {
		_, err := c.codec.Decode([]byte(c.data))
		require.ErrorIs(t, err, ErrCorrupt, "%q", c.data)
		require.Less(t, len(err.Error()), 160)
	}
	for _, codec := range []Codec{Curator64, Curator32, KazooText} {
		n, err := codec.Decode(nil)
		require.NoError(t, err, "a node without data is 0")
		require.Zero(t, n)
	}
}

// sum agrees with numbers that do not overflow.
func TestSum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		got, err := sum(a, b)
		exact := float64(a) + float64(b)
		switch {
		case errors.Is(err, ErrOverflow):
			require.True(t, exact >= math.MaxInt64 || exact <= math.MinInt64, "%d + %d", a, b)
		default:
			require.NoError(t, err)
			require.Equal(t, a, got-b)
			require.True(t, b >= 0 == (got >= a), "%d + %d", a, b)
		}
	})
}
