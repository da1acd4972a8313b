package certs

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"zabra/conf"
)

// Store is what a file holds.
type Store struct {
	// Keys are identities: a key with its certificate and the chain behind it. PEM and PKCS12 have one at most.
	Keys []tls.Certificate
	// Trusted are the certificates that this store, as a trust store, vouches for.
	Trusted []*x509.Certificate
}

// ReadStore reads a store. prefix is what the names of its keys in a configuration begin with, such as "ssl.keyStore."; errors
// name the key and the file. No error has a password in it.
func ReadStore(prefix string, s conf.Store) (*Store, error) {
	f, err := readFile(prefix, s)
	if err != nil {
		return nil, err
	}
	return f.parse()
}

// storeFile is a store as it was read.
type storeFile struct {
	prefix   string
	location string
	kind     string
	content  []byte
	password string
}

func readFile(prefix string, s conf.Store) (*storeFile, error) {
	f := &storeFile{prefix: prefix, location: s.Location, password: s.Password}
	var err error
	if f.kind, err = kindOf(s); err != nil {
		return nil, f.fault("type", err)
	}
	if s.PasswordPath != "" {
		if f.password, err = readPassword(s.PasswordPath); err != nil {
			return nil, f.fault("passwordPath", err)
		}
	}
	if f.content, err = readBounded(s.Location, storeBytesMax); err != nil {
		return nil, f.fault("location", err)
	}
	return f, nil
}

// fault names the key of the configuration that an error belongs to.
func (f *storeFile) fault(key string, err error) error {
	return fmt.Errorf("%s%s: %w", f.prefix, key, err)
}

// kindOf returns the type of a store in capitals.
func kindOf(s conf.Store) (string, error) {
	if s.Type != "" {
		return strings.ToUpper(s.Type), nil
	}
	switch strings.ToLower(filepath.Ext(s.Location)) {
	case ".jks":
		return "JKS", nil
	case ".pem":
		return "PEM", nil
	case ".p12":
		return "PKCS12", nil
	case ".bcfks":
		return "BCFKS", nil
	}
	return "", fmt.Errorf("Unable to auto-detect store file type from file name: %s", s.Location)
}

// readPassword reads the file of a password. One line break at its end does not belong to it.
func readPassword(path string) (string, error) {
	text, err := readBounded(path, passwordBytesMax)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// readBounded reads a whole file, refusing one that is longer than bytesMax.
func readBounded(path string, bytesMax int64) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err == nil && int64(len(content)) > bytesMax {
		err = fmt.Errorf("%s is larger than %d bytes", path, bytesMax)
	}
	return content, err
}

// parse reads the content.
func (f *storeFile) parse() (*Store, error) {
	s, err := decode(f.kind, f.content, f.password)
	if err != nil {
		return nil, f.fault("location", fmt.Errorf("%s: %w", f.location, err))
	}
	return s, nil
}

var errBCFKS = errors.New("stores of the type BCFKS cannot be read; convert it to PKCS12 with keytool -importkeystore")

// decode reads a store of that kind. Java reads stores of the two binary formats under each other's names, and so does this.
func decode(kind string, content []byte, password string) (*Store, error) {
	switch kind {
	case "PEM":
		return decodePEM(content, password)
	case "JKS", "PKCS12":
		if isJKS(content) {
			return decodeJKS(content, password)
		}
		return decodePKCS12(content, password)
	case "BCFKS":
		return nil, errBCFKS
	}
	return nil, fmt.Errorf("a store of the type %s is not known; there are JKS, PEM and PKCS12", kind)
}

// identity makes an identity of a key and certificates, of which one has to be the key's. The others follow it in their order.
func identity(key any, certs []*x509.Certificate) (tls.Certificate, error) {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return tls.Certificate{}, fmt.Errorf("the key is of a kind that TLS cannot use (%T)", key)
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return tls.Certificate{}, fmt.Errorf("the key is of a kind that TLS cannot use (%T)", key)
	}
	out := tls.Certificate{PrivateKey: key}
	for _, c := range certs {
		if out.Leaf == nil && public.Equal(c.PublicKey) {
			out.Leaf = c
		}
	}
	if out.Leaf == nil {
		return tls.Certificate{}, errors.New("the key and the certificates do not belong together")
	}
	out.Certificate = append(out.Certificate, out.Leaf.Raw)
	for _, c := range certs {
		if c != out.Leaf {
			out.Certificate = append(out.Certificate, c.Raw)
		}
	}
	return out, nil
}
