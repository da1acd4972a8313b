package queue

import (
	"encoding/hex"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The names are those that Curator 5.9 and kazoo 2.10 make.
func TestNames(t *testing.T) {
	for priority, name := range map[int32]string{
		0: "queue-100000000", 10: "queue-10000000A", math.MaxInt32: "queue-17FFFFFFF", -1: "queue-0FFFFFFFF", math.MinInt32: "queue-080000000",
	} {
		require.Equal(t, name, priorityName(priority))
		c, ok := priorityLayout.candidate(name + "0000000012")
		require.True(t, ok, name)
		require.Equal(t, candidate{key{priority: priority}, name + "0000000012", 12}, c)
	}
	due := time.UnixMilli(1700000000123)
	require.Equal(t, "queue-|18BCFE5687B|", delayName(due))
	require.Equal(t, "queue-|00000001|", delayName(time.UnixMilli(1)))
	c, ok := delayLayout.candidate("queue-|18BCFE5687B|0000000003")
	require.True(t, ok)
	require.Equal(t, due, c.due())
	require.Equal(t, "entry-007-", kazooName(7))
	c, ok = kazooLayout.candidate("entry-007-0000000003")
	require.True(t, ok)
	require.Equal(t, int32(7), c.priority)
}

func TestForeignNames(t *testing.T) {
	for _, name := range []string{"", "qn-", "queue-0000000001", "entry-100-0000000001", "qn-x", "_c_qn-0000000001"} {
		_, ok := simpleLayout.candidate(name)
		require.False(t, ok, name)
	}
	for _, name := range []string{"queue-0000000001", "queue-20000000A0000000001", "queue-10000000a0000000001", "queue-00000000A0000000001", "qn-0000000001", "queue-|18BCFE5687B|0000000003"} {
		_, ok := priorityLayout.candidate(name)
		require.False(t, ok, name)
	}
	for _, name := range []string{"queue-0000000001", "queue-||0000000001", "queue-|xyz|0000000001", "queue-|-1|0000000001", "queue-|1000000000000|0000000001", "queue-|1|"} {
		_, ok := delayLayout.candidate(name)
		require.False(t, ok, name)
	}
	for _, name := range []string{"entry-0000000001", "entry-1-0000000001", "entry-1234-0000000001", "entry-x00-0000000001", "entry-+10-0000000001"} {
		_, ok := kazooLayout.candidate(name)
		require.False(t, ok, name)
	}
}

func TestOrder(t *testing.T) {
	sorted := func(l layout, names ...string) []string {
		var list []candidate
		for _, name := range names {
			c, ok := l.candidate(name)
			require.True(t, ok, name)
			list = append(list, c)
		}
		slices.SortFunc(list, candidate.compare)
		for i, c := range list {
			names[i] = c.name
		}
		return names
	}
	require.Equal(t, []string{"qn-0000000002", "qn-2147483647", "qn--2147483648"},
		sorted(simpleLayout, "qn--2147483648", "qn-2147483647", "qn-0000000002"))
	require.Equal(t, []string{"queue-0FFFFFFFF0000000009", "queue-1000000050000000002", "queue-1000000050000000003"},
		sorted(priorityLayout, "queue-1000000050000000003", "queue-0FFFFFFFF0000000009", "queue-1000000050000000002"))
	require.Equal(t, []string{"queue-|00000009|0000000001", "queue-|123456789|0000000000"},
		sorted(delayLayout, "queue-|123456789|0000000000", "queue-|00000009|0000000001"))
}

// The bytes are those of Curator's ItemSerializer.
func TestFrame(t *testing.T) {
	require.Equal(t, "00010001"+"01"+"00000003"+"616263"+"02", hex.EncodeToString(frame([]byte("abc"))))
	for text, want := range map[string][][]byte{
		"0001000102":                         nil,
		"00010001010000000002":               {{}},
		"0001000101000000016101000000016202": {[]byte("a"), []byte("b")},
		"00010001010000000161" + "02" + "ff": {[]byte("a")},
	} {
		data, err := hex.DecodeString(text)
		require.NoError(t, err)
		items, err := unframe(data)
		require.NoError(t, err, text)
		require.Equal(t, want, items, text)
	}
	whole := frame([]byte("abc"))
	for n := range whole {
		_, err := unframe(whole[:n])
		require.Error(t, err, n)
	}
	for _, text := range []string{"0001000201000000016102", "0001000103", "0001000101ffffffff02"} {
		data, err := hex.DecodeString(text)
		require.NoError(t, err)
		_, err = unframe(data)
		require.Error(t, err, text)
	}
}

func FuzzUnframe(f *testing.F) {
	f.Add(frame([]byte("abc")))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := unframe(data)
		if err == nil && len(items) == 1 {
			back, err := unframe(frame(items[0]))
			require.NoError(t, err)
			require.Equal(t, items, back)
		}
	})
}
