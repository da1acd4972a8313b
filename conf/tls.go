package conf

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
)

// SecureClientAddr is the address of the client port with TLS, in the form of net.Listen; "" when there is none.
func (c *Config) SecureClientAddr() string {
	if c.Security.SecureClientPort < 0 {
		return ""
	}
	return net.JoinHostPort(c.Security.SecureClientPortAddress, strconv.Itoa(c.Security.SecureClientPort))
}

// ClientTLS tells whether clients may speak TLS.
func (c *Config) ClientTLS() bool {
	return c.Security.SecureClientPort != Unset || c.Security.ClientPortUnification && c.ClientPort != Unset
}

// ServerTLS tells whether other servers may speak TLS with this one.
func (c *Config) ServerTLS() bool {
	return c.Ensemble != nil && (c.Security.QuorumTLS || c.Security.QuorumPortUnification)
}

// AdminTLS tells whether the admin server may speak TLS. Its keys are those of connections between servers.
func (c *Config) AdminTLS() bool {
	return c.Admin.Enabled && (c.Admin.PortUnification || c.Admin.ForceHTTPS)
}

// X509Auth tells whether clients are known by their certificates.
func (c *Config) X509Auth() bool {
	for _, class := range c.Security.Providers {
		if class == X509Provider {
			return true
		}
	}
	return c.ClientTLS()
}

// fieldlessTLS are keys of TLS without a field: what they can be set to here is nothing, or what is done anyway.
var fieldlessTLS = names(`ssl.context.supplier.class ssl.quorum.context.supplier.class ssl.authProvider`)

// refusalOfTLS judges the value of such a key.
func refusalOfTLS(key, value string) error {
	switch {
	case value == "", key == "ssl.authProvider" && value == "x509":
		return nil
	case key == "ssl.authProvider":
		return fmt.Errorf("%s: the certificates of clients can only be judged by the provider x509", shown(value))
	}
	return fmt.Errorf("%s: Java classes cannot be loaded; name the stores with keyStore.location and trustStore.location instead", shown(value))
}

// exactly makes a fault of a value that the key would only remark on.
func exactly(k key) key {
	set := k.set
	k.set = func(c *Config, v string) (string, error) {
		remark, err := set(c, v)
		if remark != "" && err == nil {
			err = errors.New(remark)
		}
		return "", err
	}
	return k
}

// checkTLS finds what cannot be done for connections that are to be encrypted.
func (c *Config) checkTLS() (faults []Fault) {
	wrong := func(bad bool, key, format string, args ...any) {
		if bad {
			faults = append(faults, Fault{Key: key, Text: fmt.Sprintf(format, args...)})
		}
	}
	s := &c.Security
	wrong(s.SecureClientPort < Unset || s.SecureClientPort > math.MaxUint16, "secureClientPort", "port out of range:%d", s.SecureClientPort)
	samePlace := wildcard(c.ClientPortAddress) || wildcard(s.SecureClientPortAddress) || c.ClientPortAddress == s.SecureClientPortAddress
	wrong(c.ClientPort > 0 && c.ClientPort == s.SecureClientPort && samePlace, "secureClientPort",
		"port %d is both the client port and the secure client port; client.portUnification=true lets one port do for both", s.SecureClientPort)
	for _, set := range []struct {
		prefix string
		used   bool
		tls    *TLS
	}{{"ssl.", c.ClientTLS(), &s.Client}, {"ssl.quorum.", c.ServerTLS() || c.AdminTLS(), &s.Quorum}} {
		const text = "revoked certificates cannot be looked for by this version: refusing to trust certificates without that"
		wrong(set.used && set.tls.CRL, set.prefix+"crl", text)
		wrong(set.used && set.tls.OCSP, set.prefix+"ocsp", text)
	}
	return faults
}

// remarksOfTLS warns of keys that nothing makes use of.
func (l *loader) remarksOfTLS() {
	c := l.cfg
	unused := func(is bool, key, why string) {
		if is && c.Set(key) {
			l.warn(c.sources[key], key, "no effect: %s", why)
		}
	}
	s := &c.Security
	const noClients = "neither secureClientPort nor client.portUnification says that clients use TLS"
	unused(!c.ClientTLS() && s.Client.KeyStore.Location != "", "ssl.keyStore.location", noClients)
	unused(!c.ClientTLS() && s.Client.TrustStore.Location != "", "ssl.trustStore.location", noClients)
	unused(!c.ClientTLS() && s.ClientCertReload, "client.certReload", noClients)
	unused(s.ClientPortUnification && c.ClientPort == Unset, "client.portUnification", "clientPort is not set")
	unused(!c.X509Auth() && s.X509SuperUser != "", "X509AuthenticationProvider.superUser", noClients+", nobody gets these rights")
	if c.Ensemble == nil {
		unused(s.QuorumTLS, "sslQuorum", noPeers)
		unused(s.QuorumPortUnification, "portUnification", noPeers)
	}
	used := c.ServerTLS() || c.AdminTLS()
	unused(!used && s.QuorumCertReload, "sslQuorumReloadCertFiles", "TLS between servers is not switched on")
}
