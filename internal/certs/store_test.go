package certs

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/stretchr/testify/require"
	"software.sslmate.com/src/go-pkcs12"

	"zabra/conf"
	"zabra/internal/certs/certstest"
)

const password = "changeit"

// jks writes a store in Java's format: keys with their chains, and trusted certificates.
func jks(t testing.TB, keys, trusted []*certstest.Pair, chain ...*x509.Certificate) []byte {
	t.Helper()
	ks := keystore.New(keystore.WithOrderedAliases())
	content := func(c *x509.Certificate) keystore.Certificate {
		return keystore.Certificate{Type: "X.509", Content: c.Raw}
	}
	for i, p := range keys {
		entry := keystore.PrivateKeyEntry{CreationTime: time.Now(), PrivateKey: p.PKCS8(t), CertificateChain: []keystore.Certificate{content(p.Cert)}}
		for _, c := range chain {
			entry.CertificateChain = append(entry.CertificateChain, content(c))
		}
		require.NoError(t, ks.SetPrivateKeyEntry("key"+string(rune('a'+i)), entry, []byte(password)))
	}
	for i, p := range trusted {
		entry := keystore.TrustedCertificateEntry{CreationTime: time.Now(), Certificate: content(p.Cert)}
		require.NoError(t, ks.SetTrustedCertificateEntry("ca"+string(rune('a'+i)), entry))
	}
	var b bytes.Buffer
	require.NoError(t, ks.Store(&b, []byte(password)))
	return b.Bytes()
}

// TestKeyStores: every kind of store gives the same identity.
func TestKeyStores(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	p := ca.Issue(t, pkix.Name{CommonName: "server"}, "zk1")
	p12 := func(e *pkcs12.Encoder) []byte {
		b, err := e.Encode(p.Key, p.Cert, []*x509.Certificate{ca.Cert}, password)
		require.NoError(t, err)
		return b
	}
	sec1, err := x509.MarshalECPrivateKey(p.Key)
	require.NoError(t, err)
	sec1 = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})
	java := jks(t, []*certstest.Pair{p}, nil, ca.Cert)
	for name, content := range map[string][]byte{
		"a.pem":         append(p.PEM(t), ca.CertPEM()...),
		"keyfirst.pem":  append(append([]byte("text\n"), sec1...), append(ca.CertPEM(), p.CertPEM()...)...),
		"a.jks":         java,
		"a.p12":         p12(pkcs12.Modern),
		"modern.p12":    p12(pkcs12.Modern2026),
		"legacy.P12":    p12(pkcs12.LegacyDES),
		"asjks.p12":     java,
		"aspkcs12.jks":  p12(pkcs12.Modern),
		"capitals.JKS":  java,
		"extension.txt": java,
	} {
		store := conf.Store{Location: certstest.Write(t, name, content), Password: password}
		if strings.HasSuffix(name, ".txt") {
			store.Type = "JKS"
		}
		s, err := ReadStore("ssl.keyStore.", store)
		require.NoError(t, err, name)
		require.Len(t, s.Keys, 1, name)
		require.Equal(t, [][]byte{p.Cert.Raw, ca.Cert.Raw}, s.Keys[0].Certificate, name)
		require.Equal(t, p.Cert.Raw, s.Keys[0].Leaf.Raw, name)
		require.True(t, p.Key.Equal(s.Keys[0].PrivateKey), name)
	}

	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})
	_, err = decodePEM(append(block, p.CertPEM()...), "")
	require.ErrorContains(t, err, "do not belong together")
}

// TestTrustStores: every kind of store gives the same authorities.
func TestTrustStores(t *testing.T) {
	a, b := certstest.NewCA(t, "a"), certstest.NewCA(t, "b")
	p := a.Issue(t, pkix.Name{CommonName: "server"})
	p12, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{a.Cert, b.Cert}, password)
	require.NoError(t, err)
	java := jks(t, nil, []*certstest.Pair{&a.Pair, &b.Pair})
	for name, content := range map[string][]byte{"t.pem": append(a.CertPEM(), b.CertPEM()...), "t.p12": p12, "t.jks": java} {
		s, err := ReadStore("", conf.Store{Location: certstest.Write(t, name, content), Password: password})
		require.NoError(t, err, name)
		require.Empty(t, s.Keys, name)
		var raw [][]byte
		for _, c := range s.Trusted {
			raw = append(raw, c.Raw)
		}
		require.Equal(t, [][]byte{a.Cert.Raw, b.Cert.Raw}, raw, name)
	}
	s, err := decode("JKS", java, "")
	require.NoError(t, err, "without a password the digest is not checked, as in Java")
	require.Len(t, s.Trusted, 2)
	s, err = decode("JKS", jks(t, []*certstest.Pair{p}, []*certstest.Pair{&b.Pair}), "")
	require.NoError(t, err)
	require.Len(t, s.Trusted, 2, "the certificate of a key is trusted, as in Java")
	require.Empty(t, s.Keys, "a key needs its password")
}

