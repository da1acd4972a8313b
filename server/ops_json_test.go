package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// jsonObject is an object whose fields keep their order.
type jsonObject []jsonField

// jsonField is one of them. Value is nil, a bool, a string, a json.Number, a []any or a jsonObject.
type jsonField struct {
	name  string
	value any
}

// parseJSON reads one JSON value that fills the text.
func parseJSON(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	value, err := parseValue(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("something stands behind the value")
	}
	return value, nil
}

func parseValue(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := jsonObject{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			value, err := parseValue(dec)
			if err != nil {
				return nil, err
			}
			object = append(object, jsonField{name.(string), value})
		}
		_, err := dec.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			value, err := parseValue(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := dec.Token()
		return list, err
	}
	return token, nil
}

// printJSON writes a value in the layout of the reference server, which scripts match line by line.
func printJSON(value any, indent string) string {
	switch v := value.(type) {
	case jsonObject:
		if len(v) == 0 {
			return "{ }"
		}
		fields := make([]string, len(v))
		for i, f := range v {
			fields[i] = "\n" + indent + "  " + printString(f.name) + " : " + printJSON(f.value, indent+"  ")
		}
		return "{" + strings.Join(fields, ",") + "\n" + indent + "}"
	case []any:
		if len(v) == 0 {
			return "[ ]"
		}
		items := make([]string, len(v))
		for i := range v {
			items[i] = printJSON(v[i], indent)
		}
		return "[ " + strings.Join(items, ", ") + " ]"
	case string:
		return printString(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(value)
}

func printString(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string can be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// get returns a field, nil if there is none.
func (o jsonObject) get(name string) any {
	if i := slices.IndexFunc(o, func(f jsonField) bool { return f.name == name }); i >= 0 {
		return o[i].value
	}
	return nil
}

func TestOpsJSONLayout(t *testing.T) {
	const text = `{
  "connections" : [ {
    "remote_socket_address" : "127.0.0.1:1",
    "session_id" : 72057594037927936
  }, {
    "x" : -1.50
  } ],
  "empty" : [ ],
  "none" : { },
  "paths" : [ "/a", "/b\"" ],
  "command" : "x",
  "error" : null
}`
	value, err := parseJSON(text)
	require.NoError(t, err)
	require.Equal(t, text, printJSON(value, ""))
	for _, other := range []string{text + "\n", strings.Replace(text, " : ", ": ", 1), strings.Replace(text, "[ ]", "[]", 1), strings.Replace(text, "  ", "\t", 1)} {
		value, err := parseJSON(other)
		require.NoError(t, err)
		require.NotEqual(t, other, printJSON(value, ""))
	}
	_, err = parseJSON(text + "x")
	require.Error(t, err)
}
