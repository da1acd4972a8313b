package znode

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

func mustAuth(t testing.TB, cfg AuthConfig) *Auth {
	t.Helper()
	a, err := NewAuth(cfg)
	require.NoError(t, err)
	return a
}

var (
	bobID   = wire.ID{Scheme: "digest", ID: "bob:fyVmFCwVbTJYrznoSu1koqYEYF0="}
	joeID   = wire.ID{Scheme: "digest", ID: "joe:FENxr4a6NjHyA6SdXvQsKD0b0CA="}
	localID = wire.ID{Scheme: "ip", ID: "127.0.0.1"}
	superID = wire.ID{Scheme: "super"}
)

func entry(perms int32, scheme, id string) wire.ACL {
	return wire.ACL{Perms: perms, Scheme: scheme, ID: id}
}

func TestACLListOpen(t *testing.T) {
	require.True(t, NewACLList(wire.OpenACL).Open())
	require.False(t, NewACLList(wire.ReadACL).Open())
	require.False(t, NewACLList(nil).Open())
	require.False(t, NewACLList([]wire.ACL{wire.OpenACL[0], wire.OpenACL[0]}).Open())
	require.False(t, NewACLList([]wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone", NullID: true}}).Open())
	require.Equal(t, wire.ReadACL, NewACLList(wire.ReadACL).Entries())
}

func TestAllows(t *testing.T) {
	list := func(entries ...wire.ACL) *ACLList { return NewACLList(entries) }
	tests := []struct {
		name string
		list *ACLList
		perm int32
		ids  []wire.ID
		want bool
	}{
		{"no list", nil, wire.PermAdmin, nil, true},
		{"empty list", list(), wire.PermAdmin, nil, true},
		{"open", list(wire.OpenACL...), wire.PermAdmin, nil, true},
		{"world read, read", list(wire.ReadACL...), wire.PermRead, nil, true},
		{"world read, write", list(wire.ReadACL...), wire.PermWrite, nil, false},
		{"either of two suffices", list(wire.ReadACL...), wire.PermRead | wire.PermAdmin, nil, true},
		{"unknown bits grant nothing", list(entry(32, "world", "anyone")), wire.PermAll, nil, false},
		{"no bits grant nothing", list(entry(0, "world", "anyone")), wire.PermRead, nil, false},
		{"digest match", list(entry(31, "digest", bobID.ID)), wire.PermRead, []wire.ID{localID, bobID}, true},
		{"digest of somebody else", list(entry(31, "digest", bobID.ID)), wire.PermRead, []wire.ID{localID, joeID}, false},
		{"no identity", list(entry(31, "digest", bobID.ID)), wire.PermRead, nil, false},
		{"the bit must be on the matching entry", list(entry(1, "world", "anyone"), entry(2, "digest", bobID.ID)), wire.PermWrite, []wire.ID{joeID}, false},
		{"second entry", list(entry(1, "world", "anyone"), entry(2, "digest", bobID.ID)), wire.PermWrite, []wire.ID{bobID}, true},
		{"super", list(entry(0, "digest", bobID.ID)), wire.PermAdmin, []wire.ID{localID, superID}, true},
		{"ip", list(entry(1, "ip", "127.0.0.0/8")), wire.PermRead, []wire.ID{localID}, true},
		{"ip elsewhere", list(entry(1, "ip", "10.0.0.0/8")), wire.PermRead, []wire.ID{localID}, false},
		{"unknown scheme is ignored", list(entry(31, "nope", "x")), wire.PermRead, []wire.ID{{Scheme: "nope", ID: "x"}}, false},
		{"world with another id", list(entry(31, "world", "someone")), wire.PermRead, nil, false},
		{"schemes are case-sensitive", list(entry(31, "World", "anyone")), wire.PermRead, nil, false},
		{"auth is no scheme of a stored list", list(entry(31, "auth", "")), wire.PermRead, []wire.ID{bobID}, false},
		{"null id", list(wire.ACL{Perms: 31, Scheme: "digest", NullID: true}), wire.PermRead, []wire.ID{{Scheme: "digest"}}, false},
	}
	a, skip := mustAuth(t, AuthConfig{}), mustAuth(t, AuthConfig{SkipACL: true})
	for _, tt := range tests {
		require.Equal(t, tt.want, a.Allows(tt.list, tt.perm, tt.ids), tt.name)
		require.True(t, skip.Allows(tt.list, tt.perm, tt.ids), tt.name)
	}
	noDigest := mustAuth(t, AuthConfig{DigestDisabled: true})
	require.False(t, noDigest.Allows(list(entry(31, "digest", bobID.ID)), wire.PermRead, []wire.ID{bobID}))
}

func TestAllowsDoesNotAllocate(t *testing.T) {
	a := mustAuth(t, AuthConfig{})
	l := NewACLList([]wire.ACL{
		entry(1, "ip", "10.0.0.0/8"), entry(1, "ip", "2001:db8::/32"), entry(1, "ip", "bad address"), entry(1, "digest", joeID.ID), entry(1, "digest", bobID.ID),
	})
	for _, remote := range []string{"127.0.0.1", "::1", "fe80::1%eth0"} {
		ids := []wire.ID{RemoteID(netip.MustParseAddr(remote)), bobID}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if !a.Allows(l, wire.PermRead, ids) || a.Allows(l, wire.PermAdmin, ids) {
				t.Fatal("wrong verdict")
			}
		}))
	}
}

