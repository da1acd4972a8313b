package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
)

func TestDecodeACLs(t *testing.T) {
	tests := []struct {
		name, in string
		want     []ACL
	}{
		{"null", "ffffffff", nil},
		{"empty", "00000000", []ACL{}},
		{"negative", "fffffffe", []ACL{}},
		{"open", "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65", OpenACL},
		{"auth with a null id", "00000001 0000001f 00000004 61757468 ffffffff", []ACL{{Perms: 31, Scheme: "auth", NullID: true}}},
		{"auth with an empty id", "00000001 0000001f 00000004 61757468 00000000", CreatorAllACL},
		{"any bits, bad text", "00000001 000003e7 00000001 ff 00000001 78", []ACL{{Perms: 999, Scheme: "\ufffd", ID: "x"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := jute.NewDecoder(unhex(t, tt.in), 0)
			got := DecodeACLs(&d)
			require.NoError(t, d.Err())
			require.Zero(t, d.Remaining())
			require.Equal(t, tt.want, got)
		})
	}
}

func TestDecodeACLsRefused(t *testing.T) {
	tests := []struct {
		name, in string
		want     error
	}{
		{"no length", "", jute.ErrShort},
		{"more entries than bytes", "7fffffff 0000001f 00000000 00000000", jute.ErrLength},
		{"one entry more than bytes", "00000002 0000001f 00000000 00000000 0000001f 00000000", jute.ErrLength},
		{"scheme ends early", "00000001 0000001f 00000009 776f726c64", jute.ErrShort},
		{"scheme of negative length", "00000001 0000001f fffffffe 00000000", jute.ErrLength},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := jute.NewDecoder(unhex(t, tt.in), 0)
			require.Nil(t, DecodeACLs(&d))
			require.ErrorIs(t, d.Err(), tt.want)
		})
	}
}

// Null and empty strings of an ACL are different entries: ZooKeeper keeps both as they came.
func TestACLComparable(t *testing.T) {
	require.NotEqual(t, ACL{Scheme: "auth"}, ACL{Scheme: "auth", NullID: true})
	require.True(t, ACL{Perms: 1, Scheme: "ip", ID: "::1"} == ACL{Perms: 1, Scheme: "ip", ID: "::1"})
}

// TestACLKept: a decoded list does not alias the frame.
func TestACLKept(t *testing.T) {
	var e jute.Encoder
	AppendACLs(&e, []ACL{{Perms: 1, Scheme: "digest", ID: "bob:hash"}})
	frame := e.Bytes()
	d := jute.NewDecoder(frame, 0)
	got := DecodeACLs(&d)
	clear(frame)
	require.Equal(t, []ACL{{Perms: 1, Scheme: "digest", ID: "bob:hash"}}, got)
}
