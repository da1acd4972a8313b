package session

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"zabra/zab/zxid"
)

func TestPassword(t *testing.T) {
	// Observed on servers of Apache ZooKeeper; the last one comes out of java.util.Random itself.
	tests := []struct {
		id   zxid.SessionID
		want string
	}{
		{0x0100000bfa450000, "112809a3ca86261fd7abb9f6239d474f"},
		{0x010000120b410000, "c5e476e06e9759ecab199bc567d85f05"},
		{0x0100000bfa45007d, "012ce7a0e6ff4424eefe3cbb0552bdcf"},
		{0x0100000bfa45007e, "c8c8f8a0061da7550e3607398ab77f68"},
		{0x010000216e9a0000, "b4d2645931a0c0c7b2061df0620e1a6e"},
		{-1, "20f62cb5648dc2d771471c8a2486a9ee"},
	}
	for _, tt := range tests {
		p := Password(tt.id)
		require.Equal(t, tt.want, hex.EncodeToString(p[:]), tt.id)
	}
	require.NotEqual(t, Password(-1), Password(0), "the sign bit takes no part, the other 47 do")
}

func TestFirstID(t *testing.T) {
	const wall = 1_700_000_000_000 // 0x18bcfe56800
	tests := []struct {
		name   string
		server byte
		wallMs int64
		floor  zxid.SessionID
		want   zxid.SessionID
	}{
		{"standalone", 1, wall, 0, 0x018bcfe568000000},
		{"top byte may be negative", 0xfe, wall, 0, -0x0174301a98000000},
		{"clock at its 40-bit limit", 2, 1<<40 - 1, 0, 0x02ffffffffff0000},
		{"clock beyond 40 bits", 2, 1<<40 + 5, 0, 0x0200000000050000},
		{"floor below", 1, wall, 0x018bcfe567ff1234, 0x018bcfe568000000},
		{"floor equal", 1, wall, 0x018bcfe568000000, 0x018bcfe568000001},
		{"floor above", 1, wall, 0x019bcfe568000007, 0x019bcfe568000008},
		{"floor above, negative ids", 0x80, wall, -0x7f01000000000000, -0x7f00ffffffffffff},
		{"floor of another server", 1, wall, 0x029bcfe568000007, 0x018bcfe568000000},
		{"floor at the end of the byte", 1, wall, 0x01ffffffffffffff, 0x0100000000000000},
		{"clock before 1970", 1, -1, 0, 0x01ffffffffff0000},
		{"server 0 at time 0", 0, 0, 0, 1},
		{"server 128 at time 0", 128, 0, 0, -1<<63 + 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, FirstID(tt.server, tt.wallMs, tt.floor))
		})
	}
}

func TestFirstIDIsAboveFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.Byte().Draw(t, "server")
		floor := zxid.SessionID(rapid.Int64().Draw(t, "floor"))
		id := FirstID(server, rapid.Int64().Draw(t, "wall"), floor)
		require.Equal(t, server, id.ServerByte())
		require.False(t, id == 0 || id == -1<<63)
		if floor.ServerByte() == server && uint64(floor)&idCounterMask != idCounterMask {
			require.Greater(t, uint64(id), uint64(floor))
		}
	})
}

func TestIDs(t *testing.T) {
	tests := []struct {
		name  string
		first zxid.SessionID
		want  []zxid.SessionID
	}{
		{"plain", 0x0100000bfa450000, []zxid.SessionID{0x0100000bfa450000, 0x0100000bfa450001, 0x0100000bfa450002}},
		{"beyond 16 bits", 0x010000000000fffe, []zxid.SessionID{0x010000000000fffe, 0x010000000000ffff, 0x0100000000010000}},
		{"zero is skipped", 0, []zxid.SessionID{1, 2}},
		{"zero is skipped on the way", 0x00ffffffffffffff, []zxid.SessionID{0x00ffffffffffffff, 1, 2}},
		{"container mark is skipped", -1 << 63, []zxid.SessionID{-1<<63 + 1, -1<<63 + 2}},
		{"container mark is skipped on the way", -0x7f00000000000001, []zxid.SessionID{-0x7f00000000000001, -1<<63 + 1}},
		{"stays in its byte", 0x01ffffffffffffff, []zxid.SessionID{0x01ffffffffffffff, 0x0100000000000000}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewIDs(tt.first)
			for _, want := range tt.want {
				require.Equal(t, want, g.Next())
			}
		})
	}
}

func TestNegotiate(t *testing.T) {
	tests := []struct{ ask, min, max, want int32 }{
		{10000, 4000, 40000, 10000},
		{4000, 4000, 40000, 4000},
		{3999, 4000, 40000, 4000},
		{1, 4000, 40000, 4000},
		{0, 4000, 40000, 4000},
		{-1, 4000, 40000, 4000},
		{40000, 4000, 40000, 40000},
		{40001, 4000, 40000, 40000},
		{1<<31 - 1, 4000, 40000, 40000},
		{5000, 9000, 3000, 3000},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Negotiate(tt.ask, tt.min, tt.max), tt)
	}
}

func TestRaise(t *testing.T) {
	g := NewIDs(FirstID(3, 1_700_000_000_000, 0))
	first := g.Next()
	g.Raise(first)
	require.Equal(t, first+1, g.Next(), "known already")
	g.Raise(first + 10)
	require.Equal(t, first+11, g.Next())
	g.Raise(withCounter(4, uint64(first)+1000))
	g.Raise(0)
	require.Equal(t, first+12, g.Next(), "other servers' ids are no floor")
	g.Raise(withCounter(3, idCounterMask))
	require.Equal(t, withCounter(3, 0), g.Next(), "it begins anew")
	neg := NewIDs(FirstID(200, 1_700_000_000_000, 0))
	n := neg.Next()
	neg.Raise(n + 5)
	require.Equal(t, n+6, neg.Next())
}

func TestReserveMore(t *testing.T) {
	mark := NewIDs(FirstID(3, 1_000_000, 0)).Reserved()
	for _, floor := range []zxid.SessionID{0, 2<<idCounterBits | 5, mark - reserveIDs, mark - reserveIDs + 1000} {
		got, more := ReserveMore(mark, floor)
		require.False(t, more, "%v", floor)
		require.Equal(t, mark, got)
	}
	for _, floor := range []zxid.SessionID{mark - 1, mark, mark + 1, mark + reserveIDs} {
		got, more := ReserveMore(mark, floor)
		require.True(t, more, "%v", floor)
		require.Equal(t, floor+reserveIDs, got)
	}
}