func TestFix(t *testing.T) {
	null := func(perms int32, scheme string) wire.ACL { return wire.ACL{Perms: perms, Scheme: scheme, NullID: true} }
	type acls = []wire.ACL
	both := []wire.ID{localID, bobID, superID, joeID}
	tests := []struct {
		name string
		acl  acls
		ids  []wire.ID
		want acls
		code wire.Code
	}{
		{"null", nil, both, nil, wire.CodeInvalidACL},
		{"empty", acls{}, both, nil, wire.CodeInvalidACL},
		{"open", wire.OpenACL, nil, wire.OpenACL, wire.CodeOK},
		{"any bits", acls{entry(0, "world", "anyone"), entry(999, "world", "anyone")}, nil, acls{entry(0, "world", "anyone"), entry(999, "world", "anyone")}, wire.CodeOK},
		{"duplicates", acls{entry(1, "world", "anyone"), entry(31, "digest", "a:b"), entry(1, "world", "anyone")}, nil, acls{entry(1, "world", "anyone"), entry(31, "digest", "a:b")}, wire.CodeOK},
		{"null scheme", acls{{Perms: 31, NullScheme: true, ID: "x"}}, both, nil, wire.CodeInvalidACL},
		{"null scheme and id", acls{{Perms: 31, NullScheme: true, NullID: true}}, both, nil, wire.CodeInvalidACL},
		{"world of another id", acls{entry(31, "world", "x")}, both, nil, wire.CodeInvalidACL},
		{"world of no id", acls{entry(31, "world", "")}, both, nil, wire.CodeInvalidACL},
		{"world of a null id", acls{null(31, "world")}, both, nil, wire.CodeMarshalling},
		{"digest of a null id", acls{null(31, "digest")}, both, nil, wire.CodeMarshalling},
		{"ip of a null id", acls{null(31, "ip")}, both, nil, wire.CodeMarshalling},
		{"unknown scheme, null id", acls{null(31, "nope")}, both, nil, wire.CodeInvalidACL},
		{"unknown scheme", acls{entry(31, "nope", "x")}, both, nil, wire.CodeInvalidACL},
		{"empty scheme", acls{entry(31, "", "")}, both, nil, wire.CodeInvalidACL},
		{"super", acls{entry(31, "super", "")}, both, nil, wire.CodeInvalidACL},
		{"auth", acls{entry(31, "auth", "")}, []wire.ID{localID, bobID}, acls{entry(31, "digest", bobID.ID)}, wire.CodeOK},
		{"auth with a null id", acls{null(31, "auth")}, []wire.ID{bobID}, acls{entry(31, "digest", bobID.ID)}, wire.CodeOK},
		{"auth with an ignored id", acls{entry(3, "auth", "me:too")}, []wire.ID{bobID}, acls{entry(3, "digest", bobID.ID)}, wire.CodeOK},
		{"auth of several", acls{entry(31, "auth", "")}, both, acls{entry(31, "digest", bobID.ID), entry(31, "digest", joeID.ID)}, wire.CodeOK},
		{"auth of nobody", acls{entry(31, "auth", "")}, []wire.ID{localID, superID}, nil, wire.CodeInvalidACL},
		{"auth beside its expansion", acls{entry(31, "auth", ""), entry(31, "digest", bobID.ID)}, []wire.ID{bobID}, acls{entry(31, "digest", bobID.ID), entry(31, "digest", bobID.ID)}, wire.CodeOK},
		{"the first fault counts", acls{entry(31, "nope", ""), null(31, "world")}, both, nil, wire.CodeInvalidACL},
		{"one bad entry spoils all", acls{entry(31, "world", "anyone"), entry(31, "ip", "localhost")}, both, nil, wire.CodeInvalidACL},
	}
	a := mustAuth(t, AuthConfig{})
	for _, tt := range tests {
		got, code := a.Fix(tt.acl, tt.ids)
		require.Equal(t, tt.code, code, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
	_, code := mustAuth(t, AuthConfig{DigestDisabled: true}).Fix(acls{entry(31, "digest", "a:b")}, nil)
	require.Equal(t, wire.CodeInvalidACL, code)
}

// The orders in which ZooKeeper was seen to store the identities of a connection.
func TestFixOrder(t *testing.T) {
	seen := [][]string{
		{"bob:fyVmFCwVbTJYrznoSu1koqYEYF0="},
		{"u2:o9NxcCGDPOlcV7JVhmKHOf5ctVE=", "u1:fpT/y03U+EjItKZOSLGvjnJlyng="},
		{"u:dUgecXzGv5eIAXU3JIK7zLD1z+c=", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="},
		{"super:HXvGvgF2Ib4CYqqs04RcSgJn1Zo=", "super:nXindoZMsrhmm0JDlDwACbCSBn0="},
		{"nocolon:Ra+cHr2ZoHvBjtNArFGNGlVie4g=", "u1:fpT/y03U+EjItKZOSLGvjnJlyng=", "u1:KKCzdLaMebvSWTtpp9wYQZA1aRQ=", "u3:K5/bwMtB/l54LDjogxqfuCjt4nQ="},
	}
	a := mustAuth(t, AuthConfig{})
	for _, want := range seen {
		ids := []wire.ID{localID}
		for i := range want {
			ids = append(ids, wire.ID{Scheme: "digest", ID: want[len(want)-1-i]})
		}
		fixed, code := a.Fix([]wire.ACL{entry(31, "auth", "")}, ids)
		require.Equal(t, wire.CodeOK, code)
		var got []string
		for _, e := range fixed {
			got = append(got, e.ID)
		}
		require.Equal(t, want, got)
	}
}

// As soon as a connection has a dozen identities, their order depends on twice as many buckets; nobody is lost.
func TestFixOrderOfMany(t *testing.T) {
	a := mustAuth(t, AuthConfig{})
	for _, n := range []int{11, 12, 40} {
		var ids []wire.ID
		for i := range n {
			more, _ := a.Login([]byte("digest"), fmt.Appendf(nil, "u%d:😀", i), "")
			ids = append(ids, more...)
		}
		fixed, code := a.Fix([]wire.ACL{entry(1, "auth", "")}, ids)
		require.Equal(t, wire.CodeOK, code)
		require.Len(t, fixed, n)
		for _, id := range ids {
			require.Contains(t, fixed, entry(1, id.Scheme, id.ID))
		}
	}
}

// A request of a megabyte holds more than fifty thousand short entries.
func TestFixOfLongLists(t *testing.T) {
	var acl []wire.ACL
	for i := range 50_000 {
		acl = append(acl, entry(int32(i), "digest", "a:b"))
	}
	acl = append(acl, acl...)
	start := time.Now()
	got, code := mustAuth(t, AuthConfig{}).Fix(acl, nil)
	require.Equal(t, wire.CodeOK, code)
	require.Equal(t, acl[:50_000], got)
	require.Less(t, time.Since(start), 5*time.Second, "comparing each with each takes minutes")
}

func TestValidIDs(t *testing.T) {
	a := mustAuth(t, AuthConfig{})
	valid := map[string][]string{
		"digest": {"a:b", ":b", "a:b:", "a:b:::", " : "},
		"ip": {"1.2.3.4", "0.0.0.0", "255.255.255.255", "1.2.3.4/0", "1.2.3.4/32", "::", "::1", "1::", "1:2:3:4:5:6:7:8", "0:0:0:0:0:0:0:1", "ABCD::ef01/64",
			"::/0", "::1/128", "1:2:3::6:7:8", "1.2.3.4/+8", "+1.2.3.4", "01.2.3.-0", "1.2.3.4/-0"},
	}
	invalid := map[string][]string{
		"digest": {"", "a", "a:", ":", "::", "a:b:c", "a::b", "a:b:c:"},
		"ip": {"", "localhost", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.", ".2.3.4", "1.2.3.-4", "a.b.c.d", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/+", "1.2.3.4/-", "1.2.3.4/+-8", "1.2.3.4/x", "1.2.3.4/8/8",
			"1.2.3.4 ", "::1::", ":::", ":", ":1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "g::", "::1.2.3.4", "fe80::1%eth0", "::1/129", "1.2.3.99999999999999999999"},
	}
	for scheme, ids := range valid {
		for _, id := range ids {
			_, code := a.Fix([]wire.ACL{entry(31, scheme, id)}, nil)
			require.Equal(t, wire.CodeOK, code, "%s %q", scheme, id)
		}
	}
	for scheme, ids := range invalid {
		for _, id := range ids {
			_, code := a.Fix([]wire.ACL{entry(31, scheme, id)}, nil)
			require.Equal(t, wire.CodeInvalidACL, code, "%s %q", scheme, id)
		}
	}
}

func TestMask(t *testing.T) {
	a := mustAuth(t, AuthConfig{})
	stored := []wire.ACL{entry(31, "digest", "bob:secret=:more"), entry(1, "ip", "1.2.3.4"), entry(31, "digest", ":h"), entry(31, "digest", "odd"), entry(1, "world", "anyone")}
	before := append([]wire.ACL(nil), stored...)
	require.Equal(t, []wire.ACL{entry(31, "digest", "bob:x"), entry(1, "ip", "1.2.3.4"), entry(31, "digest", ":x"), entry(31, "digest", "odd:x"), entry(1, "world", "anyone")}, a.Mask(stored))
	require.Equal(t, before, stored)
	require.Same(t, &wire.OpenACL[0], &a.Mask(wire.OpenACL)[0], "nothing to hide, nothing to copy")
	require.Empty(t, a.Mask(nil))
}

func BenchmarkAllows(b *testing.B) {
	a := mustAuth(b, AuthConfig{})
	lists := map[string]*ACLList{
		"open":   NewACLList(wire.OpenACL),
		"digest": NewACLList([]wire.ACL{entry(1, "world", "anyone"), entry(31, "digest", joeID.ID), entry(31, "digest", bobID.ID)}),
		"ip":     NewACLList([]wire.ACL{entry(31, "ip", "10.0.0.0/8"), entry(31, "ip", "127.0.0.0/8")}),
	}
	ids := []wire.ID{localID, bobID}
	for _, name := range []string{"open", "digest", "ip"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !a.Allows(lists[name], wire.PermWrite, ids) {
					b.Fatal(fmt.Sprint("refused by ", name))
				}
			}
		})
	}
}

func TestFixBoundsTheExpansion(t *testing.T) {
	a := mustAuth(t, AuthConfig{})
	var ids []wire.ID
	for i := range 200 {
		ids = append(ids, wire.ID{Scheme: "digest", ID: fmt.Sprintf("u%d:h", i)})
	}
	var acl []wire.ACL
	for i := range aclExpandedEntriesMax / len(ids) {
		acl = append(acl, wire.ACL{Perms: int32(i), Scheme: "auth"})
	}
	fixed, code := a.Fix(acl, ids)
	require.Equal(t, wire.CodeOK, code)
	require.Len(t, fixed, len(acl)*len(ids))
	_, code = a.Fix(append(acl, wire.ACL{Perms: 999, Scheme: "auth"}), ids)
	require.Equal(t, wire.CodeInvalidACL, code)
}
