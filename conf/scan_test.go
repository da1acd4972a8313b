package conf

import (
	"strings"
	"testing"

	"github.com/magiconair/properties"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
)

func TestScan(t *testing.T) {
	tests := []struct {
		name, text string
		want       []entry
	}{
		{"empty", "", nil},
		{"blank lines", "\n \t\f\r\n\r", nil},
		{"comments", "# a=1\n  ! b=2\n\t#\\\nc=3", []entry{{"c", "3", 4}}},
		{"no comment at the end of a line", "clientPort=2181 # x", []entry{{"clientPort", "2181 # x", 1}}},
		{"separators", "a=1\nb:2\nc 3\nd\t4\ne = 5\nf : 6\ng\f=7", []entry{
			{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 4}, {"e", "5", 5}, {"f", "6", 6}, {"g", "7", 7}}},
		{"only one separator is taken", "a==1\nb=:2\nc = =3", []entry{{"a", "=1", 1}, {"b", ":2", 2}, {"c", "=3", 3}}},
		{"escaped separators belong to the key", `a\=b\:c\ d=1`, []entry{{"a=b:c d", "1", 1}}},
		{"leading blanks dropped, trailing kept", "  a =  x y  ", []entry{{"a", "x y  ", 1}}},
		{"continuation", "a=1,\\\n   2,\\\r\n\t3\nb=4", []entry{{"a", "1,2,3", 1}, {"b", "4", 4}}},
		{"even number of backslashes", "a=1\\\\\nb=2", []entry{{"a", `1\`, 1}, {"b", "2", 2}}},
		{"three backslashes", "a=1\\\\\\\n2", []entry{{"a", `1\2`, 1}}},
		{"comment characters inside a continuation", "a=1\\\n#2", []entry{{"a", "1#2", 1}}},
		{"a blank line ends a continuation", "a=1\\\n\nb=2", []entry{{"a", "1", 1}, {"b", "2", 3}}},
		{"backslash at the end of the file", `a=1\`, []entry{{"a", "1", 1}}},
		{"escapes", `a=\t\n\r\f\\\:\=\#\!`, []entry{{"a", "\t\n\r\f\\:=#!", 1}}},
		{"other escapes lose the backslash", `a=C:\zk\data\q`, []entry{{"a", "C:zkdataq", 1}}},
		{"unicode", `\u00e9=\u20AC\uD83D\uDE00`, []entry{{"é", "€😀", 1}}},
		{"half a surrogate pair", `a=\uD83Dx`, []entry{{"a", "\uFFFDx", 1}}},
		{"ISO-8859-1", "a=\xe9", []entry{{"a", "é", 1}}},
		{"empty value", "a=\nb\nc:", []entry{{"a", "", 1}, {"b", "", 2}, {"c", "", 3}}},
		{"empty key", "=1\n:2", []entry{{"", "1", 1}, {"", "2", 2}}},
		{"duplicates stay", "a=1\na=2", []entry{{"a", "1", 1}, {"a", "2", 2}}},
		{"carriage returns end lines", "a=1\rb=2\r\nc=3", []entry{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}}},
		{"no expansion", "a=${b}\nb=1", []entry{{"a", "${b}", 1}, {"b", "1", 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, faults := scan([]byte(tt.text))
			require.Empty(t, faults)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestScanMalformedUnicode(t *testing.T) {
	for _, bad := range []string{`\u`, `\u12`, `\u12g4`, `\u 123`, "\\u\x10\x11\x12\x13"} {
		got, faults := scan([]byte("a=1\nb=" + bad + "\nc=3"))
		require.Equal(t, []entry{{"a", "1", 1}, {"c", "3", 3}}, got)
		require.Equal(t, []Fault{{Line: 2, Key: "b", Text: `Malformed \uxxxx encoding.`}}, faults)
	}
}

// libraryMap reads text with another implementation of the format.
func libraryMap(text string) (map[string]string, error) {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	p, err := loader.LoadBytes([]byte(text))
	if err != nil {
		return nil, err
	}
	return p.Map(), nil
}

func ourMap(text string) (map[string]string, []Fault) {
	entries, faults := scan([]byte(text))
	m := map[string]string{}
	for _, e := range entries {
		m[e.key] = e.value
	}
	return m, faults
}

// TestScanAgreesWithLibrary compares the rules with those of magiconair/properties, on files of the sort that people
// write. The library differs from java.util.Properties in corners (an empty key, a carriage return alone, surrogate
// pairs), which the table above decides.
func TestScanAgreesWithLibrary(t *testing.T) {
	line := rapid.OneOf(
		rapid.StringMatching(`[ \t]{0,2}[a-zA-Z0-9.]{1,8}[ \t]{0,2}[=:][ \t]{0,2}[ -\[\]-~]{0,12}`),
		rapid.StringMatching(`[a-zA-Z0-9.]{1,8}[ \t]{1,2}[a-z0-9,;*]{0,8}`),
		rapid.StringMatching(`[a-z]{1,3}=([a-z]|\\[tnrf:=#!\\]|\\u00[2-7][0-9a-fA-F]){0,6}`),
		rapid.StringMatching(`[a-z]{1,3}=[a-z]{0,3}\\\n[ \t]{0,3}[a-z#!]{1,4}`),
		rapid.StringMatching(`[a-z]([a-z]|\\[:= ]){0,4}=[a-z\xa1-\xff]{0,4}`),
		rapid.StringMatching(`[ \t]{0,2}[#!][ -~]{0,10}`),
		rapid.SampledFrom([]string{"", "  ", "\t"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 8).Draw(t, "lines")
		text := strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
		want, err := libraryMap(text)
		got, faults := ourMap(text)
		require.NoError(t, err)
		require.Empty(t, faults)
		require.Equal(t, want, got, "%q", text)
	})
}
