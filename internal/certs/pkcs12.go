package certs

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"

	"software.sslmate.com/src/go-pkcs12"
)

// decodePKCS12 reads a store in PKCS12: one key with its chain, or certificates that Java counts as trusted.
func decodePKCS12(content []byte, password string) (*Store, error) {
	if err := checkPKCS12(content); err != nil {
		return nil, err
	}
	trusted, trustErr := pkcs12.DecodeTrustStore(content, password)
	if trustErr == nil && len(trusted) > 0 {
		return &Store{Trusted: trusted}, nil
	}
	key, cert, chain, err := pkcs12.DecodeChain(content, password)
	switch {
	case errors.Is(err, pkcs12.ErrIncorrectPassword):
		return nil, errPassword
	case err != nil:
		return nil, fmt.Errorf("it has neither one key with its certificates (%w) nor certificates only that are marked as trusted (%w); "+
			"make it with keytool, or with openssl pkcs12 -export, for a trust store with -nokeys -jdktrust anyExtendedKeyUsage", err, trustErr)
	}
	certs := append([]*x509.Certificate{cert}, chain...)
	id, err := identity(key, certs)
	if err != nil {
		return nil, err
	}
	return &Store{Keys: []tls.Certificate{id}, Trusted: certs}, nil
}

// pfx is the outermost structure of PKCS12, as far as it matters here.
type pfx struct {
	Version  int
	AuthSafe asn1.RawValue
	MacData  struct {
		Mac struct {
			Algorithm pkix.AlgorithmIdentifier
			Digest    []byte
		}
		Salt       []byte
		Iterations int `asn1:"optional,default:1"`
	} `asn1:"optional"`
}

// checkPKCS12 keeps files out that are something else, and those that would take hours to open.
func checkPKCS12(content []byte) error {
	var p pfx
	if _, err := asn1.Unmarshal(content, &p); err != nil || p.Version != 3 {
		return errors.New("the file is damaged, or no store in PKCS12 or JKS")
	}
	if p.MacData.Iterations > iterationsMax {
		return fmt.Errorf("its password is to be hashed %d times; at most %d are allowed", p.MacData.Iterations, iterationsMax)
	}
	return nil
}
