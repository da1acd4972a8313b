package certs

import (
	"bytes"
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

// pbmac1Params say how PBMAC1 makes the key of a MAC.
type pbmac1Params struct{ KDF, MAC pkix.AlgorithmIdentifier }

var (
	oidPBMAC1 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 14}
	// encryptions are what the object identifiers of PBES2 and of the older ways to encrypt begin with, as bytes.
	encryptions = [][]byte{{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d}, {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x01}}
)

// checkPKCS12 keeps files out that are something else, and those that would take hours to open. What is under the MAC is not looked
// at: who knows the password may do as he likes.
func checkPKCS12(content []byte) error {
	rounds, err := pkcs12Rounds(content)
	if err == nil && rounds > iterationsMax {
		err = fmt.Errorf("its password is to be hashed %d times; at most %d are allowed", rounds, iterationsMax)
	}
	return err
}

// pkcs12Rounds returns how often the password has to be hashed to check the MAC.
func pkcs12Rounds(content []byte) (int, error) {
	var p pfx
	if _, err := asn1.Unmarshal(content, &p); err != nil || p.Version != 3 {
		return 0, errors.New("the file is damaged, or no store in PKCS12 or JKS")
	}
	mac := &p.MacData.Mac.Algorithm
	if len(mac.Algorithm) == 0 {
		for _, oid := range encryptions {
			if bytes.Contains(content, oid) {
				return 0, errors.New("it is encrypted, but nothing guards it against changes; make it with a password")
			}
		}
		return 0, nil
	}
	if !mac.Algorithm.Equal(oidPBMAC1) {
		return p.MacData.Iterations, nil
	}
	var params pbmac1Params
	var kdf pbkdf2Params
	err := unmarshal(mac.Parameters.FullBytes, &params)
	if err == nil {
		err = unmarshal(params.KDF.Parameters.FullBytes, &kdf)
	}
	if err == nil && kdf.KeyBytes > macKeyBytesMax {
		err = errors.New("the key of its MAC is too long")
	}
	return kdf.Iterations, err
}
