package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parse reads options with an environment of its own.
func parse(env map[string]string, args ...string) (*Options, string, error) {
	var stderr bytes.Buffer
	opt, err := ParseOptions(args, func(name string) string { return env[name] }, &stderr)
	return opt, stderr.String(), err
}

func TestParseOptions(t *testing.T) {
	opt, _, err := parse(map[string]string{"HOME": "/home/u"})
	require.NoError(t, err)
	require.Equal(t, serversDefault, opt.Servers)
	require.Equal(t, 30*time.Second, opt.Timeout)
	require.Equal(t, "/home/u/.zabra_history", opt.HistoryFile)
	require.Empty(t, opt.Words)

	opt, _, err = parse(nil, "-server", "a:1,b/c", "-timeout", "500", "-r", "-waitforconnection", "--quiet", "--color=always", "get", "-s", "/a")
	require.NoError(t, err)
	require.Equal(t, "a:1,b/c", opt.Servers)
	require.Equal(t, 500*time.Millisecond, opt.Timeout)
	require.True(t, opt.ReadOnly && opt.Wait && opt.Quiet && opt.Color)
	require.Equal(t, []string{"get", "-s", "/a"}, opt.Words, "what follows the command belongs to it")

	opt, _, err = parse(map[string]string{"NO_COLOR": "1"})
	require.NoError(t, err)
	require.False(t, opt.Color)

	// zkCli ignores what it does not know.
	opt, stderr, err := parse(nil, "-bogus", "ls", "/")
	require.NoError(t, err)
	require.Equal(t, "unknown option -bogus is ignored, zabra cli --help lists all\n", stderr)
	require.Equal(t, []string{"ls", "/"}, opt.Words)

	_, _, err = parse(nil, "--help")
	require.ErrorIs(t, err, ErrHelp)
	for want, args := range map[string][]string{
		"option -server needs a value": {"-server"},
		"it must be a number":          {"-timeout", "soon"},
		"above 0":                      {"-timeout", "0"},
		"unknown option --bogus":       {"--bogus"},
		"auto, always or never":        {"--color", "pink"},
		"no such file":                 {"--tls-ca", "/none"},
		"own certificate":              {"--tls-cert", "/none"},
		"client configuration":         {"-client-configuration", "/none"},
	} {
		_, _, err := parse(nil, args...)
		require.ErrorContains(t, err, want)
	}
}

func TestClientConfiguration(t *testing.T) {
	write := func(lines ...string) string {
		path := filepath.Join(t.TempDir(), "client.cfg")
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
		return path
	}
	opt, _, err := parse(nil, "-client-configuration", write("# comment", "zookeeper.ssl.trustStore.location=/none.jks"))
	require.NoError(t, err)
	require.Nil(t, opt.TLS, "TLS is used only if it is asked for")

	opt, _, err = parse(nil, "-client-configuration", write("zookeeper.client.secure = true", "zookeeper.ssl.hostnameVerification=false"))
	require.NoError(t, err)
	require.NotNil(t, opt.TLS)
	require.True(t, opt.TLS.InsecureSkipVerify)
	require.NotNil(t, opt.TLS.VerifyConnection, "the chain is checked all the same")

	opt, _, err = parse(map[string]string{"CLIENT_JVMFLAGS": "-Xmx1g -Dzookeeper.client.secure=true -Dfoo=bar"})
	require.NoError(t, err)
	require.NotNil(t, opt.TLS)

	for want, lines := range map[string][]string{
		"ssl.keyStore.location: open /k.jks":                                          {"zookeeper.client.secure=true", "zookeeper.ssl.keyStore.location=/k.jks"},
		"line 2 is not of the form":                                                   {"zookeeper.client.secure=true", "part of a password"},
		"ssl.keyStore.type: Unable to auto-detect store file type from file name: /k": {"client.secure=true", "ssl.keyStore.location=/k"},
		"BCFKS cannot be read":                                                        {"client.secure=true", "ssl.keyStore.location=/dev/null", "ssl.keyStore.type=bcfks"},
	} {
		_, _, err := parse(nil, "-client-configuration", write(lines...))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "part of a password")
	}

	// The first fault in a fixed order is told.
	both := write("client.secure=true", "ssl.keyStore.location=/k.jks", "ssl.trustStore.location=/t.jks")
	for range 20 {
		_, _, err := parse(nil, "-client-configuration", both)
		require.ErrorContains(t, err, "ssl.trustStore.location: open /t.jks")
	}
}

// The certificates of options count for more than those of a configuration, wherever they stand.
func TestOptionsBeforeConfiguration(t *testing.T) {
	ca, pair, _ := certificates(t)
	other, otherPair, _ := certificates(t)
	file := filepath.Join(t.TempDir(), "client.cfg")
	require.NoError(t, os.WriteFile(file, []byte("client.secure=true\nssl.trustStore.location="+other+"\nssl.keyStore.location="+otherPair+
		"\nssl.keyStore.type=PEM\nssl.hostnameVerification=false\n"), 0o600))
	want, err := (&TLSFiles{CA: ca, Cert: pair}).Load()
	require.NoError(t, err)
	for _, args := range [][]string{
		{"--tls-ca", ca, "--tls-cert", pair, "-client-configuration", file}, {"-client-configuration", file, "--tls-ca", ca, "--tls-cert", pair},
		{"--tls-ca", ca, "-client-configuration", file, "--tls-key", pair},
	} {
		opt, _, err := parse(nil, args...)
		require.NoError(t, err)
		require.True(t, opt.TLS.RootCAs.Equal(want.RootCAs), args)
		require.Equal(t, want.Certificates[0].Certificate, opt.TLS.Certificates[0].Certificate, args)
		require.True(t, opt.TLS.InsecureSkipVerify, "what no option says is from the file")
	}
	opt, _, err := parse(nil, "-client-configuration", file)
	require.NoError(t, err)
	require.False(t, opt.TLS.RootCAs.Equal(want.RootCAs))

	// The file counts for more than the environment, and what is overruled is not looked at.
	env := map[string]string{"CLIENT_JVMFLAGS": "-Dzookeeper.client.secure=true -Dzookeeper.ssl.trustStore.location=/none.jks"}
	for _, args := range [][]string{{"--tls-ca", ca}, {"-client-configuration", file}} {
		_, _, err = parse(env, args...)
		require.NoError(t, err, args)
	}
}

