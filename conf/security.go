package conf

import (
	"math"
	"slices"
	"strings"

	"zabra/internal/sasl"
)

// Security is what the configuration says about encryption and about who is who. What this version parses and does not act
// on is marked in the table below; names.go says which of it is refused for that reason.
type Security struct {
	// SecureClientPort is the client port with TLS, Unset for none; SecureClientPortAddress is what to bind, "" for every
	// interface.
	SecureClientPort        int
	SecureClientPortAddress string
	// ClientPortUnification takes plain and encrypted clients on the client port.
	ClientPortUnification bool
	// ClientCertReload takes over new files of Client while the server runs.
	ClientCertReload bool
	// Client and Quorum are the two sets of keys: for clients, and for other servers and the admin server.
	Client, Quorum TLS
	// QuorumTLS encrypts what servers say to each other; QuorumPortUnification takes plain connections too, while an
	// ensemble changes over. QuorumCertReload is ClientCertReload for Quorum.
	QuorumTLS, QuorumPortUnification, QuorumCertReload bool
	// FIPSMode is ZooKeeper's, which excludes DIGEST-MD5, and TLS 1.3 between servers unless that is asked for.
	FIPSMode bool
	// HandshakesMax bounds the TLS handshakes of clients that are under way, -1 does not. EarlyDrop ends connections of clients
	// before the handshake while nobody is served.
	HandshakesMax int
	EarlyDrop     bool

	// Providers are the named auth plugins: the class by what follows authProvider.
	Providers map[string]string
	// SuperUser has all rights, as a SASL identity; SuperUsers are more of them, by what follows superUser.
	SuperUser  string
	SuperUsers map[string]string
	// X509SuperUser has all rights, as the subject of a client's certificate.
	X509SuperUser string
	// EnforceAuth serves only clients that have authenticated with one of EnforceSchemes. RequireClientSASL is the same for
	// the scheme sasl.
	EnforceAuth, RequireClientSASL bool
	EnforceSchemes                 []string
	// EnsembleNames are the names, between commas, that clients of the scheme ensemble may give.
	EnsembleNames string
	// UseXForwardedFor takes the address of an admin's request from that header.
	UseXForwardedFor bool
	// SASL is who may come in by SASL.
	SASL SASL
}

// SASL configures SASL with clients and between servers.
type SASL struct {
	// JAASFile holds the sections named below; "" is none.
	JAASFile string
	// ServerSection is the section for clients. QuorumServerSection and QuorumLearnerSection are those between servers.
	ServerSection, QuorumServerSection, QuorumLearnerSection string
	// SuperPassword is the password of the user super. Never printed.
	SuperPassword string
	// AnyReader is an identity that may do what a user of SASL may.
	AnyReader string
	// KeepFailedClients keeps a connection whose SASL failed.
	KeepFailedClients bool
	// Quorum authenticates servers to each other. QuorumServerRequired and QuorumLearnerRequired refuse those that do not.
	Quorum, QuorumServerRequired, QuorumLearnerRequired bool
	// QuorumPrincipal is the Kerberos principal of the other servers.
	QuorumPrincipal string

	// Users are those of ServerSection: they may log in as clients. Nil without such a section.
	Users sasl.Users
	// QuorumUsers are those of QuorumServerSection, whom this server lets in as other servers, and QuorumLogin is that of
	// QuorumLearnerSection, as whom it logs in to them. Filled in when Quorum is set in an ensemble.
	QuorumUsers sasl.Users
	QuorumLogin sasl.Login
}

// TLS is where one kind of connection takes its keys and its rules from.
type TLS struct {
	KeyStore, TrustStore Store
	// Protocol is the default protocol version, "" for that of the TLS library. EnabledProtocols and CipherSuites narrow the
	// choice; none of them leaves it to the library.
	Protocol                       string
	EnabledProtocols, CipherSuites []string
	// ClientAuth is none, want or need.
	ClientAuth string
	// HostnameVerification checks the name of a server, ClientHostnameVerification also that of whoever connects.
	// AllowReverseDNSLookup may look up the name of an address for it.
	HostnameVerification, ClientHostnameVerification, AllowReverseDNSLookup bool
	// CRL and OCSP look for revoked certificates.
	CRL, OCSP bool
	// DetectionTimeoutMs is the time in which a connection has to show whether it is encrypted, where both are taken.
	DetectionTimeoutMs int
}

