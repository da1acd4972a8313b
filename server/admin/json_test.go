package admin

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocumentText(t *testing.T) {
	tests := []struct {
		name string
		resp Response
		want string
	}{
		{"nothing but success", Response{}, "{\n  \"command\" : \"c\",\n  \"error\" : null\n}"},
		{"an error comes first", Response{Error: "e"}, "{\n  \"error\" : \"e\",\n  \"command\" : \"c\"\n}"},
		{"with another status it does not", Response{Error: "e", Status: 401}, "{\n  \"command\" : \"c\",\n  \"error\" : \"e\"\n}"},
		{"plain values", Response{Fields: Object{
			{"nil", nil}, {"bool", true}, {"int", -1}, {"int32", int32(2)}, {"int64", int64(math.MinInt64)}, {"uint64", uint64(math.MaxUint64)}, {"text", "x"},
		}}, `{
  "nil" : null,
  "bool" : true,
  "int" : -1,
  "int32" : 2,
  "int64" : -9223372036854775808,
  "uint64" : 18446744073709551615,
  "text" : "x",
  "command" : "c",
  "error" : null
}`},
		{"doubles", Response{Fields: Object{{"a", 0.0}, {"b", 4.31172}, {"c", 0.0005}, {"d", 12345678.0}, {"e", 1e16}, {"f", math.NaN()}, {"g", math.Inf(-1)}}}, `{
  "a" : 0.0,
  "b" : 4.3117,
  "c" : 0.0005,
  "d" : 12345678.0,
  "e" : 10000000000000000.0,
  "f" : "NaN",
  "g" : "-Inf",
  "command" : "c",
  "error" : null
}`},
		{"empty ones", Response{Fields: Object{{"o", Object{}}, {"a", []any{}}, {"s", []string{}}, {"i", []int64(nil)}, {"l", []Object{}}}}, `{
  "o" : { },
  "a" : [ ],
  "s" : [ ],
  "i" : [ ],
  "l" : [ ],
  "command" : "c",
  "error" : null
}`},
		{"arrays", Response{Fields: Object{{"a", []any{1, "x", nil, []int64{2, 3}}}, {"s", []string{"a", "b"}}}}, `{
  "a" : [ 1, "x", null, [ 2, 3 ] ],
  "s" : [ "a", "b" ],
  "command" : "c",
  "error" : null
}`},
		{"objects in objects and arrays", Response{Fields: Object{
			{"o", Object{{"p", Object{{"q", 1}}}}}, {"l", []Object{{{"x", 1}, {"y", []Object{{{"z", 2}}, {}}}}, {{"x", 3}}}},
		}}, `{
  "o" : {
    "p" : {
      "q" : 1
    }
  },
  "l" : [ {
    "x" : 1,
    "y" : [ {
      "z" : 2
    }, { } ]
  }, {
    "x" : 3
  } ],
  "command" : "c",
  "error" : null
}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := appendDocument(nil, "c", &tt.resp)
			require.Equal(t, tt.want, string(text))
			require.True(t, json.Valid(text))
		})
	}
}

func TestStringsAreEscaped(t *testing.T) {
	tests := map[string]string{
		"":                  `""`,
		`a"b\c/d`:           `"a\"b\\c/d"`,
		"\b\t\n\f\r":        `"\b\t\n\f\r"`,
		"\x00\x1f\x7f":      "\"\\u0000\\u001F\x7f\"",
		"grün €\U0001F418<": "\"grün €\U0001F418<\"",
		"\xff\xc3(":         "\"\ufffd\ufffd(\"",
	}
	for in, want := range tests {
		text := appendString(nil, in)
		require.Equal(t, want, string(text))
		var back string
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, string([]rune(in)), back)
	}
}

func TestUnknownTypesAreADefect(t *testing.T) {
	require.Panics(t, func() { appendValue(nil, struct{}{}, 0) })
}
