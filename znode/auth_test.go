package znode

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

func TestLoginDigest(t *testing.T) {
	a := mustAuth(t, AuthConfig{SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="})
	tests := []struct {
		token string
		want  []wire.ID
	}{
		{"bob:secret", []wire.ID{bobID}},
		{"joe:x", []wire.ID{joeID}},
		{"a:b:c", []wire.ID{{Scheme: "digest", ID: "a:cLzgnoJ6mP5qz3w+mwvPE2vDgu0="}}},
		{"super:test", []wire.ID{{Scheme: "digest", ID: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}, superID}},
		{"super:tes", []wire.ID{{Scheme: "digest", ID: "super:NYTkEfP5+Z45ihH0ERJTUxAJJaA="}}},
		{"nocolon", []wire.ID{{Scheme: "digest", ID: "nocolon:Ra+cHr2ZoHvBjtNArFGNGlVie4g="}}},
		{"", []wire.ID{{Scheme: "digest", ID: ":2jmj7l5rSw0yVb/vlWAYkK/YBwk="}}},
	}
	for _, tt := range tests {
		ids, code := a.Login([]byte("digest"), []byte(tt.token), "127.0.0.1")
		require.Equal(t, wire.CodeOK, code, tt.token)
		require.Equal(t, tt.want, ids, tt.token)
	}

	// The token is text: what is no UTF-8 is replaced before it is hashed. ZooKeeper was seen to give these identities.
	for token, want := range map[string]string{
		"u:\xff":                     "u:NP+S9gihaPOxs49p+sWDO0/R0ac=",
		"u:\xed\xa0\x80\xe2\x82\x80": "u:EBZCTAyYghcl5UdxBg/zCqCvhUs=",
	} {
		ids, code := a.Login([]byte("digest"), []byte(token), "")
		require.Equal(t, wire.CodeOK, code)
		require.Equal(t, []wire.ID{{Scheme: "digest", ID: want}}, ids, "%q", token)
	}
}

func TestLoginRefused(t *testing.T) {
	a := mustAuth(t, AuthConfig{})
	tests := []struct {
		name          string
		scheme, token []byte
	}{
		{"null scheme", nil, []byte("a:b")},
		{"null token", []byte("digest"), nil},
		{"empty scheme", []byte{}, []byte("a:b")},
		{"unknown scheme", []byte("nope"), []byte("a:b")},
		{"world", []byte("world"), []byte("anyone")},
		{"auth", []byte("auth"), []byte("")},
		{"super", []byte("super"), []byte("")},
		{"case", []byte("Digest"), []byte("a:b")},
	}
	for _, tt := range tests {
		ids, code := a.Login(tt.scheme, tt.token, "127.0.0.1")
		require.Equal(t, wire.CodeAuthFailed, code, tt.name)
		require.Empty(t, ids, tt.name)
	}
	_, code := mustAuth(t, AuthConfig{DigestDisabled: true}).Login([]byte("digest"), []byte("a:b"), "127.0.0.1")
	require.Equal(t, wire.CodeAuthFailed, code)
}

func TestLoginIP(t *testing.T) {
	for _, token := range [][]byte{[]byte("anything"), {}, nil} {
		ids, code := mustAuth(t, AuthConfig{}).Login([]byte("ip"), token, "0:0:0:0:0:0:0:1")
		require.Equal(t, wire.CodeOK, code)
		require.Equal(t, []wire.ID{{Scheme: "ip", ID: "0:0:0:0:0:0:0:1"}}, ids)
	}
}

func TestDigestAlg(t *testing.T) {
	want := map[string]string{
		"":            "fyVmFCwVbTJYrznoSu1koqYEYF0=",
		"SHA1":        "fyVmFCwVbTJYrznoSu1koqYEYF0=",
		"sha-1":       "fyVmFCwVbTJYrznoSu1koqYEYF0=",
		"MD5":         "pasriMfeJxH/y5wk/opUWg==",
		"SHA-256":     "huAluaVu3uER4LIpielGv9Qqk5x3YVDr6I2R/mXf2wE=",
		"SHA-512":     "MON49O1q1UU4gzHRH8XFfdstQyTRtQRoDT+8dvk+qrZdXJegJxeoYDJfch4LeWUjXjSWIiqnKXpFYZi7tC1AZw==",
		"SHA-512/256": "Og/IurIw/GdzbFYQ/Z98uLvNTACkWBakgqXV2r5V1Zw=",
		"SHA3-256":    "ukO6WgYOvbjGYGRnCevsZ2T9tQ3ynirMDLl7Q45X6Rc=",
	}
	for alg, hash := range want {
		ids, code := mustAuth(t, AuthConfig{DigestAlg: alg}).Login([]byte("digest"), []byte("bob:secret"), "")
		require.Equal(t, wire.CodeOK, code, alg)
		require.Equal(t, "bob:"+hash, ids[0].ID, alg)
	}
	_, err := NewAuth(AuthConfig{DigestAlg: "ROT13"})
	require.ErrorContains(t, err, "ROT13")
}

// certProvider stands for the providers that other packages bring: its identities count as authenticated and one of
// them matches everything.
type certProvider struct{ scheme string }

func (p certProvider) Scheme() string      { return p.scheme }
func (certProvider) Authenticated() bool   { return true }
func (certProvider) ValidID(s string) bool { return s != "bad" }
func (certProvider) User(id string) string { return "user " + id }
func (certProvider) Matches(identity, aclID string) bool {
	return identity == "CN=admin" || identity == aclID
}
func (certProvider) Authenticate(string, []byte) ([]wire.ID, wire.Code) {
	return nil, wire.CodeAuthFailed
}

func TestProviders(t *testing.T) {
	a := mustAuth(t, AuthConfig{Providers: []Provider{certProvider{"x509"}}})
	cn := wire.ID{Scheme: "x509", ID: "CN=a"}
	fixed, code := a.Fix([]wire.ACL{entry(31, "auth", ""), entry(1, "x509", "CN=b")}, []wire.ID{localID, cn})
	require.Equal(t, wire.CodeOK, code)
	require.Equal(t, []wire.ACL{entry(31, "x509", "CN=a"), entry(1, "x509", "CN=b")}, fixed)
	_, code = a.Fix([]wire.ACL{entry(1, "x509", "bad")}, nil)
	require.Equal(t, wire.CodeInvalidACL, code)
	require.True(t, a.Allows(NewACLList(fixed), wire.PermAdmin, []wire.ID{cn}))
	require.True(t, a.Allows(NewACLList(fixed), wire.PermAdmin, []wire.ID{{Scheme: "x509", ID: "CN=admin"}}))
	require.False(t, a.Allows(NewACLList(fixed), wire.PermAdmin, []wire.ID{{Scheme: "x509", ID: "CN=b"}}))
	_, code = a.Login([]byte("x509"), []byte("x"), "127.0.0.1")
	require.Equal(t, wire.CodeAuthFailed, code)

	for _, scheme := range []string{"world", "auth", "super", "ip", "digest"} {
		_, err := NewAuth(AuthConfig{Providers: []Provider{certProvider{scheme}}})
		require.ErrorContains(t, err, scheme)
	}
}

func TestWhoAmI(t *testing.T) {
	a := mustAuth(t, AuthConfig{Providers: []Provider{certProvider{"x509"}}})
	got := a.WhoAmI([]wire.ID{localID, bobID, superID, {Scheme: "x509", ID: "CN=a"}, {Scheme: "gone", ID: "x"}})
	require.Equal(t, []wire.ClientInfo{{Scheme: "ip", User: "127.0.0.1"}, {Scheme: "digest", User: "bob"}, {Scheme: "super"}, {Scheme: "x509", User: "user CN=a"}, {Scheme: "gone"}}, got)
	require.Empty(t, a.WhoAmI(nil))
}

func TestAddIDs(t *testing.T) {
	have := make([]wire.ID, 1, 8)
	have[0] = localID
	more := AddIDs(have, []wire.ID{localID, bobID})
	require.Equal(t, []wire.ID{localID, bobID}, more)
	other := AddIDs(have, []wire.ID{joeID})
	require.Equal(t, []wire.ID{localID, joeID}, other)
	require.Equal(t, []wire.ID{localID, bobID}, more, "requests in flight keep the identities that they were sent with")
	require.Same(t, &more[0], &AddIDs(more, []wire.ID{bobID})[0])
}

func TestRemoteID(t *testing.T) {
	tests := []struct{ ip, want string }{
		{"127.0.0.1", "127.0.0.1"},
		{"::ffff:10.1.2.3", "10.1.2.3"},
		{"::1", "0:0:0:0:0:0:0:1"},
		{"::", "0:0:0:0:0:0:0:0"},
		{"2001:DB8::00a0:0:ffff", "2001:db8:0:0:0:a0:0:ffff"},
		{"fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"},
	}
	for _, tt := range tests {
		require.Equal(t, wire.ID{Scheme: "ip", ID: tt.want}, RemoteID(netip.MustParseAddr(tt.ip)), tt.ip)
	}
}

func TestMatchIP(t *testing.T) {
	tests := []struct {
		remote, acl string
		want        bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"127.0.0.1", "127.0.0.2/31", false},
		{"127.0.0.3", "127.0.0.2/31", true},
		{"127.0.0.1", "127.255.255.255/8", true},
		{"127.0.0.1", "0.0.0.0/0", true},
		{"::ffff:127.0.0.1", "127.0.0.1", true},
		{"::1", "::1", true},
		{"::1", "0:0:0:0:0:0:0:1", true},
		{"::1", "::/0", true},
		{"::1", "0.0.0.0/0", false},
		{"127.0.0.1", "::/0", false},
		{"2001:db8:1::5", "2001:DB8::/32", true},
		{"2001:db9::5", "2001:db8::/32", false},
		{"2001:db8::8000", "2001:db8::ffff/113", true},
		{"2001:db8::7fff", "2001:db8::ffff/113", false},
		{"fe80::1%eth0", "fe80::/10", true},
		{"127.0.0.1", "localhost", false},
	}
	p := ipProvider{}
	for _, tt := range tests {
		remote := RemoteID(netip.MustParseAddr(tt.remote))
		require.Equal(t, tt.want, p.Matches(remote.ID, tt.acl), "%s in %s", tt.remote, tt.acl)
	}
	require.False(t, p.Matches("", "0.0.0.0/0"))
}

func FuzzParseNetwork(f *testing.F) {
	for _, s := range []string{"1.2.3.4/8", "::1", "1:2:3:4:5:6:7:8/64", "1::2::3", "::1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		network, ok := parseNetwork(s)
		if !ok {
			return
		}
		require.True(t, network.IsValid(), s)
		again, ok := parseNetwork(remoteText(network.Addr()))
		// A mapped address is written as the IPv4 address that it stands for.
		require.True(t, ok)
		require.Equal(t, network.Addr().Unmap(), again.Addr().Unmap(), s)
	})
}
