package conf

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

func TestServerLinesOfAFile(t *testing.T) {
	require.Equal(t, []string{`zoo.cfg:2: server.one: For input string: "one"`}, faultsOf(t, base+"server.one=a:1:2", nil))
	require.Equal(t, []string{"zoo.cfg:2: server.1: Multiple address feature is disabled, but multiple addresses were specified for sid 1"},
		faultsOf(t, base+"server.1=a:1:2|b:1:2", nil))
	c := mustParse(t, base+"server.1=a:1:2|b:1:2;9\nmultiAddress.enabled=true", nil)
	require.Equal(t, 9, c.ClientPort)
	c = mustParse(t, base+"clientPort=1\nserver.1=bad\nserver.1=a:1:2", nil)
	require.Len(t, c.Servers, 1)
	require.Equal(t, []string{"zoo.cfg:3: server.1: set again on line 4, which counts"}, texts(c.Warnings))
}

// withMyID parses text for a server whose file myid reads as given; "" is no file.
func withMyID(text, myid string, resolve func(string) ([]string, error)) (*Config, error) {
	l := newLoader("zoo.cfg")
	l.resolve = resolve
	l.readFile = func(path string, _ int) ([]byte, error) {
		if path == "/d/myid" && myid != "" {
			return []byte(myid), nil
		}
		return nil, fs.ErrNotExist
	}
	l.file("zoo.cfg", []byte(base+text))
	return l.finish()
}

func TestClientAddressOfTheServerLine(t *testing.T) {
	const differs = "client address for this server (id = 1) in static config file is "
	tests := []struct{ name, text, myid, want, fault string }{
		{"line alone", "server.1=h:1:2;2181", "1", "0.0.0.0:2181", ""},
		{"blank after myid", "server.1=h:1:2;2181", "1 ", "0.0.0.0:2181", ""},
		{"line without client part", "server.1=h:1:2\nclientPort=5", "1", ":5", ""},
		{"same port, wildcard", "server.1=h:1:2;127.0.0.1:5\nclientPort=5", "1", "127.0.0.1:5", ""},
		{"same address", "server.1=h:1:2;127.0.0.1:5\nclientPort=5\nclientPortAddress=127.0.0.1", "1", "127.0.0.1:5", ""},
		{"same after look-up", "server.1=h:1:2;127.0.0.1:5\nclientPort=5\nclientPortAddress=localhost", "1", "127.0.0.1:5", ""},
		{"other port", "server.1=h:1:2;6\nclientPort=5", "1", "", differs + ":5 is different from client address found in dynamic file: 0.0.0.0:6"},
		{"other address", "server.1=h:1:2;5\nclientPort=5\nclientPortAddress=127.0.0.1", "1", "", differs + "127.0.0.1:5 is different from client address found in dynamic file: 0.0.0.0:5"},
		{"another server's line", "server.1=h:1:2;6\nclientPort=5", "9", ":5", ""},
		{"no myid, no port", "server.1=h:1:2;6", "", "0.0.0.0:6", ""},
		{"no myid, but a port", "server.1=h:1:2;6\nclientPort=5", "", ":5", ""},
		{"negative id", "server.-3=h:1:2;6", "-3", "0.0.0.0:6", ""},
	}
	lookup := func(host string) ([]string, error) {
		if host == "localhost" {
			return []string{"::1", "127.0.0.1"}, nil
		}
		return []string{host}, nil
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := withMyID(tt.text, tt.myid, lookup)
			if tt.fault != "" {
				require.ErrorContains(t, err, tt.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, c.ClientAddr())
		})
	}
	c, err := withMyID("server.1=h:1:2;6", "1", nil)
	require.NoError(t, err)
	require.Equal(t, zxid.ServerID(1), c.MyID)
	require.True(t, c.Set("clientPort"))
}
