package zxid

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestZxidParts(t *testing.T) {
	tests := []struct {
		epoch   Epoch
		counter uint32
		want    Zxid
		text    string
	}{
		{0, 0, 0, "0x0"},
		{0, 0x2f, 0x2f, "0x2f"},
		{1, CounterMin, 0x100000001, "0x100000001"},
		{2, CounterMax, 0x2fffffffe, "0x2fffffffe"},
		{0x7fffffff, 0xffffffff, 0x7fffffffffffffff, "0x7fffffffffffffff"},
	}
	for _, tt := range tests {
		z := Make(tt.epoch, tt.counter)
		require.Equal(t, tt.want, z)
		require.Equal(t, tt.epoch, z.Epoch())
		require.Equal(t, tt.counter, z.Counter())
		require.Equal(t, tt.text, z.String())
	}
}

func TestSessionID(t *testing.T) {
	require.Equal(t, "0x10000216e9a0000", SessionID(0x10000216e9a0000).String())
	require.Equal(t, byte(1), SessionID(0x10000216e9a0000).ServerByte())
	require.Equal(t, byte(0xfe), SessionID(-0x1ffffffffffffff).ServerByte())
	require.Equal(t, "0xfe00000000000001", SessionID(-0x1ffffffffffffff).String())
}
