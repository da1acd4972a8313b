package znode

import (
	"encoding/asn1"
	"encoding/hex"
	"strings"

	"zabra/wire"
)

// SchemeX509 is the scheme of identities that come from the certificates of clients. The id is the name of the subject, as
// RFC 2253 writes it.
const SchemeX509 = "x509"

// X509Provider knows clients by their certificates. A connection gets its identity when it is made, by IDs.
type X509Provider struct {
	// SuperUser is the subject of the superuser's certificate; empty for none.
	SuperUser string
}

// IDs are the identities of a client with that subject.
func (p X509Provider) IDs(subject string) []wire.ID {
	ids := []wire.ID{{Scheme: SchemeX509, ID: subject}}
	if p.SuperUser != "" && subject == p.SuperUser {
		ids = append(ids, wire.ID{Scheme: schemeSuper, ID: subject})
	}
	return ids
}

// Scheme implements [Provider].
func (X509Provider) Scheme() string { return SchemeX509 }

// Authenticated implements [Provider].
func (X509Provider) Authenticated() bool { return true }

// Matches implements [Provider]. The superuser's certificate is as good as any.
func (p X509Provider) Matches(identity, aclID string) bool {
	return identity == aclID || p.SuperUser != "" && identity == p.SuperUser
}

// Authenticate implements [Provider]. What counts is the certificate that the connection was made with, not a token.
func (X509Provider) Authenticate(string, []byte) ([]wire.ID, wire.Code) {
	return nil, wire.CodeAuthFailed
}

// User implements [Provider].
func (X509Provider) User(id string) string { return id }

// ValidID implements [Provider]: the id has to be a distinguished name, as Java reads them.
func (X509Provider) ValidID(id string) bool {
	if id == "" {
		return true
	}
	for rest := id; ; {
		name, value, ok := strings.Cut(rest, "=")
		if !ok || !isAttributeName(strings.TrimSpace(name)) {
			return false
		}
		n, ok := attributeValue(value)
		if !ok {
			return false
		}
		if n == len(value) {
			return true
		}
		rest = value[n+1:]
	}
}

// attributeNames are the attributes that Java knows by name, in capitals.
var attributeNames = map[string]bool{
	"CN": true, "C": true, "L": true, "S": true, "ST": true, "O": true, "OU": true, "T": true, "IP": true, "STREET": true, "DC": true,
	"DNQUALIFIER": true, "DNQ": true, "SURNAME": true, "GIVENNAME": true, "INITIALS": true, "GENERATION": true, "EMAIL": true,
	"EMAILADDRESS": true, "UID": true, "SERIALNUMBER": true,
}

// isAttributeName takes a name or the number of an attribute.
func isAttributeName(name string) bool {
	name = strings.ToUpper(name)
	if attributeNames[name] {
		return true
	}
	parts := strings.Split(strings.TrimPrefix(name, "OID."), ".")
	for _, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" || len(part) > 1 && part[0] == '0' {
			return false
		}
	}
	return len(parts) > 1 && len(parts[0]) == 1 && parts[0] <= "2"
}

// attributeValue returns the length of the value that s begins with: up to a separator, or all of it. It is not ok if that is no
// value.
func attributeValue(s string) (n int, ok bool) {
	start := len(s) - len(strings.TrimLeft(s, " \n"))
	switch rest := s[start:]; {
	case strings.HasPrefix(rest, "#"):
		n = strings.IndexAny(rest, ",+;")
		if n < 0 {
			n = len(rest)
		}
		der, err := hex.DecodeString(strings.TrimSpace(rest[1:n]))
		var value asn1.RawValue
		if err == nil {
			_, err = asn1.Unmarshal(der, &value)
		}
		return start + n, err == nil
	case strings.HasPrefix(rest, `"`):
		n, ok = quotedValue(rest)
		return start + n, ok
	}
	for n = start; n < len(s); n++ {
		switch c := s[n]; {
		case c == '\\':
			escaped := escapedBytes(s[n+1:])
			if escaped == 0 {
				return n, false
			}
			n += escaped
		case strings.IndexByte(",+;", c) >= 0:
			return n, true
		case strings.IndexByte(`<>"`, c) >= 0:
			return n, false
		}
	}
	return n, true
}

// escapedBytes returns how much of s belongs to a backslash before it: a special character, or two digits of a byte; 0 if neither
// is there.
func escapedBytes(s string) int {
	const digits = "0123456789abcdefABCDEF"
	switch {
	case s == "":
		return 0
	case strings.IndexByte(",=+<>#;\\\" \n", s[0]) >= 0:
		return 1
	case len(s) > 1 && strings.IndexByte(digits, s[0]) >= 0 && strings.IndexByte(digits, s[1]) >= 0:
		return 2
	}
	return 0
}

// quotedValue returns the length of a value in quotes with what may follow it before a separator.
func quotedValue(s string) (n int, ok bool) {
	for n = 1; n < len(s) && s[n] != '"'; n++ {
		if s[n] != '\\' {
			continue
		}
		escaped := escapedBytes(s[n+1:])
		if escaped == 0 {
			return n, false
		}
		n += escaped
	}
	if n >= len(s) {
		return len(s), false
	}
	for n++; n < len(s); n++ {
		switch s[n] {
		case ' ', '\n':
		case ',', '+', ';':
			return n, true
		default:
			return n, false
		}
	}
	return n, true
}
