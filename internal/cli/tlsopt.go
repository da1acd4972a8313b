package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// TLSFiles name the files, in PEM, that a TLS connection needs.
type TLSFiles struct {
	// CA has the certificates that servers are checked against; without it the system's are taken.
	CA string
	// Cert and Key are the client's own certificate and key, if the servers ask for one. Key may be the same file.
	Cert, Key string
	// NoHostname accepts any name in a server's certificate, as ZooKeeper's hostnameVerification=false does.
	NoHostname bool
}

// Load makes the configuration of TLS connections.
func (t *TLSFiles) Load() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := readSmall(t.CA)
		if err != nil {
			return nil, fmt.Errorf("certificates of the CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificates of the CA: %s has no certificate in PEM", t.CA)
		}
	}
	if t.Cert != "" || t.Key != "" {
		cert, key := t.Cert, t.Key
		if cert == "" {
			cert = key
		}
		if key == "" {
			key = cert
		}
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("own certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if t.NoHostname {
		skipHostname(config)
	}
	return config, nil
}

// skipHostname checks the chain of certificates, but not the name.
func skipHostname(config *tls.Config) {
	roots := config.RootCAs
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(cs tls.ConnectionState) error {
		if len(cs.PeerCertificates) == 0 {
			return errors.New("the server has no certificate")
		}
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range cs.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		_, err := cs.PeerCertificates[0].Verify(opts)
		return err
	}
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, configFileBytesMax+1))
	if err == nil && len(data) > configFileBytesMax {
		err = fmt.Errorf("%s is larger than %d bytes", path, configFileBytesMax)
	}
	return data, err
}

// The keys of ZooKeeper's client configuration that are understood. They begin with "zookeeper.", which may be left out.
const (
	keySecure       = "client.secure"
	keyTrust        = "ssl.truststore.location"
	keyTrustType    = "ssl.truststore.type"
	keyKeys         = "ssl.keystore.location"
	keyKeysType     = "ssl.keystore.type"
	keyKeysPassword = "ssl.keystore.password"
	keyHostname     = "ssl.hostnameverification"
)

// parseClientConfig reads a client configuration file or -D options: key=value lines. It returns nil if they do not ask
// for TLS.
func parseClientConfig(lines []string, where string) (*TLSFiles, error) {
	values := map[string]string{}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s: %q is not of the form key=value", where, line)
		}
		key = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(key), "zookeeper."))
		values[key] = strings.TrimSpace(value)
	}
	if !strings.EqualFold(values[keySecure], "true") {
		return nil, nil
	}
	for location, typ := range map[string]string{keyTrust: keyTrustType, keyKeys: keyKeysType} {
		if err := checkStore(values[location], values[typ]); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", where, location, err)
		}
	}
	if values[keyKeysPassword] != "" {
		return nil, fmt.Errorf("%s: %s: encrypted keys are not understood, store the key without a password", where, keyKeysPassword)
	}
	return &TLSFiles{CA: values[keyTrust], Cert: values[keyKeys], NoHostname: strings.EqualFold(values[keyHostname], "false")}, nil
}

// checkStore refuses the kinds of stores that are not text.
func checkStore(location, typ string) error {
	if location == "" || strings.EqualFold(typ, "PEM") || typ == "" && strings.HasSuffix(strings.ToLower(location), ".pem") {
		return nil
	}
	return fmt.Errorf("%s: only stores in PEM are understood: convert it (openssl pkcs12, keytool) and set the type to PEM", location)
}
