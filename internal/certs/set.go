package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"zabra/conf"
)

// Set is one set of keys of the configuration, ready for use. Its methods may be called from any goroutine.
type Set struct {
	prefix string
	conf   conf.TLS
	rules  rules
	names  *nameCheck
	// remarks are for whoever runs the server.
	remarks []string
	current atomic.Pointer[material]

	mu sync.Mutex
	// refused is the sum of the files that the last Reload could not use.
	refused [sha256.Size]byte
}

// material is what the stores held when they were read. It never changes.
type material struct {
	sum   [sha256.Size]byte
	keys  []tls.Certificate
	roots *x509.CertPool // nil: those of the system
}

// OpenClient reads the set "ssl.", for connections of clients.
func OpenClient(sec *conf.Security) (*Set, error) {
	return open("ssl.", &sec.Client, []string{"TLSv1.3", "TLSv1.2"})
}

// OpenQuorum reads the set "ssl.quorum.", for connections between servers and for the admin server. With fips-mode, the default,
// it has TLS 1.2 only unless its keys say otherwise.
func OpenQuorum(sec *conf.Security) (*Set, error) {
	if sec.FIPSMode {
		return open("ssl.quorum.", &sec.Quorum, []string{"TLSv1.2"})
	}
	return open("ssl.quorum.", &sec.Quorum, []string{"TLSv1.3", "TLSv1.2"})
}

// open reads a set and checks all of it. The errors name the key of the configuration.
func open(prefix string, t *conf.TLS, versions []string) (*Set, error) {
	s := &Set{prefix: prefix, conf: *t, names: newNameCheck(prefix, t.AllowReverseDNSLookup)}
	var rulesErr error
	s.rules, s.remarks, rulesErr = newRules(prefix, t, versions)
	if t.KeyStore.Location == "" {
		return nil, errors.Join(rulesErr, fmt.Errorf("Keystore is required for SSL server: %skeyStore.location", prefix))
	}
	files, err := s.read()
	if err := errors.Join(rulesErr, err); err != nil {
		return nil, err
	}
	m, err := files.material()
	if err != nil {
		return nil, err
	}
	s.current.Store(m)
	if t.TrustStore.Location == "" {
		s.remarks = append(s.remarks, prefix+"trustStore.location not specified: the authorities of this system are trusted")
	}
	if end := s.Expiry(); time.Now().After(end) {
		s.remarks = append(s.remarks, fmt.Sprintf("%skeyStore.location: the certificate in %s has expired on %s; others will refuse it",
			prefix, t.KeyStore.Location, end.UTC().Format(time.DateOnly)))
	}
	return s, nil
}

// Remarks are about settings that are odd or have no effect.
func (s *Set) Remarks() []string { return s.remarks }

// Expiry is when the first of the own certificates expires.
func (s *Set) Expiry() (first time.Time) {
	for _, k := range s.current.Load().keys {
		if first.IsZero() || k.Leaf.NotAfter.Before(first) {
			first = k.Leaf.NotAfter
		}
	}
	return first
}

// files are the stores of a set as they were read.
type files struct {
	key, trust *storeFile // trust is nil without a trust store
}

func (s *Set) read() (*files, error) {
	var f files
	var keyErr, trustErr error
	f.key, keyErr = readFile(s.prefix+"keyStore.", s.conf.KeyStore)
	if s.conf.TrustStore.Location != "" {
		f.trust, trustErr = readFile(s.prefix+"trustStore.", s.conf.TrustStore)
	}
	return &f, errors.Join(keyErr, trustErr)
}

// sum tells two states of the files apart.
func (f *files) sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	add := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	for _, file := range []*storeFile{f.key, f.trust} {
		if file != nil {
			add(file.content)
			add([]byte(file.password))
		}
	}
	h.Sum(sum[:0])
	return sum
}

func (f *files) material() (*material, error) {
	m := &material{sum: f.sum()}
	key, err := f.key.parse()
	switch {
	case err != nil:
	case len(key.Keys) == 0:
		err = f.key.fault("location", fmt.Errorf("%s: there is no key in it that can be opened", f.key.location))
	default:
		m.keys = key.Keys
	}
	trust := &Store{}
	var trustErr error
	if f.trust != nil {
		m.roots = x509.NewCertPool()
		trust, trustErr = f.trust.parse()
	}
	if err := errors.Join(err, trustErr); err != nil {
		return nil, err
	}
	for _, c := range trust.Trusted {
		m.roots.AddCert(c)
	}
	return m, nil
}

