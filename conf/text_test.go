package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestStringIsPinned keeps the printed form and, with it, the list of keys and defaults in view of a reviewer.
func TestStringIsPinned(t *testing.T) {
	c := mustParse(t, "dataDir=/var/lib/zookeeper\nclientPort 2181\nsnapCount=0x10\nserver.1=localhost:2888:3888\n"+
		"4lw.commands.whitelist=*\nDigestAuthenticationProvider.superDigest=super:x", nil)
	want, err := os.ReadFile(filepath.Join("testdata", "effective.cfg"))
	require.NoError(t, err)
	require.Equal(t, string(want), c.String())
}

// TestStringParsesAgain: the printed form is a configuration file with the same meaning.
func TestStringParsesAgain(t *testing.T) {
	for _, text := range []string{
		base,
		embedded,
		base + "clientPort=1\nclientPortAddress=::1\nforceSync=no\nskipACL=yes\nsnapshot.compression.method=gz\npeerType=observer",
		base + "server.3=[::1]:1:2:participant|h:3:4;5\nmultiAddress.enabled=true",
		"dataDir=\\ a\\\\b\\u20ac\\uD83D\\uDE00\\t=\\n#",
	} {
		first := mustParse(t, text, nil)
		second := mustParse(t, first.String(), nil)
		require.Equal(t, stripped(first), stripped(second), "%s", first)
	}
}

// stripped leaves what a configuration means: no origin, no remarks.
func stripped(c *Config) Config {
	s := *c
	s.Path, s.Embedded, s.Warnings, s.WithoutEffect, s.sources = "", false, nil, nil, nil
	for _, k := range keys {
		if k.secret {
			_, _ = k.set(&s, "")
		}
	}
	return s
}

func TestEscape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := trim(rapid.String().Draw(t, "value"))
		value = strings.ToValidUTF8(value, "?")
		entries, faults := scan([]byte("key=" + escape(value)))
		require.Empty(t, faults)
		require.Equal(t, []entry{{"key", value, 1}}, entries)
	})
}

// FuzzParse: no file makes the parser fail other than by an *Error, and what it accepts can be printed and read back.
func FuzzParse(f *testing.F) {
	f.Add([]byte(embedded))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > fileBytesMax {
			return
		}
		c, err := parse(text, nil)
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Faults)
			return
		}
		again, err := parse([]byte(c.String()), nil)
		require.NoError(t, err, "%s", c)
		require.Equal(t, stripped(c), stripped(again), "%s", c)
	})
}
