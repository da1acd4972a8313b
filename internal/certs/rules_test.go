package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/internal/certs/certstest"
)

func TestVersionsAndSuites(t *testing.T) {
	both, old := []string{"TLSv1.3", "TLSv1.2"}, []string{"TLSv1.2"}
	const (
		v11, v12, v13 = tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13
		ecdsa128      = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
		rsa256        = tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
	)
	tests := []struct {
		name     string
		set      conf.TLS
		usual    []string
		min, max uint16
		suites   []uint16
		err      string
	}{
		{"nothing said", conf.TLS{}, both, v12, v13, nil, ""},
		{"nothing said, fips", conf.TLS{}, old, v12, v12, nil, ""},
		{"protocol", conf.TLS{Protocol: "TLSv1.3"}, old, v12, v13, nil, ""},
		{"old protocol", conf.TLS{Protocol: "TLSv1.2"}, both, v12, v12, nil, ""},
		{"list", conf.TLS{Protocol: "TLSv1.2", EnabledProtocols: []string{"TLSv1.3"}}, both, v13, v13, nil, ""},
		{"list in any order", conf.TLS{EnabledProtocols: []string{"TLSv1.2", " TLSv1.1"}}, both, v11, v12, nil, ""},
		{"unknown version", conf.TLS{EnabledProtocols: []string{"SSLv3"}}, both, 0, 0, nil, `p.enabledProtocols: "SSLv3" is not one of`},
		{"unknown protocol", conf.TLS{Protocol: "TLSv2"}, both, 0, 0, nil, `p.protocol: "TLSv2" is not one of`},
		{"suites of 1.2", conf.TLS{CipherSuites: []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", " TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}}, both, v12, v12, []uint16{ecdsa128, rsa256}, ""},
		{"suites of both", conf.TLS{CipherSuites: []string{"TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}}, both, v12, v13, []uint16{rsa256}, ""},
		{"suites of 1.3", conf.TLS{CipherSuites: []string{"TLS_AES_128_GCM_SHA256"}}, both, v13, v13, []uint16{}, ""},
		{"suites of 1.3, fips", conf.TLS{CipherSuites: []string{"TLS_AES_128_GCM_SHA256"}}, old, 0, 0, nil, "p.ciphersuites: none of them is left"},
		{"suites of nobody", conf.TLS{CipherSuites: []string{"TLS_DHE_DSS_WITH_AES_256_CBC_SHA"}}, both, 0, 0, nil, "p.ciphersuites: none of them is left"},
		{"client's certificate", conf.TLS{ClientAuth: "maybe"}, both, 0, 0, nil, `p.clientAuth: "maybe" is not none, want or need`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _, err := newRules("p.", &tt.set, tt.usual)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []uint16{tt.min, tt.max}, []uint16{r.minVersion, r.maxVersion})
			require.Equal(t, tt.suites, r.suites)
		})
	}
	_, remarks, err := newRules("p.", &conf.TLS{CipherSuites: []string{"TLS_DHE_DSS_WITH_AES_256_CBC_SHA", "TLS_AES_128_GCM_SHA256"}}, both)
	require.NoError(t, err)
	require.Equal(t, []string{"p.ciphersuites: not known here and left out: TLS_DHE_DSS_WITH_AES_256_CBC_SHA"}, remarks)
	for word, want := range map[string]tls.ClientAuthType{"": tls.RequireAndVerifyClientCert, "need": tls.RequireAndVerifyClientCert, "Want": tls.VerifyClientCertIfGiven, "none": tls.NoClientCert} {
		r, _, err := newRules("", &conf.TLS{ClientAuth: word}, both)
		require.NoError(t, err)
		require.Equal(t, want, r.clientAuth, word)
	}
	r, _, err := newRules("", &conf.TLS{ClientHostnameVerification: true}, both)
	require.NoError(t, err)
	require.False(t, r.checkClient, "only where names are checked at all")
}

