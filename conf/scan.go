package conf

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// entry is one key of a properties file with its value, unescaped but not trimmed, and the line on which it begins.
type entry struct {
	key, value string
	line       int
}

// scan splits the text of a properties file as java.util.Properties does:
//
//   - the file is ISO-8859-1, \uXXXX stands for any UTF-16 unit;
//   - a line whose first character is # or ! is a comment, there are no comments at the end of a line;
//   - the key ends at the first unescaped '=', ':' or blank; blanks and one '=' or ':' may follow;
//   - an odd number of backslashes at the end of a line continues it, leading blanks of the next line are dropped;
//   - \t \n \r \f are what they seem, any other \c is c.
//
// Entries come in the order of the file, a repeated key several times. A malformed \u is a fault of its line; the entry
// is left out.
func scan(text []byte) (entries []entry, faults []Fault) {
	s := scanner{text: text, next: 1}
	for s.logicalLine() {
		key, value := split(s.line)
		k, err := unescape(key)
		v, err2 := unescape(value)
		if err == nil {
			err = err2
		}
		if err != nil {
			faults = append(faults, Fault{Line: s.start, Key: shown(latin1(key)), Text: err.Error()})
			continue
		}
		entries = append(entries, entry{key: k, value: v, line: s.start})
	}
	return entries, faults
}

// scanner cuts a file into logical lines.
type scanner struct {
	text  []byte
	next  int    // number of the natural line that begins at text[0]
	line  []byte // the logical line, without leading blanks
	start int    // the natural line on which it begins
}

// logicalLine reads the next line that is neither blank nor a comment, with its continuations. False is the end.
func (s *scanner) logicalLine() bool {
	s.line = s.line[:0]
	for len(s.text) > 0 {
		if len(s.line) == 0 {
			s.start = s.next
		}
		natural := trimBlanks(s.naturalLine())
		if len(s.line) == 0 && (len(natural) == 0 || natural[0] == '#' || natural[0] == '!') {
			continue
		}
		backslashes := 0
		for i := len(natural) - 1; i >= 0 && natural[i] == '\\'; i-- {
			backslashes++
		}
		if backslashes%2 == 1 {
			s.line = append(s.line, natural[:len(natural)-1]...)
			continue
		}
		s.line = append(s.line, natural...)
		if len(s.line) > 0 {
			return true
		}
	}
	return len(s.line) > 0
}

// naturalLine cuts off what comes before the next \n, \r or \r\n.
func (s *scanner) naturalLine() []byte {
	s.next++
	for i, c := range s.text {
		if c != '\n' && c != '\r' {
			continue
		}
		line := s.text[:i]
		s.text = s.text[i+1:]
		if c == '\r' && len(s.text) > 0 && s.text[0] == '\n' {
			s.text = s.text[1:]
		}
		return line
	}
	line := s.text
	s.text = nil
	return line
}

// split parts a logical line into key and value, both still escaped.
func split(line []byte) (key, value []byte) {
	end := 0
	for end < len(line) && !blank(line[end]) && line[end] != '=' && line[end] != ':' {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(line))
	rest := trimBlanks(line[end:])
	if len(rest) > 0 && (rest[0] == '=' || rest[0] == ':') {
		rest = trimBlanks(rest[1:])
	}
	return line[:end], rest
}

// unescape resolves the backslashes of ISO-8859-1 text and returns it as UTF-8. Halves of a surrogate pair that stand
// alone become U+FFFD, which no key or path of ours can contain.
func unescape(b []byte) (string, error) {
	units := make([]uint16, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			if b[i] != '\\' {
				units = append(units, uint16(b[i]))
			}
			continue
		}
		i++
		switch c := b[i]; c {
		case 't':
			units = append(units, '\t')
		case 'n':
			units = append(units, '\n')
		case 'r':
			units = append(units, '\r')
		case 'f':
			units = append(units, '\f')
		case 'u':
			unit, ok := hex4(b[i+1:])
			if !ok {
				return "", fmt.Errorf("Malformed \\uxxxx encoding.")
			}
			units = append(units, unit)
			i += 4
		default:
			units = append(units, uint16(c))
		}
	}
	return string(utf16.Decode(units)), nil
}

func hex4(b []byte) (unit uint16, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		unit = unit<<4 | uint16(digit)
	}
	return unit, true
}

func latin1(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	return b
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }

// trim drops what Java's String.trim drops at both ends: every character up to the blank.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}