// TestStoreFaults: every fault names the key of the configuration and the file, and no password.
func TestStoreFaults(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	p := ca.Issue(t, pkix.Name{CommonName: "server"})
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	java := jks(t, []*certstest.Pair{p}, nil)
	p12, err := pkcs12.Modern.Encode(p.Key, p.Cert, nil, password)
	require.NoError(t, err)
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: p.PKCS8(t)})
	tests := []struct {
		name    string
		store   conf.Store
		content []byte
		want    string
	}{
		{"missing", conf.Store{Location: filepath.Join(dir, "none.pem")}, nil, "k.location: open " + filepath.Join(dir, "none.pem") + ": no such file"},
		{"no password file", conf.Store{Location: "a.pem", PasswordPath: filepath.Join(dir, "none")}, nil, "k.passwordPath: open"},
		{"extension", conf.Store{Location: "/x/store"}, nil, "k.type: Unable to auto-detect store file type from file name: /x/store"},
		{"BCFKS", conf.Store{Location: "a.bcfks"}, []byte("x"), "a.bcfks: stores of the type BCFKS cannot be read; convert it to PKCS12"},
		{"unknown type", conf.Store{Location: "a.pem", Type: "DKS"}, []byte("x"), "a store of the type DKS is not known"},
		{"JKS password", conf.Store{Location: "b.jks", Password: "wrongpass"}, java, "b.jks: the password is wrong or the file is damaged"},
		{"PKCS12 password", conf.Store{Location: "c.p12", Password: "wrongpass"}, p12, "c.p12: the password is wrong"},
		{"PKCS12 damaged", conf.Store{Location: "d.p12", Password: password}, p12[:len(p12)/2], "d.p12: the file is damaged, or no store in PKCS12 or JKS"},
		{"JKS cut", conf.Store{Location: "e.jks", Password: password}, java[:len(java)-30], "e.jks: the file is damaged: its parts do not fit together"},
		{"JCEKS", conf.Store{Location: "f.jks", Password: password}, append([]byte{0xce, 0xce, 0xce, 0xce}, java[4:]...), "JCEKS cannot be read"},
		{"empty JKS", conf.Store{Location: "g.jks", Password: password}, jks(t, nil, nil), "g.jks: the store is empty"},
		{"empty PEM", conf.Store{Location: "h.pem"}, []byte("hello"), "h.pem: there is no certificate in PEM"},
		{"key alone", conf.Store{Location: "i.pem"}, key, "there is a key, but no certificate"},
		{"two keys", conf.Store{Location: "j.pem"}, append(append(key, key...), p.CertPEM()...), "there is more than one key"},
		{"strange key", conf.Store{Location: "k.pem"}, append(pem.EncodeToMemory(&pem.Block{Type: "DSA PRIVATE KEY", Bytes: []byte{1}}), p.CertPEM()...), "DSA PRIVATE KEY: a key of this kind is not supported"},
		{"bad certificate", conf.Store{Location: "l.pem"}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}), "certificate 1: "},
		{"other key", conf.Store{Location: "m.pem"}, append(key, ca.CertPEM()...), "the key and the certificates do not belong together"},
		{"too large", conf.Store{Location: "n.pem"}, make([]byte, storeBytesMax+1), "is larger than"},
		{"password too large", conf.Store{Location: "n.pem", PasswordPath: write("huge", make([]byte, passwordBytesMax+1))}, nil, "huge is larger than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.content != nil {
				tt.store.Location = write(tt.store.Location, tt.content)
			}
			_, err := ReadStore("k.", tt.store)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "wrongpass")
		})
	}
}

func TestPasswordFile(t *testing.T) {
	p := certstest.NewCA(t, "ca")
	java := certstest.Write(t, "a.jks", jks(t, []*certstest.Pair{&p.Pair}, nil))
	for text, ok := range map[string]bool{password: true, password + "\n": true, password + "\r\n": true, password + "\n\n": false, " " + password: false} {
		_, err := ReadStore("", conf.Store{Location: java, Password: "the file wins", PasswordPath: certstest.Write(t, "pw", []byte(text))})
		require.Equal(t, ok, err == nil, "%q: %v", text, err)
	}
}

