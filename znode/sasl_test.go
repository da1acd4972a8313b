package znode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

func TestSASLEntries(t *testing.T) {
	p := SASLProvider("")
	for id, valid := range map[string]bool{
		"bob": true, "": true, "a/b/c": true, "zk/host@REALM": true, "zk@REALM": true, "@": true,
		"a/b/c@REALM": false, "a@b@c": false, "a@b/c": false,
	} {
		require.Equal(t, valid, p.ValidID(id), id)
	}
	require.True(t, p.Matches("bob", "bob"))
	require.False(t, p.Matches("bob", "Bob"))
	require.True(t, p.Matches("super", "bob"), "super is everybody")
	require.False(t, p.Matches("bob", "super"))
	require.False(t, p.Matches("bob", ""))
	any := SASLProvider("readers")
	require.True(t, any.Matches("bob", "readers"))
	require.False(t, any.Matches("bob", "writers"))
	_, code := p.Authenticate("127.0.0.1", []byte("bob"))
	require.Equal(t, wire.CodeAuthFailed, code, "an auth request does not log in")
}

func TestSASLInACLs(t *testing.T) {
	a, err := NewAuth(AuthConfig{Providers: []Provider{SASLProvider("readers")}})
	require.NoError(t, err)
	bob := []wire.ID{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "sasl", ID: "bob"}}
	fixed, code := a.Fix([]wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}, {Perms: wire.PermRead, Scheme: "sasl", ID: "readers"}}, bob)
	require.Equal(t, wire.CodeOK, code)
	require.Equal(t, []wire.ACL{{Perms: wire.PermAll, Scheme: "sasl", ID: "bob"}, {Perms: wire.PermRead, Scheme: "sasl", ID: "readers"}}, fixed)
	list := NewACLList(fixed)
	alice := []wire.ID{{Scheme: "sasl", ID: "alice"}}
	require.True(t, a.Allows(list, wire.PermWrite, bob))
	require.True(t, a.Allows(list, wire.PermRead, alice))
	require.False(t, a.Allows(list, wire.PermWrite, alice))
	require.True(t, a.Allows(list, wire.PermWrite, []wire.ID{SuperID()}))
	require.False(t, a.Allows(list, wire.PermRead, []wire.ID{{Scheme: "digest", ID: "bob"}}), "another scheme's bob")
	require.Equal(t, []wire.ClientInfo{{Scheme: "ip", User: "127.0.0.1"}, {Scheme: "sasl", User: "bob"}}, a.WhoAmI(bob))

	without, err := NewAuth(AuthConfig{})
	require.NoError(t, err)
	_, code = without.Fix([]wire.ACL{{Perms: wire.PermAll, Scheme: "sasl", ID: "bob"}}, bob)
	require.Equal(t, wire.CodeInvalidACL, code)
	require.False(t, without.Allows(list, wire.PermRead, bob))
}

func TestEnsembleScheme(t *testing.T) {
	a, err := NewAuth(AuthConfig{Providers: []Provider{EnsembleProvider([]string{"east", "west"})}})
	require.NoError(t, err)
	for token, want := range map[string]wire.Code{"east": wire.CodeOK, "west": wire.CodeOK, "": wire.CodeOK, "north": wire.CodeAuthFailed} {
		ids, code := a.Login([]byte("ensemble"), []byte(token), "127.0.0.1")
		require.Equal(t, want, code, token)
		require.Empty(t, ids)
	}
	_, code := EnsembleProvider(nil).Authenticate("", []byte("any"))
	require.Equal(t, wire.CodeOK, code)
	_, code = a.Fix([]wire.ACL{{Perms: wire.PermAll, Scheme: "ensemble", ID: "east"}}, nil)
	require.Equal(t, wire.CodeInvalidACL, code)
}
