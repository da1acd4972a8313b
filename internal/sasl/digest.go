package sasl

import (
	"crypto/md5" //nolint:gosec // the mechanism is made of it
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"
)

const (
	charsetUTF8 = "utf-8"
	algorithm   = "md5-sess"
	qopAuth     = "auth"
	// firstCount is the only count of uses of a nonce: each exchange has a nonce of its own.
	firstCount = "00000001"
	// methodLogin is hashed into the proof of the side that logs in, methodAnswer into that of the server.
	methodLogin  = "AUTHENTICATE"
	methodAnswer = ""
)

// Random fills a slice with random bytes that nobody can foresee.
type Random func([]byte)

// nonce makes a text that was never there before.
func (r Random) nonce() string {
	var b [nonceBytes]byte
	r(b[:])
	return base64.StdEncoding.EncodeToString(b[:])
}

// proof is what the two sides have agreed on, and the password that only they know.
type proof struct {
	user, realm, password string
	nonce, cnonce, uri    string
	authzid               string
	hasAuthzid            bool
}

// compute returns the hash that proves, in one direction, that somebody knows the password.
func (p *proof) compute(method string) string {
	secret := md5.Sum(join(latin1(p.user), latin1(p.realm), latin1(p.password)))
	a1 := join(secret[:], []byte(p.nonce), []byte(p.cnonce))
	if p.hasAuthzid {
		a1 = join(a1, []byte(p.authzid))
	}
	a2 := join([]byte(method), []byte(p.uri))
	return hexSum(join(hexOf(a1), []byte(p.nonce), []byte(firstCount), []byte(p.cnonce), []byte(qopAuth), hexOf(a2)))
}

func hexSum(b []byte) string { return string(hexOf(b)) }

func hexOf(b []byte) []byte {
	sum := md5.Sum(b)
	return hex.AppendEncode(nil, sum[:])
}

// join puts colons between the parts.
func join(parts ...[]byte) (all []byte) {
	for i, p := range parts {
		if i > 0 {
			all = append(all, ':')
		}
		all = append(all, p...)
	}
	return all
}

// latin1 encodes a text as it is hashed: in ISO 8859-1 if all of it can be, otherwise in UTF-8. So it stands in the RFC, and
// so Java does it.
func latin1(s string) []byte {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff { // also where it is not UTF-8
			return []byte(s)
		}
		b = append(b, byte(r))
	}
	return b
}

// fromLatin1 reads a name that came without a word about its encoding. Java takes it for UTF-8; what cannot be that is
// ISO 8859-1, as the RFC has it.
func fromLatin1(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, 0, len(s))
	for i := range len(s) {
		runes = append(runes, rune(s[i]))
	}
	return string(runes)
}

// equal compares two proofs in a time that says nothing about where they differ.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