// No file that is read as a whole may be of any size.
func TestFilesTooLarge(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, append([]byte("server.1=a:1:2;3\n"), bytes.Repeat([]byte("#"), configFileBytesMax)...), 0o600))
	for _, option := range []string{"--tls-ca", "--tls-cert", "--tls-key", "-client-configuration"} {
		_, _, err := parse(nil, option, large)
		require.ErrorContains(t, err, "is larger than", option)
	}
	_, err := readMembers(large)
	require.ErrorContains(t, err, "is larger than")
}

func TestParseServers(t *testing.T) {
	for text, want := range map[string]serverList{
		"h":                 {addrs: []string{"h:2181"}},
		"h:1, b":            {addrs: []string{"h:1", "b:2181"}},
		"[::1]:5,[::2],::3": {addrs: []string{"[::1]:5", "[::2]:2181", "[::3]:2181"}},
		"h:1/":              {addrs: []string{"h:1"}},
		"h:1,b:2/c/d":       {addrs: []string{"h:1", "b:2"}, chroot: "/c/d"},
	} {
		want.text = text
		got, err := parseServers(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for text, want := range map[string]string{
		"": "names no server", "/c": "names no server", "h:x": "from 1 to 65535", "h:0": "from 1 to 65535", "h:1/c/": "must not end with /",
	} {
		_, err := parseServers(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                        nil,
		"  ls   /a\t":             {"ls", "/a"},
		`create "/a b" 'it "is"'`: {"create", "/a b", `it "is"`},
		`set /a ""`:               {"set", "/a", ""},
		`a"b"c d'e`:               {`a"b"c`, "d'e"},
		`set /a "unclosed end`:    {"set", "/a", "unclosed", "end"},
		`"a"b`:                    {"a", "b"},
		`"`:                       nil,
	} {
		require.Equal(t, want, splitWords(line), line)
	}
}

func TestParseFlags(t *testing.T) {
	defs := []flag{{name: "s"}, {name: "w"}, {name: "v", value: "version"}, {name: "add", value: "server"}}
	for line, want := range map[string]struct {
		set  flagSet
		args []string
	}{
		"/a -s":          {flagSet{"s": {""}}, []string{"/a"}},
		"-sw /a":         {flagSet{"s": {""}, "w": {""}}, []string{"/a"}},
		"-v -1 /a":       {flagSet{"v": {"-1"}}, []string{"/a"}},
		"-v7 /a":         {flagSet{"v": {"7"}}, []string{"/a"}},
		"--add=x -add y": {flagSet{"add": {"x", "y"}}, nil},
		"-- -s - /a":     {flagSet{}, []string{"-s", "-", "/a"}},
		"- /a":           {flagSet{}, []string{"-", "/a"}},
	} {
		set, args, err := parseFlags(defs, splitWords(line))
		require.NoError(t, err, line)
		require.Equal(t, want.set, set, line)
		require.Equal(t, want.args, args, line)
	}
	for line, want := range map[string]string{
		"-q": "Unrecognized option: -q", "-sq": "Unrecognized option: -sq", "--sw=1": "Unrecognized option: --sw=1",
		"-v": "Missing argument for option: v", "-v -s": "Missing argument for option: v",
	} {
		_, _, err := parseFlags(defs, splitWords(line))
		require.EqualError(t, err, want, line)
	}
}

func TestCheckPath(t *testing.T) {
	for path, want := range map[string]string{
		"/": "", "/a": "", "/a/.b": "", "/a/b.": "", "/a/...": "", "/grüße/日本": "",
		"":         "Path length must be > 0",
		"a":        "Path must start with / character",
		"/a/":      "Path must not end with / character",
		"/a//b":    `Invalid path string "/a//b" caused by empty node name specified @3`,
		"/a/./b":   `Invalid path string "/a/./b" caused by relative paths not allowed @3`,
		"/a/..":    `Invalid path string "/a/.." caused by relative paths not allowed @4`,
		"/a\x00":   "Invalid path string \"/a\x00\" caused by null character not allowed @2",
		"/ü\x01":   "Invalid path string \"/ü\x01\" caused by invalid character @2",
		"/a\u0085": "Invalid path string \"/a\u0085\" caused by invalid character @2",
	} {
		err := checkPath(path)
		if want == "" {
			require.NoError(t, err, path)
			continue
		}
		require.EqualError(t, err, want)
	}
}

func TestHexDump(t *testing.T) {
	require.Equal(t, "", hexDump(nil))
	dump := hexDump(append([]byte("0123456789abcdef"), 0, 'A', 0x7f, 0xff, ' '))
	require.Contains(t, dump, "|00000000| 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66 |0123456789abcdef|\n")
	require.Contains(t, dump, "|00000010| 00 41 7f ff 20                                  |.A..            |\n")
}

func TestPrintable(t *testing.T) {
	require.Equal(t, "a\nb\t日�[31m��", printable([]byte("a\nb\t日\x1b[31m\xff\x7f")))
}
