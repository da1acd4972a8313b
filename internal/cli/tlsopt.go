package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"zabra/conf"
	"zabra/internal/certs"
)

// TLSFiles name the files that a TLS connection needs: in PEM, or as the stores of a ZooKeeper client.
type TLSFiles struct {
	// CA has the certificates that servers are checked against, in PEM. Without it those of TrustStore are taken, and without
	// that the system's.
	CA string
	// Cert and Key are the client's own certificate and key in PEM, if the servers ask for one. Key may be the same file. Without
	// them KeyStore serves.
	Cert, Key string
	// TrustStore and KeyStore are stores in PEM, JKS or PKCS12.
	TrustStore, KeyStore conf.Store
	// where says where the stores were named.
	where string
	// ServerName is the name that a server's certificate has to be for, if not that of the address.
	ServerName string
	// NoHostname accepts any name in a server's certificate, as ZooKeeper's hostnameVerification=false does.
	NoHostname bool
}

// Load makes the configuration of TLS connections.
func (t *TLSFiles) Load() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	var err error
	if config.RootCAs, err = t.trusted(); err != nil {
		return nil, err
	}
	if config.Certificates, err = t.own(); err != nil {
		return nil, err
	}
	if t.NoHostname {
		skipHostname(config)
	}
	return config, nil
}

// trusted returns the authorities of servers, nil for the system's.
func (t *TLSFiles) trusted() (*x509.CertPool, error) {
	if t.CA == "" && t.TrustStore.Location == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if t.CA == "" {
		store, err := certs.ReadStore(t.where+"ssl.trustStore.", t.TrustStore)
		if err != nil {
			return nil, err
		}
		for _, c := range store.Trusted {
			pool.AddCert(c)
		}
		return pool, nil
	}
	pem, err := readSmall(t.CA)
	if err != nil {
		return nil, fmt.Errorf("certificates of the CA: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates of the CA: %s has no certificate in PEM", t.CA)
	}
	return pool, nil
}

// own returns the client's own certificates, none if it has none.
func (t *TLSFiles) own() ([]tls.Certificate, error) {
	cert, key := t.Cert, t.Key
	if cert == "" && key == "" {
		if t.KeyStore.Location == "" {
			return nil, nil
		}
		store, err := certs.ReadStore(t.where+"ssl.keyStore.", t.KeyStore)
		if err == nil && len(store.Keys) == 0 {
			err = fmt.Errorf("%sssl.keyStore.location: %s: there is no key in it that can be opened", t.where, t.KeyStore.Location)
		}
		if err != nil {
			return nil, err
		}
		return store.Keys, nil
	}
	if cert == "" {
		cert = key
	}
	if key == "" {
		key = cert
	}
	pair, err := loadPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("own certificate: %w", err)
	}
	return []tls.Certificate{pair}, nil
}

// loadPair is tls.LoadX509KeyPair for files of a bounded size.
func loadPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := readSmall(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readSmall(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
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
	keySecure   = "client.secure"
	keyTrust    = "ssl.truststore."
	keyKeys     = "ssl.keystore."
	keyHostname = "ssl.hostnameverification"
)

// clientConfig are the settings of the environment, of -D and of a client configuration file, by their key in small letters.
// What is read later counts.
type clientConfig map[string]clientSetting

type clientSetting struct{ value, where string }

// read takes lines of the form key=value.
func (cc clientConfig) read(lines []string, where string) error {
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok { // it is not shown, since it may be part of a password
			return fmt.Errorf("%s: line %d is not of the form key=value", where, i+1)
		}
		cc[settingName(key)] = clientSetting{strings.TrimSpace(value), where}
	}
	return nil
}

// settingName is the name that a key has in a clientConfig.
func settingName(key string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(key), "zookeeper."))
}

// complete adds to the files of options what the settings say of others, if the settings ask for TLS, and tells whether
// they do.
func (cc clientConfig) complete(files TLSFiles) (all TLSFiles, secure bool) {
	if !strings.EqualFold(cc[keySecure].value, "true") {
		return files, false
	}
	files.TrustStore, files.KeyStore = cc.store(keyTrust), cc.store(keyKeys)
	files.NoHostname = files.NoHostname || strings.EqualFold(cc[keyHostname].value, "false")
	files.where = cc[keySecure].where + ": "
	return files, true
}

// store returns the store whose keys begin with the prefix.
func (cc clientConfig) store(prefix string) conf.Store {
	return conf.Store{
		Location: cc[prefix+"location"].value, Type: cc[prefix+"type"].value,
		Password: cc[prefix+"password"].value, PasswordPath: cc[prefix+"passwordpath"].value,
	}
}
