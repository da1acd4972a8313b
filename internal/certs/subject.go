package certs

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"strings"
)

// subjectKeywords are the attributes that have a name in RFC 2253; all others are written by their number.
var subjectKeywords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O", "2.5.4.11": "OU",
	"0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}

type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// relativeSET is a set for package asn1 because of its name.
type relativeSET []attribute

// Subject is the name of the subject of a certificate as Java's X500Principal.getName() prints it, letter by letter: ACLs of the
// scheme x509 hold it.
func Subject(c *x509.Certificate) (string, error) {
	var sequence []relativeSET
	if err := unmarshal(c.RawSubject, &sequence); err != nil {
		return "", fmt.Errorf("subject of the certificate: %w", err)
	}
	var b strings.Builder
	for i := len(sequence) - 1; i >= 0; i-- {
		for j, a := range sequence[i] {
			if j > 0 {
				b.WriteByte('+')
			}
			writeAttribute(&b, a)
		}
		if i > 0 {
			b.WriteByte(',')
		}
	}
	return b.String(), nil
}

// writeAttribute writes a name and its value: as text where the attribute has a name and the value is a text, else in hex.
func writeAttribute(b *strings.Builder, a attribute) {
	name, known := subjectKeywords[a.Type.String()]
	if !known {
		name = a.Type.String()
	}
	b.WriteString(name)
	b.WriteByte('=')
	if !known || !isText(a.Value) {
		b.WriteByte('#')
		b.WriteString(hex.EncodeToString(a.Value.FullBytes))
		return
	}
	text := strings.ToValidUTF8(string(a.Value.Bytes), "�")
	inner := strings.Trim(text, " \r")
	lead := len(text) - len(strings.TrimLeft(text, " \r"))
	for i, r := range text {
		switch {
		case i < lead, i >= lead+len(inner), strings.ContainsRune(`,=+<>#;"\`, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == 0:
			b.WriteString(`\00`)
		default:
			b.WriteRune(r)
		}
	}
}

const (
	tagTeletex = 20
	tagGeneral = 27
	tagBMP     = 30
)

// isText tells whether a value is of a type that Java takes for text.
func isText(v asn1.RawValue) bool {
	if v.Class != asn1.ClassUniversal {
		return false
	}
	switch v.Tag {
	case asn1.TagPrintableString, asn1.TagUTF8String, asn1.TagIA5String, tagTeletex, tagGeneral, tagBMP:
		return true
	}
	return false
}