// Reload reads the files again. If they have changed and are good, connections that are made from now on use them; those that are
// there live on. An error changes nothing; the same content is not complained of again.
func (s *Set) Reload() (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.read()
	if err != nil {
		sum := sha256.Sum256([]byte(err.Error()))
		if sum == s.refused {
			return false, nil
		}
		s.refused = sum
		return false, err
	}
	sum := f.sum()
	if sum == s.current.Load().sum {
		s.refused = [sha256.Size]byte{}
		return false, nil
	}
	if sum == s.refused {
		return false, nil
	}
	m, err := f.material()
	if err != nil {
		s.refused = sum
		return false, err
	}
	s.refused = [sha256.Size]byte{}
	s.current.Store(m)
	return true, nil
}

// Server returns the configuration of the side that is connected to. It goes with the files for as long as it is used.
func (s *Set) Server() *tls.Config { return s.server(s.rules.clientAuth, s.rules.checkClient) }

// ServerWith is Server with another demand for a client's certificate than the set's own, and without a look at the names in it.
func (s *Set) ServerWith(auth tls.ClientAuthType) *tls.Config { return s.server(auth, false) }

func (s *Set) server(auth tls.ClientAuthType, checkNames bool) *tls.Config {
	c := s.serverNow(auth)
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		now := s.serverNow(auth)
		if checkNames {
			now.VerifyConnection = s.verifyClient(hello.Conn.RemoteAddr())
		}
		return now, nil
	}
	return c
}

// serverNow is the configuration by what the files hold now.
func (s *Set) serverNow(auth tls.ClientAuthType) *tls.Config {
	m := s.current.Load()
	c := s.base(m)
	c.ClientAuth, c.ClientCAs = auth, m.roots
	// Every handshake is a full one: a certificate that is not trusted any more comes in nowhere.
	c.SessionTicketsDisabled = true
	c.DynamicRecordSizingDisabled = true
	return c
}

// verifyClient compares a client's certificate with the address that it comes from.
func (s *Set) verifyClient(remote net.Addr) func(tls.ConnectionState) error {
	return func(cs tls.ConnectionState) error {
		if len(cs.PeerCertificates) == 0 {
			return nil // for ClientAuth to judge
		}
		return s.names.verify(cs.PeerCertificates[0], "", remote)
	}
}

func (s *Set) base(m *material) *tls.Config {
	return &tls.Config{
		Certificates: m.keys, MinVersion: s.rules.minVersion, MaxVersion: s.rules.maxVersion, CipherSuites: s.rules.suites,
		Renegotiation: tls.RenegotiateNever,
	}
}

// Client returns the configuration for one connection that this side makes, to host, which is at the address remote.
func (s *Set) Client(host string, remote net.Addr) *tls.Config {
	m := s.current.Load()
	c := s.base(m)
	c.ServerName = host
	c.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		for i := range m.keys {
			if info.SupportsCertificate(&m.keys[i]) == nil {
				return &m.keys[i], nil
			}
		}
		return &m.keys[0], nil // its refusal says more than the lack of one
	}
	// The library checks names by the one that was dialled only.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		if err := verifyChain(cs, m.roots); err != nil {
			return err
		}
		if !s.rules.checkServer {
			return nil
		}
		return s.names.verify(cs.PeerCertificates[0], host, remote)
	}
	return c
}

// Trusts tells whether a client with these certificates, its own first, is one that the set's authorities vouch for.
func (s *Set) Trusts(chain []*x509.Certificate) error {
	opts := x509.VerifyOptions{Roots: s.current.Load().roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(opts)
	return err
}

// verifyChain wants the other side's certificate to come from an authority that is trusted.
func verifyChain(cs tls.ConnectionState, roots *x509.CertPool) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the server has no certificate")
	}
	opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range cs.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	_, err := cs.PeerCertificates[0].Verify(opts)
	return err
}