// Store is a file with keys or certificates.
type Store struct {
	// Location is the path, "" for none.
	Location string
	// Password opens the store; PasswordPath is a file that holds it, and wins. Never printed.
	Password, PasswordPath string
	// Type is JKS, PEM, PKCS12 or BCFKS, "" to go by the name of the file.
	Type string
}

func securityDefaults() Security {
	base := TLS{ClientAuth: "need", HostnameVerification: true, DetectionTimeoutMs: 5000}
	quorum := base
	quorum.ClientHostnameVerification, quorum.AllowReverseDNSLookup = true, true
	return Security{
		SecureClientPort: Unset,
		Client:           base,
		Quorum:           quorum,
		FIPSMode:         true,
		HandshakesMax:    -1,
		SASL: SASL{
			ServerSection: "Server", QuorumServerSection: "QuorumServer", QuorumLearnerSection: "QuorumLearner",
			QuorumPrincipal: "zkquorum/localhost",
		},
	}
}

// securityKeys are those of encryption and authentication.
var securityKeys = slices.Concat([]key{
	port("secureClientPort", func(c *Config) *int { return &c.Security.SecureClientPort }),
	text("secureClientPortAddress", direct, func(c *Config) *string { return &c.Security.SecureClientPortAddress }),
	propBool("client.portUnification", func(c *Config) *bool { return &c.Security.ClientPortUnification }),
	propBool("client.certReload", func(c *Config) *bool { return &c.Security.ClientCertReload }),
	strictBool("sslQuorum", func(c *Config) *bool { return &c.Security.QuorumTLS }),
	strictBool("portUnification", func(c *Config) *bool { return &c.Security.QuorumPortUnification }),
	strictBool("sslQuorumReloadCertFiles", func(c *Config) *bool { return &c.Security.QuorumCertReload }),
	propInt("netty.server.outstandingHandshake.limit", property, -1, math.MaxInt32, func(c *Config) *int { return &c.Security.HandshakesMax }),
	propBool("netty.server.earlyDropSecureConnectionHandshakes", func(c *Config) *bool { return &c.Security.EarlyDrop }),
	text("X509AuthenticationProvider.superUser", property, func(c *Config) *string { return &c.Security.X509SuperUser }),
}, tlsKeys("ssl.", func(c *Config) *TLS { return &c.Security.Client }), tlsKeys("ssl.quorum.", func(c *Config) *TLS { return &c.Security.Quorum }), unused(
	propBool("IPAuthenticationProvider.usexforwardedfor", func(c *Config) *bool { return &c.Security.UseXForwardedFor }),
), loginKeys)

// loginKeys are those of SASL and of what clients have to prove.
var loginKeys = []key{
	propBool("fips-mode", func(c *Config) *bool { return &c.Security.FIPSMode }),
	text("superUser", property, func(c *Config) *string { return &c.Security.SuperUser }),
	propBool("enforce.auth.enabled", func(c *Config) *bool { return &c.Security.EnforceAuth }),
	list("enforce.auth.schemes", func(c *Config) *[]string { return &c.Security.EnforceSchemes }),
	propBool("sessionRequireClientSASLAuth", func(c *Config) *bool { return &c.Security.RequireClientSASL }),
	text("ensembleAuthName", property, func(c *Config) *string { return &c.Security.EnsembleNames }),
	text(jaasFileKey, bare, func(c *Config) *string { return &c.Security.SASL.JAASFile }).running(takeUsers),
	text("sasl.serverconfig", property, func(c *Config) *string { return &c.Security.SASL.ServerSection }),
	text("SASLAuthenticationProvider.superPassword", property, func(c *Config) *string { return &c.Security.SASL.SuperPassword }).hidden(),
	text("letAnySaslUserDoX", property, func(c *Config) *string { return &c.Security.SASL.AnyReader }),
	propBool("allowSaslFailedClients", func(c *Config) *bool { return &c.Security.SASL.KeepFailedClients }),
	strictBool("quorum.auth.enableSasl", func(c *Config) *bool { return &c.Security.SASL.Quorum }),
	strictBool("quorum.auth.serverRequireSasl", func(c *Config) *bool { return &c.Security.SASL.QuorumServerRequired }),
	strictBool("quorum.auth.learnerRequireSasl", func(c *Config) *bool { return &c.Security.SASL.QuorumLearnerRequired }),
	text("quorum.auth.server.saslLoginContext", direct, func(c *Config) *string { return &c.Security.SASL.QuorumServerSection }),
	text("quorum.auth.learner.saslLoginContext", direct, func(c *Config) *string { return &c.Security.SASL.QuorumLearnerSection }),
	text("quorum.auth.kerberos.servicePrincipal", direct, func(c *Config) *string { return &c.Security.SASL.QuorumPrincipal }).notYet(),
}

