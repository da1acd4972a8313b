package sasl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// jaasKind is what a token of a JAAS file is.
type jaasKind uint8

const (
	jaasEnd    jaasKind = iota
	jaasWord            // a name without quotes
	jaasQuoted          // a text in double quotes
	jaasSymbol          // a single character
)

type jaasToken struct {
	kind jaasKind
	text string // without quotes; one byte for a symbol
	line int
}

func (t jaasToken) is(symbol byte) bool { return t.kind == jaasSymbol && t.text[0] == symbol }

// String says what the token is, and never what it says.
func (t jaasToken) String() string {
	switch t.kind {
	case jaasEnd:
		return "the end of the file"
	case jaasWord:
		return "a word"
	case jaasQuoted:
		return "a text in quotes"
	}
	if t.text == "#" {
		return "'#', which begins no comment here: write //"
	}
	return fmt.Sprintf("%q", t.text[0])
}

// jaasScanner splits a JAAS file into tokens, as the StreamTokenizer of Java does for it: // and a single / begin a comment up
// to the end of the line.
type jaasScanner struct {
	text string // what is left
	line int
}

func (s *jaasScanner) next() (jaasToken, error) {
	if err := s.skip(); err != nil {
		return jaasToken{}, err
	}
	t := jaasToken{line: s.line}
	switch {
	case s.text == "":
		return t, nil
	case s.text[0] == '"':
		return s.quoted()
	case isWordByte(s.text[0]):
		n := 1
		for n < len(s.text) && isWordByte(s.text[n]) {
			n++
		}
		if n > jaasWordBytesMax {
			return t, s.fault("a word of more than %d bytes", jaasWordBytesMax)
		}
		t.kind, t.text, s.text = jaasWord, s.text[:n], s.text[n:]
		return t, nil
	}
	t.kind, t.text, s.text = jaasSymbol, s.text[:1], s.text[1:]
	return t, nil
}

func (s *jaasScanner) fault(format string, args ...any) error {
	return &FileError{s.line, fmt.Sprintf(format, args...)}
}

// isWordByte tells what names are made of. Letters beyond ASCII come in several bytes, each of which counts.
func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-$*", c) >= 0 || c >= utf8.RuneSelf
}

// skip drops blanks and comments.
func (s *jaasScanner) skip() error {
	for s.text != "" {
		switch c := s.text[0]; {
		case c <= ' ':
			s.drop(1)
		case strings.HasPrefix(s.text, "/*"):
			end := strings.Index(s.text[2:], "*/")
			if end < 0 {
				return s.fault("a comment that does not end")
			}
			s.drop(end + 4)
		case c == '/':
			end := strings.IndexAny(s.text, "\r\n")
			if end < 0 {
				end = len(s.text)
			}
			s.drop(end)
		default:
			return nil
		}
	}
	return nil
}

// drop passes over bytes and counts lines.
func (s *jaasScanner) drop(n int) {
	s.line += strings.Count(s.text[:n], "\n")
	s.text = s.text[n:]
}

// escapes are those that a letter makes; other characters stand for themselves.
var escapes = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// quoted takes a text in double quotes, which has to end on its line.
func (s *jaasScanner) quoted() (jaasToken, error) {
	t := jaasToken{kind: jaasQuoted, line: s.line}
	var b strings.Builder
	for i := 1; i < len(s.text); i++ {
		switch c := s.text[i]; c {
		case '"':
			t.text, s.text = b.String(), s.text[i+1:]
			if len(t.text) > jaasWordBytesMax {
				return t, s.fault("a text of more than %d bytes", jaasWordBytesMax)
			}
			return t, nil
		case '\n', '\r':
			return t, s.fault("a text in quotes that does not end on its line")
		case '\\':
			value, n := unescape(s.text[i+1:])
			b.WriteString(value)
			i += n
		default:
			b.WriteByte(c)
		}
	}
	return t, s.fault("a text in quotes that does not end")
}

// unescape reads what stands behind a backslash, and tells how many bytes that was.
func unescape(text string) (string, int) {
	if text == "" || text[0] == '\n' || text[0] == '\r' {
		return "", 0 // the line is faulty, as will be seen next
	}
	c := text[0]
	if c < '0' || c > '7' {
		if e, ok := escapes[c]; ok {
			c = e
		}
		return string([]byte{c}), 1
	}
	digits, value := 2, rune(0)
	if c <= '3' {
		digits = 3
	}
	n := 0
	for n < digits && n < len(text) && text[n] >= '0' && text[n] <= '7' {
		value = value<<3 + rune(text[n]-'0')
		n++
	}
	return string(value), n
}
