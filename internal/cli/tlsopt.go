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
		pair, err := loadPair(cert, key)
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
	keySecure       = "client.secure"
	keyTrust        = "ssl.truststore.location"
	keyTrustType    = "ssl.truststore.type"
	keyKeys         = "ssl.keystore.location"
	keyKeysType     = "ssl.keystore.type"
	keyKeysPassword = "ssl.keystore.password"
	keyHostname     = "ssl.hostnameverification"
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
func (cc clientConfig) complete(files TLSFiles) (all TLSFiles, secure bool, err error) {
	if !strings.EqualFold(cc[keySecure].value, "true") {
		return files, false, nil
	}
	if files.CA == "" {
		if files.CA, err = cc.store(keyTrust, keyTrustType); err != nil {
			return files, true, err
		}
	}
	if files.Cert == "" && files.Key == "" {
		if files.Cert, err = cc.store(keyKeys, keyKeysType); err != nil {
			return files, true, err
		}
		if password := cc[keyKeysPassword]; password.value != "" {
			return files, true, fmt.Errorf("%s: %s: encrypted keys are not understood, store the key without a password",
				password.where, keyKeysPassword)
		}
	}
	files.NoHostname = files.NoHostname || strings.EqualFold(cc[keyHostname].value, "false")
	return files, true, nil
}

// store returns the file of a store, "" for none. Those that are not text are refused.
func (cc clientConfig) store(keyLocation, keyType string) (string, error) {
	location, typ := cc[keyLocation], cc[keyType].value
	switch file := location.value; {
	case file == "", strings.EqualFold(typ, "PEM"), typ == "" && strings.HasSuffix(strings.ToLower(file), ".pem"):
		return file, nil
	default:
		return "", fmt.Errorf("%s: %s: %s: only stores in PEM are understood: convert it (openssl pkcs12, keytool) "+
			"and set the type to PEM", location.where, keyLocation, file)
	}
}
