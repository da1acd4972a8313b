package wire

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
)

func TestFrameLength(t *testing.T) {
	tests := []struct {
		name string
		head uint32
		n    int
		ok   bool
	}{
		{"empty", 0, 0, true},
		{"ping", 8, 8, true},
		{"largest", FrameBytesMaxDefault, 1048575, true},
		{"too large", FrameBytesMaxDefault + 1, 1048576, false},
		{"largest number", 0x7fffffff, 1<<31 - 1, false},
		{"negative", 0xffffffff, -1, false},
		{"smallest number", 0x80000000, -1 << 31, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var head [FrameHeadBytes]byte
			binary.BigEndian.PutUint32(head[:], tt.head)
			n, ok := FrameLength(head, FrameBytesMaxDefault)
			require.Equal(t, tt.n, n)
			require.Equal(t, tt.ok, ok)
		})
	}
}

func TestFourLetterWord(t *testing.T) {
	known := []string{
		"conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr", "ruok", "srst", "srvr", "stat",
		"stmk", "wchc", "wchp", "wchs", "\xff\xf4\xff\xfd",
	}
	for _, w := range known {
		got, ok := FourLetterWord([4]byte([]byte(w)))
		require.True(t, ok, w)
		require.Equal(t, w, got)
		_, ok = FrameLength([4]byte([]byte(w)), FrameBytesMaxDefault)
		require.False(t, ok, "%q must not be a length that could be meant", w)
	}
	for _, w := range []string{"RUOK", "lsnp", "lead", "GET ", "ruo\n", "\x00\x00\x00\x2d", "\x00\x00\x00\x00"} {
		_, ok := FourLetterWord([4]byte([]byte(w)))
		require.False(t, ok, w)
	}
}

func TestFrameSuspect(t *testing.T) {
	tests := []struct{ head, want string }{
		{"GET ", "an HTTP request"},
		{"PRI ", "an HTTP request"},
		{"SSH-", "an SSH client"},
		{"\x16\x03\x01\x02", "a TLS handshake on a port without TLS"},
		{"lsnp", "an unknown four-letter word"},
		{"\xff\xff\xff\xff", ""},
		{"\x00\x10\x00\x00", ""},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, FrameSuspect([4]byte([]byte(tt.head))), "%q", tt.head)
	}
}

func TestAppendRequest(t *testing.T) {
	var e jute.Encoder
	AppendRequest(&e, RequestHeader{Xid: XidPing, Op: OpPing}, nil)
	AppendRequest(&e, RequestHeader{Xid: 7, Op: OpSetWatches}, &SetWatchesRequest{RelativeZxid: 1, Persistent: texts0("/p")})
	AppendRequest(&e, RequestHeader{Xid: 8, Op: OpSetWatches2}, &SetWatchesRequest{RelativeZxid: 1})
	want := "00000008 fffffffe 0000000b" +
		"0000001c 00000007 00000065 0000000000000001 ffffffff ffffffff ffffffff" +
		"00000024 00000008 00000069 0000000000000001 ffffffff ffffffff ffffffff ffffffff ffffffff"
	require.Equal(t, unhex(t, want), e.Bytes())
}

func TestAppendNotification(t *testing.T) {
	var e jute.Encoder
	e.Byte(0xaa) // frames are built behind others
	AppendNotification(&e, ReplyHeader{Xid: XidNotification, Zxid: 0x205},
		&WatcherEvent{Type: EventNodeCreated, State: StateSyncConnected, Path: []byte("/a")})
	want := "aa 0000001e ffffffff 0000000000000205 00000000 00000001 00000003 00000002 2f61"
	require.Equal(t, unhex(t, want), e.Bytes())
}
