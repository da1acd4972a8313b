// Package certstest makes certificates for tests: NewCA an authority, CA.Issue one of somebody, with keys that are made at once.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// serial numbers all certificates of a process.
var serial atomic.Int64

// Pair is a key with its certificate.
type Pair struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// CA is an authority, whose certificate is signed by itself.
type CA struct{ Pair }

// NewCA makes an authority.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	ca := &CA{}
	ca.Key = newKey(t)
	ca.Cert = sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, ca.Key, ca.Key)
	return ca
}

// Issue makes a certificate for subject that is good for the hosts, which are names or addresses.
func (ca *CA) Issue(t testing.TB, subject pkix.Name, hosts ...string) *Pair {
	t.Helper()
	template := &x509.Certificate{
		Subject: subject, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	p := &Pair{Key: newKey(t)}
	p.Cert = sign(t, template, ca.Cert, p.Key, ca.Key)
	return p
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(serial.Add(1))
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// PKCS8 is the key in DER.
func (p *Pair) PKCS8(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// CertPEM is the certificate in PEM.
func (p *Pair) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Cert.Raw})
}

// PEM is a key store in PEM: the certificate and the key.
func (p *Pair) PEM(t testing.TB) []byte {
	t.Helper()
	return append(p.CertPEM(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: p.PKCS8(t)})...)
}

// Write puts content into a file of the test's own and returns its path.
func Write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Overwrite(t, path, content)
	return path
}

// Overwrite replaces the content of a file at once, as tools that hand out certificates do.
func Overwrite(t testing.TB, path string, content []byte) {
	t.Helper()
	err := os.WriteFile(path+".new", content, 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Pool holds the authority's certificate.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	return pool
}

// Client is the TLS of a client that trusts the authority. own may be nil.
func (ca *CA) Client(own *Pair) *tls.Config {
	c := &tls.Config{RootCAs: ca.Pool()}
	if own != nil {
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{own.Cert.Raw}, PrivateKey: own.Key}}
	}
	return c
}
