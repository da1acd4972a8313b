package admin

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// The text form of an answer by HTTP. Probes match it line by line (`grep error | grep null`), so that blanks and line
// breaks are part of the interface: two blanks for each level of an object, one on both sides of a colon, and an array on
// one line but for the objects in it.

// appendObject appends an object whose fields are depth+1 levels deep.
func appendObject(b []byte, o Object, depth int) []byte {
	b = append(b, '{')
	if len(o) == 0 {
		return append(b, " }"...)
	}
	for i := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendBreak(b, depth+1)
		b = appendString(b, o[i].Name)
		b = append(b, " : "...)
		b = appendValue(b, o[i].Value, depth+1)
	}
	b = appendBreak(b, depth)
	return append(b, '}')
}

func appendBreak(b []byte, depth int) []byte {
	b = append(b, '\n')
	for range depth {
		b = append(b, "  "...)
	}
	return b
}

// appendValue appends a value of one of the kinds that [Field] names. Any other is a defect of the command.
func appendValue(b []byte, value any, depth int) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return appendString(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int32:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		return appendNumber(b, v)
	case Object:
		return appendObject(b, v, depth)
	case []any:
		return appendArray(b, v, depth)
	case []string:
		return appendArray(b, v, depth)
	case []int64:
		return appendArray(b, v, depth)
	case []Object:
		return appendArray(b, v, depth)
	}
	panic(fmt.Sprintf("admin: a field of type %T", value))
}

func appendArray[T any](b []byte, list []T, depth int) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(append(b, ' '), list[i], depth)
	}
	return append(b, " ]"...)
}

// appendNumber appends a floating-point number as [appendDouble] does. What is no number is a text, as JSON has none for it.
func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return appendString(b, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return appendDouble(b, v)
}

const hexDigits = "0123456789ABCDEF"

// shortEscapes are the control characters that have an escape of two characters.
var shortEscapes = [...]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\'}

// appendString appends a text in quotes. Only what must be escaped is; bytes that are no UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case int(c) < len(shortEscapes) && shortEscapes[c] != 0:
			b = append(b, '\\', shortEscapes[c])
			i++
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
			i++
		case c < utf8.RuneSelf:
			b = append(b, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
		}
	}
	return append(b, '"')
}

// appendDocument appends the body of an answer: the fields of the command, then command and error. A command that has
// failed in the ordinary way, with status 200, shows its error first, as ZooKeeper does.
func appendDocument(b []byte, name string, resp *Response) []byte {
	fields := make(Object, 0, len(resp.Fields)+2)
	var failure any
	if resp.Error != "" {
		failure = resp.Error
	}
	failed := Field{"error", failure}
	command := Field{"command", name}
	if resp.Error != "" && resp.status() == statusOK {
		fields = append(fields, failed)
		fields = append(append(fields, resp.Fields...), command)
	} else {
		fields = append(append(fields, resp.Fields...), command, failed)
	}
	return appendObject(b, fields, 0)
}

const statusOK = 200

func (r *Response) status() int {
	if r.Status == 0 {
		return statusOK
	}
	return r.Status
}
