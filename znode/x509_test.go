package znode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

// TestX509ValidID: the answers are those of new X500Principal(id).
func TestX509ValidID(t *testing.T) {
	valid := []string{
		"", "CN=a", "cn=a", "CN=a,O=b", "CN=a, O=b ; C=de", "CN=a+OU=b,O=c", `CN=a\,b`, `CN="a,b",O=c`, `CN="a\"b"`, "CN=",
		"1.2.840.113549.1.9.1=#16036e407a", "OID.2.5.4.3=a", "EMAILADDRESS=n@z", "DC=example,DC=com", "CN=ä", "CN=#0c0161", `CN=a\ `,
		`CN=\61`, `CN=\#a`, "CN=a=b", "CN=a#b", "SERIALNUMBER=5", "CN = a", "T=x,CN=y", "CN=a\n",
	}
	for _, id := range valid {
		require.True(t, X509Provider{}.ValidID(id), id)
	}
	invalid := []string{"a", "=a", "XY=a", "CN=a,", "CN=a,b", ",", "CN=a,,O=b", `CN="a`, `CN=a"b`, "CN=#", "CN=#1", "CN=#zz", "CN=a<b", `CN=a\`, "1=a", "3.1=a", "1..2=a", " ", `CN=\zz`, `CN=a\xb`,
		"CN=#0261", "CN=a>b", "CN=a+b", "C N=a"}
	for _, id := range invalid {
		require.False(t, X509Provider{}.ValidID(id), id)
	}
}

func TestX509Identity(t *testing.T) {
	p := X509Provider{SuperUser: "CN=admin"}
	require.Equal(t, []wire.ID{{Scheme: "x509", ID: "CN=a"}}, p.IDs("CN=a"))
	require.Equal(t, []wire.ID{{Scheme: "x509", ID: "CN=admin"}, {Scheme: "super", ID: "CN=admin"}}, p.IDs("CN=admin"))
	require.Equal(t, []wire.ID{{Scheme: "x509", ID: ""}}, X509Provider{}.IDs(""), "a certificate without a subject is nobody's superuser")
	require.True(t, p.Matches("CN=a", "CN=a"))
	require.False(t, p.Matches("CN=a", "CN=A"))
	require.True(t, p.Matches("CN=admin", "CN=a"))
	require.False(t, X509Provider{}.Matches("", "CN=a"))

	a := mustAuth(t, AuthConfig{Providers: []Provider{p}})
	cn := wire.ID{Scheme: "x509", ID: "CN=a,O=b"}
	fixed, code := a.Fix([]wire.ACL{entry(31, "auth", ""), entry(1, "x509", "CN=c")}, []wire.ID{localID, cn})
	require.Equal(t, wire.CodeOK, code)
	require.Equal(t, []wire.ACL{entry(31, "x509", "CN=a,O=b"), entry(1, "x509", "CN=c")}, fixed)
	_, code = a.Fix([]wire.ACL{entry(1, "x509", "nobody")}, nil)
	require.Equal(t, wire.CodeInvalidACL, code)
	_, code = a.Login([]byte("x509"), nil, "127.0.0.1")
	require.Equal(t, wire.CodeAuthFailed, code)
	require.Equal(t, []wire.ClientInfo{{Scheme: "x509", User: "CN=a,O=b"}}, a.WhoAmI([]wire.ID{cn}))

	_, code = mustAuth(t, AuthConfig{}).Fix([]wire.ACL{entry(1, "x509", "CN=a")}, nil)
	require.Equal(t, wire.CodeInvalidACL, code, "without the provider nobody is known by a certificate")
}

func FuzzX509ValidID(f *testing.F) {
	for _, s := range []string{"CN=a,O=b", `CN="a\`, `CN=a\`, "CN=#", "1.2=#00+", " = ", `CN= "a" ,`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" {
			return // the name of nobody; a blank is none
		}
		require.Equal(t, X509Provider{}.ValidID(s), X509Provider{}.ValidID(" "+s))
	})
}