// tlsKeys are the keys of one set, which all begin with the prefix.
func tlsKeys(prefix string, set func(*Config) *TLS) []key {
	return slices.Concat(
		storeKeys(prefix+"keyStore.", func(c *Config) *Store { return &set(c).KeyStore }),
		storeKeys(prefix+"trustStore.", func(c *Config) *Store { return &set(c).TrustStore }),
		[]key{
			text(prefix+"protocol", property, func(c *Config) *string { return &set(c).Protocol }),
			list(prefix+"enabledProtocols", func(c *Config) *[]string { return &set(c).EnabledProtocols }),
			list(prefix+"ciphersuites", func(c *Config) *[]string { return &set(c).CipherSuites }),
			exactly(oneOf(prefix+"clientAuth", func(c *Config) *string { return &set(c).ClientAuth }, "none", "want", "need")),
			propBool(prefix+"hostnameVerification", func(c *Config) *bool { return &set(c).HostnameVerification }),
			propBool(prefix+"clientHostnameVerification", func(c *Config) *bool { return &set(c).ClientHostnameVerification }),
			propBool(prefix+"allowReverseDnsLookup", func(c *Config) *bool { return &set(c).AllowReverseDNSLookup }),
			propBool(prefix+"crl", func(c *Config) *bool { return &set(c).CRL }),
			propBool(prefix+"ocsp", func(c *Config) *bool { return &set(c).OCSP }),
			propInt(prefix+"handshakeDetectionTimeoutMillis", property, 1, math.MaxInt32, func(c *Config) *int { return &set(c).DetectionTimeoutMs }),
		})
}

func storeKeys(prefix string, store func(*Config) *Store) []key {
	return []key{
		text(prefix+"location", property, func(c *Config) *string { return &store(c).Location }),
		text(prefix+"password", property, func(c *Config) *string { return &store(c).Password }).hidden(),
		text(prefix+"passwordPath", property, func(c *Config) *string { return &store(c).PasswordPath }),
		oneOf(prefix+"type", func(c *Config) *string { return &store(c).Type }, "JKS", "PEM", "PKCS12", "BCFKS"),
	}
}

// families are keys that end in a name of the operator's choice.
var families = []struct {
	prefix string
	field  func(*Config) *map[string]string
	remark func(value string) string
}{
	{"authProvider.", func(c *Config) *map[string]string { return &c.Security.Providers }, providerRemark},
	{"superUser.", func(c *Config) *map[string]string { return &c.Security.SuperUsers }, nil},
}

// familyKey returns the key of that name, if it is of a family.
func familyKey(name string) (key, bool) {
	for _, f := range families {
		suffix, ok := strings.CutPrefix(name, f.prefix)
		if !ok {
			continue
		}
		set := func(c *Config, v string) (string, error) {
			if v == "" {
				return "", nil // says nothing
			}
			m := f.field(c)
			if *m == nil {
				*m = map[string]string{}
			}
			(*m)[suffix] = v
			if f.remark != nil {
				return f.remark(v), nil
			}
			return "", nil
		}
		show := func(c *Config) (string, bool) {
			v, ok := (*f.field(c))[suffix]
			return v, ok
		}
		return key{name: name, reach: property, set: set, show: show}, true
	}
	return key{}, false
}

// allKeys are the keys of the table and those that c has of the families.
func (c *Config) allKeys() []key {
	all := slices.Clone(keys)
	for _, f := range families {
		for _, suffix := range sortedKeys(*f.field(c)) {
			k, _ := familyKey(f.prefix + suffix)
			all = append(all, k)
		}
	}
	return all
}