func TestNames(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	issue := func(name string, hosts ...string) *x509.Certificate {
		return ca.Issue(t, pkix.Name{CommonName: name}, hosts...).Cert
	}
	byName, byIP := issue("x", "zk1.example", "*.zk.example"), issue("x", "10.0.0.1", "::1")
	tests := []struct {
		name    string
		cert    *x509.Certificate
		host    string
		remote  string
		reverse bool
		want    bool
	}{
		{"name", byName, "zk1.example", "10.0.0.9", false, true},
		{"name in other letters", byName, "ZK1.example.", "10.0.0.9", false, true},
		{"any name", byName, "a.zk.example", "10.0.0.9", false, true},
		{"other name", byName, "zk2.example", "10.0.0.9", true, false},
		{"address", byIP, "10.0.0.1", "10.0.0.1", false, true},
		{"address behind a name", byIP, "zk9.example", "10.0.0.1", false, true},
		{"dialled in", byIP, "", "10.0.0.1", false, true},
		{"mapped address", byIP, "", "::ffff:10.0.0.1", false, true},
		{"address of the sixth version", byIP, "::1", "::1", false, true},
		{"other address", byIP, "", "10.0.0.2", true, false},
		{"common name", issue("zk1.example"), "zk1.example", "10.0.0.9", false, true},
		{"common name that is an address", issue("10.0.0.9"), "", "10.0.0.9", false, true},
		{"common name beside others", issue("zk1.example", "zk2.example"), "zk1.example", "10.0.0.9", false, false},
		{"name of the address", byName, "", "10.0.0.7", true, true},
		{"name of the address, not allowed", byName, "", "10.0.0.7", false, false},
		{"name of an address that was dialled", byName, "10.0.0.7", "10.0.0.7", true, true},
		{"name that leads elsewhere", byName, "", "10.0.0.8", true, false},
		{"a name was dialled: that counts", byName, "zk2.example", "10.0.0.7", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNameCheck("ssl.quorum.", tt.reverse)
			n.lookupAddr = func(_ context.Context, addr string) ([]string, error) {
				if addr == "10.0.0.7" || addr == "10.0.0.8" {
					return []string{"other.example.", "zk1.example."}, nil
				}
				return nil, errors.New("no name")
			}
			n.lookupHost = func(_ context.Context, host string) ([]string, error) {
				if host == "zk1.example" {
					return []string{"10.0.0.6", "10.0.0.7"}, nil
				}
				return nil, errors.New("no address")
			}
			err := n.verify(tt.cert, tt.host, &net.TCPAddr{IP: net.ParseIP(tt.remote), Port: 5})
			require.Equal(t, tt.want, err == nil, "%v", err)
			if err != nil {
				require.ErrorContains(t, err, "set ssl.quorum.hostnameVerification=false")
			}
		})
	}
	require.ErrorContains(t, newNameCheck("", false).verify(byName, "zk9", nil), "the certificate is for zk1.example, *.zk.example, not for zk9")
	many := make([]string, 30)
	for i := range many {
		many[i] = "zk.example"
	}
	require.ErrorContains(t, newNameCheck("", false).verify(issue("", many...), "zk9", nil), " and others, not for zk9")
}

// TestSubject compares with what X500Principal.getName() of Java prints.
func TestSubject(t *testing.T) {
	type attr struct {
		Type  asn1.ObjectIdentifier
		Value any
	}
	oid := func(last ...int) asn1.ObjectIdentifier { return append(asn1.ObjectIdentifier{2, 5, 4}, last...) }
	cn, o, c := oid(3), oid(10), oid(6)
	email, dc, uid := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}, asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}
	ia5 := func(s string) asn1.RawValue { return asn1.RawValue{Tag: asn1.TagIA5String, Bytes: []byte(s)} }
	tests := []struct {
		subject [][]attr
		want    string
	}{
		{nil, ""},
		{[][]attr{{{c, "DE"}}, {{o, "Example Org"}}, {{cn, "client"}}}, "CN=client,O=Example Org,C=DE"},
		{[][]attr{{{oid(8), "Bayern"}}, {{oid(7), "Ort"}}, {{oid(9), "Weg 1"}}, {{oid(11), "u"}}, {{uid, "id"}}}, "UID=id,OU=u,STREET=Weg 1,L=Ort,ST=Bayern"},
		{[][]attr{{{dc, ia5("com")}}, {{dc, ia5("example")}}, {{cn, "a"}}}, "CN=a,DC=example,DC=com"},
		{[][]attr{{{cn, "a"}, {oid(11), "b"}}, {{o, "c"}}}, "O=c,CN=a+OU=b"},
		{[][]attr{{{cn, `a,b+c"d\e<f>g;h=i#j`}}}, `CN=a\,b\+c\"d\\e\<f\>g\;h\=i\#j`},
		{[][]attr{{{cn, "  a b  "}}}, `CN=\ \ a b\ \ `},
		{[][]attr{{{cn, "Müller"}}}, "CN=Müller"},
		{[][]attr{{{email, ia5("a@b")}}, {{cn, "a"}}}, "CN=a,1.2.840.113549.1.9.1=#1603614062"},
		{[][]attr{{{oid(5), "7"}}}, "2.5.4.5=#130137"},
		{[][]attr{{{cn, 5}}}, "CN=#020105"},
		{[][]attr{{{cn, ""}}}, "CN="},
	}
	for _, tt := range tests {
		type setSET []attr
		var sequence []setSET
		for _, s := range tt.subject {
			sequence = append(sequence, s)
		}
		raw, err := asn1.Marshal(sequence)
		require.NoError(t, err)
		got, err := Subject(&x509.Certificate{RawSubject: raw})
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
	_, err := Subject(&x509.Certificate{RawSubject: []byte{0x30, 1}})
	require.Error(t, err)
}
