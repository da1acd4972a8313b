package certs

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// decodePEM reads certificates and at most one key, in any order. Beside Java's PKCS#8 a key may be in the older forms of
// openssl.
func decodePEM(content []byte, password string) (*Store, error) {
	s := &Store{}
	var key any
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch {
		case block.Type == "CERTIFICATE", block.Type == "TRUSTED CERTIFICATE", block.Type == "X509 CERTIFICATE":
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("certificate %d: %w", len(s.Trusted)+1, err)
			}
			s.Trusted = append(s.Trusted, c)
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			if key != nil {
				return nil, errors.New("there is more than one key")
			}
			var err error
			if key, err = parseKey(block, password); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case key != nil && len(s.Trusted) == 0:
		return nil, errors.New("there is a key, but no certificate; the file of a key store has both")
	case key != nil:
		id, err := identity(key, s.Trusted)
		if err != nil {
			return nil, err
		}
		s.Keys = append(s.Keys, id)
	case len(s.Trusted) == 0:
		return nil, errors.New("there is no certificate in PEM")
	}
	return s, nil
}

// parseKey reads the key of a block.
func parseKey(block *pem.Block, password string) (key any, err error) {
	if block.Headers["DEK-Info"] != "" {
		return nil, errors.New("the key is encrypted in an old way that is not safe; convert it with openssl pkcs8 -topk8")
	}
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		key, err = decryptKey(block.Bytes, password)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("%s: a key of this kind is not supported; use RSA, EC or Ed25519", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return key, nil
}