// TestEncryptedKeys reads what openssl has written.
func TestEncryptedKeys(t *testing.T) {
	read := func(name, password string) (any, error) {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		block, _ := pem.Decode(text)
		require.NotNil(t, block, name)
		return parseKey(block, password)
	}
	want, err := read("key-plain-sec1.pem", "")
	require.NoError(t, err)
	names, err := filepath.Glob("testdata/key-*.pem")
	require.NoError(t, err)
	require.Len(t, names, 10)
	for _, name := range names {
		name = filepath.Base(name)
		got, err := read(name, "secret")
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
		if strings.Contains(name, "plain") {
			continue
		}
		_, err = read(name, "")
		require.ErrorIs(t, err, errNoKeyPass, name)
		for _, wrong := range []string{"Secret", "secret1", "x"} {
			_, err = read(name, wrong)
			require.ErrorIs(t, err, errPassword, name)
		}
	}
	for name, want := range map[string]string{
		"refused-scrypt.pem": "in a way that is not supported", "refused-pbes1.pem": "in a way that is not supported", "refused-oldpem.pem": "in an old way",
	} {
		_, err := read(name, "secret")
		require.ErrorContains(t, err, want, name)
		require.ErrorContains(t, err, "openssl pkcs8 -topk8", name)
	}
}

// TestLengthsInJKS: no length in a store is believed before the bytes are there.
func TestLengthsInJKS(t *testing.T) {
	p := certstest.NewCA(t, "ca")
	java := jks(t, []*certstest.Pair{&p.Pair}, []*certstest.Pair{&p.Pair})
	for at := 4; at < len(java)-4; at++ {
		b := bytes.Clone(java)
		binary.BigEndian.PutUint32(b[at:], 0xffffffff)
		_, err := decodeJKS(b, password)
		require.Error(t, err, at)
	}
	for n := range java {
		if isJKS(java[:n]) {
			_, err := decodeJKS(java[:n], password)
			require.Error(t, err, n)
		}
	}
}

// TestWorkOfPKCS12: a store that would take hours is refused before.
func TestWorkOfPKCS12(t *testing.T) {
	p := certstest.NewCA(t, "ca")
	for name, e := range map[string]*pkcs12.Encoder{"MAC": pkcs12.Modern, "PBMAC1": pkcs12.Modern2026} {
		b, err := e.WithIterations(0x018001).Encode(p.Key, p.Cert, nil, password)
		require.NoError(t, err)
		low, high := []byte{0x02, 0x03, 0x01, 0x80, 0x01}, []byte{0x02, 0x03, 0x65, 0x80, 0x01}
		require.Positive(t, bytes.Count(b, low), name)
		_, err = decodePKCS12(bytes.ReplaceAll(b, low, high), password)
		require.ErrorContains(t, err, "its password is to be hashed 6651905 times", name)
	}
	open, err := pkcs12.Passwordless.EncodeTrustStore([]*x509.Certificate{p.Cert}, "")
	require.NoError(t, err)
	s, err := decodePKCS12(open, "")
	require.NoError(t, err)
	require.Len(t, s.Trusted, 1)
	b, err := pkcs12.Modern.Encode(p.Key, p.Cert, nil, password)
	require.NoError(t, err)
	var parts pfx
	_, err = asn1.Unmarshal(b, &parts)
	require.NoError(t, err)
	bare, err := asn1.Marshal(struct {
		Version  int
		AuthSafe asn1.RawValue
	}{3, parts.AuthSafe})
	require.NoError(t, err)
	_, err = decodePKCS12(bare, "")
	require.ErrorContains(t, err, "nothing guards it against changes")
}

func FuzzDecode(f *testing.F) {
	p := certstest.NewCA(f, "ca")
	p12, err := pkcs12.Modern.WithIterations(1).Encode(p.Key, p.Cert, nil, password)
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range [][]byte{p12, jks(f, []*certstest.Pair{&p.Pair}, []*certstest.Pair{&p.Pair}), p.PEM(f)} {
		f.Add(b, password)
	}
	for _, name := range []string{"key-aes-256-cbc.pem", "refused-scrypt.pem"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "secret")
	}
	f.Fuzz(func(t *testing.T, content []byte, password string) {
		const few = 1000
		if rounds, err := pkcs12Rounds(content); err == nil && rounds > few {
			return // it takes its time
		}
		for _, kind := range []string{"PEM", "JKS", "PKCS12", "BCFKS"} {
			s, err := decode(kind, content, password)
			require.Equal(t, err != nil, s == nil)
			if s != nil {
				require.NotEmpty(t, s.Trusted)
			}
		}
	})
}
