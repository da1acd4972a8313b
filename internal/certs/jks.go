package certs

import (
	"bytes"
	"crypto/sha1"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
)

const (
	jksMagic   = 0xfeedfeed
	jceksMagic = 0xcececece
	// jksWhitener stands between password and content in the digest at the end of a store.
	jksWhitener = "Mighty Aphrodite"
)

func isJKS(content []byte) bool {
	if len(content) < 4 {
		return false
	}
	magic := binary.BigEndian.Uint32(content)
	return magic == jksMagic || magic == jceksMagic
}

// decodeJKS reads a store in Java's own format. Without a password its digest is not checked, as in Java; a key cannot be read
// then. The certificate of a key counts as trusted, as in Java.
func decodeJKS(content []byte, password string) (*Store, error) {
	if err := checkJKS(content); err != nil {
		return nil, err
	}
	if password == "" {
		content = signedJKS(content)
	}
	ks := keystore.New(keystore.WithOrderedAliases(), keystore.WithCaseExactAliases())
	if err := ks.Load(bytes.NewReader(content), []byte(password)); err != nil {
		return nil, fmt.Errorf("the password is wrong or the file is damaged: %w", err)
	}
	s := &Store{}
	for _, alias := range ks.Aliases() {
		if err := s.addJKS(ks, alias, password); err != nil {
			return nil, fmt.Errorf("entry %.64q: %w", alias, err)
		}
	}
	if len(s.Trusted) == 0 {
		return nil, errors.New("the store is empty")
	}
	return s, nil
}

// addJKS takes one entry.
func (s *Store) addJKS(ks keystore.KeyStore, alias, password string) error {
	if ks.IsTrustedCertificateEntry(alias) {
		entry, err := ks.GetTrustedCertificateEntry(alias)
		if err != nil {
			return err
		}
		c, err := x509.ParseCertificate(entry.Certificate.Content)
		if err != nil {
			return err
		}
		s.Trusted = append(s.Trusted, c)
		return nil
	}
	encoded, err := ks.GetPrivateKeyEntryCertificateChain(alias)
	if err != nil {
		return err
	}
	chain := make([]*x509.Certificate, len(encoded))
	for i, c := range encoded {
		if chain[i], err = x509.ParseCertificate(c.Content); err != nil {
			return err
		}
	}
	if len(chain) == 0 {
		return errors.New("a key without a certificate")
	}
	s.Trusted = append(s.Trusted, chain[0])
	if password == "" {
		return nil
	}
	entry, err := ks.GetPrivateKeyEntry(alias, []byte(password))
	if err != nil {
		return fmt.Errorf("the key cannot be opened; its password has to be that of the store: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(entry.PrivateKey)
	if err != nil {
		return err
	}
	id, err := identity(key, chain)
	if err != nil {
		return err
	}
	s.Keys = append(s.Keys, id)
	return nil
}

// signedJKS is the content with the digest that an empty password makes.
func signedJKS(content []byte) []byte {
	body := content[:len(content)-sha1.Size]
	digest := sha1.Sum(append([]byte(jksWhitener), body...))
	return append(slices.Clone(body), digest[:]...)
}

// checkJKS goes through the lengths in a store. The library takes memory by them before it looks for the content.
func checkJKS(content []byte) error {
	if binary.BigEndian.Uint32(content) == jceksMagic {
		return errors.New("stores of the type JCEKS cannot be read; convert it to PKCS12 with keytool -importkeystore")
	}
	w := &jksWalk{rest: content[4:]}
	version, entries := w.number(), w.number()
	if version != 1 && version != 2 || entries > entriesMax {
		return errors.New("the file is damaged, or no store in JKS")
	}
	for range entries {
		w.entry(version)
	}
	if w.bad || len(w.rest) != sha1.Size {
		return errors.New("the file is damaged: its parts do not fit together")
	}
	return nil
}

// jksWalk goes through a store without reading it.
type jksWalk struct {
	rest []byte
	bad  bool
}

const (
	jksKey  = 1
	jksCert = 2
)

func (w *jksWalk) entry(version uint32) {
	tag := w.number()
	w.text()
	w.skip(8) // when it was made
	switch tag {
	case jksCert:
		w.certificate(version)
	case jksKey:
		w.skip(w.number())
		n := w.number()
		if n > entriesMax {
			w.bad = true
			return
		}
		for range n {
			w.certificate(version)
		}
	default:
		w.bad = true
	}
}

func (w *jksWalk) certificate(version uint32) {
	if version == 2 {
		w.text()
	}
	w.skip(w.number())
}

func (w *jksWalk) text() {
	if b := w.take(2); b != nil {
		w.skip(uint32(binary.BigEndian.Uint16(b)))
	}
}

func (w *jksWalk) number() uint32 {
	b := w.take(4)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (w *jksWalk) skip(n uint32) { w.take(n) }

// take returns the next bytes, nil if there are not as many.
func (w *jksWalk) take(n uint32) []byte {
	if w.bad || uint64(n) > uint64(len(w.rest)) {
		w.bad = true
		return nil
	}
	b := w.rest[:n]
	w.rest = w.rest[n:]
	return b
}
