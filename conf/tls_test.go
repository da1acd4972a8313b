package conf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFaultsOfTLS(t *testing.T) {
	const secure = base + "secureClientPort=2281\n"
	const revocation = "revoked certificates cannot be looked for by this version: refusing to trust certificates without that"
	tests := []struct{ name, text, want string }{
		{"revocation lists", secure + "ssl.crl=true", "zoo.cfg:3: ssl.crl: " + revocation},
		{"revocation server", secure + "ssl.ocsp=true", "zoo.cfg:3: ssl.ocsp: " + revocation},
		{"for clients on the plain port", base + "clientPort=2181\nclient.portUnification=true\nssl.crl=true", "zoo.cfg:4: ssl.crl: " + revocation},
		{"class with a context", base + "ssl.context.supplier.class=com.example.Mine", "zoo.cfg:2: ssl.context.supplier.class: com.example.Mine: Java classes cannot be loaded; name the stores with keyStore.location and trustStore.location instead"},
		{"class between servers", base + "ssl.quorum.context.supplier.class=com.example.Mine", "zoo.cfg:2: ssl.quorum.context.supplier.class: com.example.Mine: Java classes cannot be loaded; name the stores with keyStore.location and trustStore.location instead"},
		{"provider", base + "ssl.authProvider=mine", "zoo.cfg:2: ssl.authProvider: mine: the certificates of clients can only be judged by the provider x509"},
		{"one port twice", secure + "clientPort=2281", "zoo.cfg:2: secureClientPort: port 2281 is both the client port and the secure client port; client.portUnification=true lets one port do for both"},
		{"client's certificate", secure + "ssl.clientAuth=maybe", `zoo.cfg:3: ssl.clientAuth: "maybe" is not one of none, want, need`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, []string{tt.want}, faultsOf(t, tt.text, nil))
		})
	}
	mustParse(t, base+"clientPort=2281\nclientPortAddress=127.0.0.1\nsecureClientPort=2281\nsecureClientPortAddress=127.0.0.2", nil)
	mustParse(t, base+"clientPort=2281\nssl.crl=true\nssl.authProvider=x509\nssl.sslProvider=OPENSSL", nil)
}

func TestSettingsOfTLS(t *testing.T) {
	c := mustParse(t, base+"secureClientPort=2281\nsecureClientPortAddress=::1\nnetty.server.outstandingHandshake.limit=7\n"+
		"netty.server.earlyDropSecureConnectionHandshakes=true\nX509AuthenticationProvider.superUser=CN=admin\nclient.certReload=true", nil)
	require.Empty(t, c.Warnings)
	require.Empty(t, c.WithoutEffect)
	require.Equal(t, "[::1]:2281", c.SecureClientAddr())
	require.Empty(t, c.ClientAddr())
	require.True(t, c.ClientTLS())
	require.True(t, c.X509Auth())
	require.False(t, c.ServerTLS())
	require.Equal(t, 7, c.Security.HandshakesMax)
	require.True(t, c.Security.EarlyDrop)
	require.Equal(t, "CN=admin", c.Security.X509SuperUser)
	require.Contains(t, c.String(), "\nX509AuthenticationProvider.superUser=CN=admin\n")

	plain := mustParse(t, base+"clientPort=1\nauthProvider.1="+X509Provider, nil)
	require.False(t, plain.ClientTLS())
	require.True(t, plain.X509Auth(), "ACLs can name clients of another server's secure port")
	require.Equal(t, -1, plain.Security.HandshakesMax)
	require.Empty(t, plain.Warnings)
}

func TestRemarksOfTLS(t *testing.T) {
	const noClients = "no effect: neither secureClientPort nor client.portUnification says that clients use TLS"
	c := mustParse(t, base+`clientPort=2181
ssl.keyStore.location=/k.jks
ssl.trustStore.location=/t.jks
client.certReload=true
X509AuthenticationProvider.superUser=CN=admin
portUnification=true
sslQuorumReloadCertFiles=true
ssl.keystore.password=x
`, nil)
	require.Equal(t, []string{
		"zoo.cfg:3: ssl.keyStore.location: " + noClients,
		"zoo.cfg:4: ssl.trustStore.location: " + noClients,
		"zoo.cfg:5: client.certReload: " + noClients,
		"zoo.cfg:6: X509AuthenticationProvider.superUser: " + noClients + ", nobody gets these rights",
		"zoo.cfg:7: portUnification: no effect: a standalone server has no connections to other servers",
		"zoo.cfg:8: sslQuorumReloadCertFiles: no effect: TLS between servers is not switched on",
		"zoo.cfg:9: ssl.keystore.password: unknown key without effect (ZooKeeper would make it the system property zookeeper.ssl.keystore.password); did you mean ssl.keyStore.password?",
	}, texts(c.Warnings))
	c = mustParse(t, base+"secureClientPort=2281\nclient.portUnification=true", nil)
	require.Equal(t, []string{"zoo.cfg:3: client.portUnification: no effect: clientPort is not set"}, texts(c.Warnings))
}
