package sasl

import (
	"errors"
	"fmt"
	"strings"
)

// directive is one name=value of a token.
type directive struct{ name, value string }

var errMalformed = errors.New("the token is not a list of name=value")

// parseDirectives takes a token of DIGEST-MD5 apart: directives between commas, whose values may be quoted. Its errors do not
// quote the token.
func parseDirectives(token []byte) ([]directive, error) {
	if len(token) > TokenBytesMax {
		return nil, fmt.Errorf("the token has %d bytes, the limit is %d", len(token), TokenBytesMax)
	}
	var list []directive
	for rest := string(token); ; {
		rest = strings.TrimLeft(rest, ", \t\r\n")
		if rest == "" {
			return list, nil
		}
		var d directive
		var ok bool
		if d, rest, ok = cutDirective(rest); !ok || len(list) == directivesMax {
			return nil, errMalformed
		}
		list = append(list, d)
	}
}

// cutDirective takes the first directive off a text that begins with one.
func cutDirective(text string) (d directive, rest string, ok bool) {
	name, rest, ok := strings.Cut(text, "=")
	if name = strings.TrimRight(name, " \t\r\n"); !ok || name == "" || strings.ContainsAny(name, ", \t\r\n\"") {
		return d, "", false
	}
	d.name = strings.ToLower(name)
	rest = strings.TrimLeft(rest, " \t\r\n")
	if quoted, is := strings.CutPrefix(rest, `"`); is {
		d.value, rest, ok = cutQuoted(quoted)
	} else {
		end := strings.IndexByte(rest, ',')
		if end < 0 {
			end = len(rest)
		}
		d.value = strings.TrimRight(rest[:end], " \t\r\n")
		rest, ok = rest[end:], d.value != "" && !strings.ContainsAny(d.value, " \t\r\n\"")
	}
	rest = strings.TrimLeft(rest, " \t\r\n")
	return d, rest, ok && (rest == "" || rest[0] == ',')
}

// cutQuoted takes what stands before the closing quote.
func cutQuoted(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

// appendQuoted writes a directive with a quoted value.
func appendQuoted(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, `="`...)
	for i := range len(value) {
		if value[i] == '"' || value[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, value[i])
	}
	return append(b, '"')
}

// directives looks directives up and keeps the first complaint.
type directives struct {
	list []directive
	err  error
}

// once returns the value of a directive that has to be there exactly once.
func (d *directives) once(name string) string {
	value, n := d.find(name)
	d.require(n == 1, "%s is there %d times instead of once", name, n)
	return value
}

// atMostOnce returns the value of a directive that may be missing, and whether it is there.
func (d *directives) atMostOnce(name string) (string, bool) {
	value, n := d.find(name)
	d.require(n <= 1, "%s is there %d times", name, n)
	return value, n > 0
}

func (d *directives) find(name string) (value string, n int) {
	for _, one := range d.list {
		if one.name == name {
			if n++; n == 1 {
				value = one.value
			}
		}
	}
	return value, n
}

// require complains if ok is false, unless there is a complaint already.
func (d *directives) require(ok bool, format string, args ...any) {
	if !ok && d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// shown quotes a name for a message.
func shown(name string) string {
	if len(name) > shownBytesMax {
		return fmt.Sprintf("%q...", name[:shownBytesMax])
	}
	return fmt.Sprintf("%q", name)
}
