package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

// quiet runs a command without the greeting.
func quiet(t testing.TB, addr string, words ...string) result {
	t.Helper()
	return runOptions(t, []string{"-server", addr, "-q"}, "", words...)
}

// ok runs a command that has to succeed, and returns its output.
func ok(t testing.TB, addr string, words ...string) string {
	t.Helper()
	got := quiet(t, addr, words...)
	require.Equal(t, 0, got.code, "%v: %s", words, got.err)
	return got.out
}

func fill(t testing.TB, zk *client.Client, nodes ...string) {
	t.Helper()
	for _, n := range nodes {
		path, data, _ := strings.Cut(n, "=")
		_, err := zk.Create(t.Context(), path, []byte(data), wire.OpenACL, 0)
		require.NoError(t, err)
	}
}

func TestTreeAndUsage(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	fill(t, zk, "/r=1", "/r/a=22", "/r/a/x=4444", "/r/a/y=", "/r/b=55555")
	_, err := zk.Create(t.Context(), "/r/b/e", []byte("e"), wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)

	require.Equal(t, "/r\n├── a\n│   ├── x\n│   └── y\n└── b\n    └── e\n\n6 nodes\n", ok(t, server.Addr(), "tree", "/r"))
	require.Equal(t, "/r\n├── a\n└── b\n\n3 nodes\n", ok(t, server.Addr(), "tree", "-d", "1", "/r"))
	require.Regexp(t, `^/r  \[1 bytes, 2 children\]
├── a  \[2 bytes, 2 children\]
│   ├── x  \[4 bytes\]
│   └── y  \[0 bytes\]
└── b  \[5 bytes, 1 children\]
    └── e  \[1 bytes, ephemeral of 0x[0-9a-f]+\]

6 nodes
$`, ok(t, server.Addr(), "tree", "-s", "/r"))
	require.Equal(t, "       BYTES      NODES  PATH\n           6          3  /r/a\n           6          2  /r/b\n          13          6  /r\n",
		ok(t, server.Addr(), "du", "/r"))
	require.Equal(t, result{1, "", "-d 0: it must be a number of levels, 1 or more\n"}, quiet(t, server.Addr(), "tree", "-d", "0", "/r"))
	require.Equal(t, result{1, "", "Node does not exist: /none\n"}, quiet(t, server.Addr(), "du", "/none"))
	require.Contains(t, ok(t, server.Addr(), "tree"), "zookeeper")
}

// What cannot be read is told, and the rest is shown.
func TestTreeWithoutPermission(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	fill(t, zk, "/r", "/r/a", "/r/b")
	_, err := zk.SetACL(t.Context(), "/r/a", []wire.ACL{{Perms: wire.PermAdmin, Scheme: "world", ID: "anyone"}}, -1)
	require.NoError(t, err)
	require.Equal(t, result{1, "/r\n├── a\n└── b\n\n3 nodes\n", "Insufficient permission : /r/a\n"}, quiet(t, server.Addr(), "tree", "/r"))
	require.Equal(t, result{1, "/r\n/r/a\n/r/b\n", "Insufficient permission : /r/a\n"}, quiet(t, server.Addr(), "ls", "-R", "/r"))
}

func TestWatchCounts(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	fill(t, zk, "/w")
	done := make(chan result, 1)
	go func() { done <- quiet(t, server.Addr(), "watch", "-n", "2", "/w") }()
	for end := time.Now().Add(waitMax); time.Now().Before(end); { // the watch is set at some time
		_, err := zk.SetData(t.Context(), "/w", nil, -1)
		require.NoError(t, err)
		select {
		case got := <-done:
			require.Equal(t, 0, got.code)
			require.Regexp(t, `^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\S+ NodeDataChanged     zxid=0x[0-9a-f]+ /w\n){2}$`, got.out)
			return
		case <-time.After(time.Millisecond):
		}
	}
	require.Fail(t, "the watch does not end")
}

func TestDiff(t *testing.T) {
	one, two := servertest.Start(t), servertest.Start(t)
	fill(t, one.Client(t), "/a", "/a/same=x", "/a/data=abc", "/a/acl", "/a/only", "/b", "/b/same=x", "/b/data=abcd", "/b/acl", "/b/new")
	fill(t, two.Client(t), "/a", "/a/same=x", "/a/data=abc", "/a/acl", "/a/only")
	ok(t, one.Addr(), "setAcl", "/b/acl", "world:anyone:r")
	ok(t, one.Addr(), "create", "/b/null")
	want := "~ /acl  acl world:anyone:cdrwa, world:anyone:r\n~ /data  data 3 bytes, 4 bytes\n+ /new\n+ /null\n- /only\n"
	require.Equal(t, result{1, want, "5 differences\n"}, quiet(t, one.Addr(), "diff", "/a", "/b"))
	require.Equal(t, result{0, "", ""}, quiet(t, one.Addr(), "diff", "/a", "--other", two.Addr()))
	require.Equal(t, result{0, "", ""}, quiet(t, one.Addr(), "diff", "--other="+two.Addr()+"/a", "/a", "/"), "a root belongs to the servers")
	require.Equal(t, result{1, "", "Node does not exist: /b\n"}, quiet(t, one.Addr(), "diff", "/b", "--other", two.Addr()))
	require.Equal(t, 1, quiet(t, one.Addr(), "diff", "/a").code)

	// Null data and data without a byte are not the same.
	_, err := one.Client(t).SetData(t.Context(), "/b/null", []byte{}, -1)
	require.NoError(t, err)
	ok(t, one.Addr(), "create", "/a/null")
	require.Contains(t, quiet(t, one.Addr(), "diff", "/a", "/b").out, "~ /null  data null, 0 bytes\n")
}

// drawnNode is a node of a random tree.
type drawnNode struct {
	data []byte
	acl  []wire.ACL
}

func drawTree(t *rapid.T) (paths []string, nodes map[string]drawnNode) {
	nodes = map[string]drawnNode{}
	names := rapid.SampledFrom([]string{"a", "b", "with blank", "grüße", `"q"`, "x.y", "日本"})
	acls := rapid.SampledFrom([]wire.ACL{
		{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}, {Perms: wire.PermRead, Scheme: "world", ID: "anyone"},
		{Perms: wire.PermRead | wire.PermAdmin, Scheme: "ip", ID: "127.0.0.1"}, {Perms: wire.PermAll | 32, Scheme: "ip", ID: "127.0.0.1"},
		{Perms: wire.PermWrite, Scheme: "digest", ID: "bob:fyVmFCwVbTJYrznoSu1koqYEYF0="},
	})
	readable := wire.ACL{Perms: wire.PermRead | wire.PermAdmin, Scheme: "ip", ID: "127.0.0.0/8"}
	paths = []string{"/t"}
	for range rapid.IntRange(0, 12).Draw(t, "nodes") {
		path := join(rapid.SampledFrom(paths).Draw(t, "parent"), names.Draw(t, "name"))
		if _, twice := nodes[path]; !twice && path != "/t" {
			paths = append(paths, path)
			nodes[path] = drawnNode{}
		}
	}
	for _, path := range paths {
		data := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 40),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) })).Draw(t, "data")
		nodes[path] = drawnNode{data, append(rapid.SliceOfNDistinct(acls, 0, 2, rapid.ID[wire.ACL]).Draw(t, "acl"), readable)}
	}
	return paths, nodes
}

// What is exported and imported elsewhere is the same, and so is its export.
func TestExportImportRoundTrip(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	s, _ := open(t, server.Addr(), 10*time.Second)
	var out bytes.Buffer
	sh := newShell(&Options{Stdout: &out, Stderr: &out}, s.cfg.servers)
	sh.sess = s
	run := func(words ...string) string {
		out.Reset()
		sh.execute(t.Context(), words)
		require.Equal(t, 0, sh.code, "%v: %s", words, out.String())
		return out.String()
	}
	dir, round := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		paths, nodes := drawTree(rt)
		round++
		src, dst, file := "/src"+itoa(round), "/dst"+itoa(round), filepath.Join(dir, itoa(round))
		fill(t, zk, src)
		for _, path := range paths {
			zk.Send(wire.OpCreate, &wire.CreateRequest{Path: []byte(src + path), Data: nodes[path].data, ACL: wire.OpenACL}, nil)
		}
		for _, path := range paths {
			zk.Send(wire.OpSetACL, &wire.SetACLRequest{Path: []byte(src + path), ACL: nodes[path].acl, Version: -1}, nil)
		}
		require.NoError(t, zk.Ping(t.Context()))
		run("export", src, file)
		run("import", file, dst)
		for _, path := range paths {
			data, _, err := zk.GetData(t.Context(), dst+path, false)
			require.NoError(t, err)
			require.Equal(t, nodes[path].data, data)
			acl, _, err := zk.GetACL(t.Context(), dst+path)
			require.NoError(t, err)
			require.Equal(t, nodes[path].acl, acl)
		}
		require.Equal(t, "", run("diff", src, dst))
		first := run("export", src)
		require.Equal(t, strings.Replace(first, src, dst, 1), run("export", dst))
	})
}

func TestExportImport(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	fill(t, zk, "/s=root", "/s/a=text <&>", "/s/a/b=\xff\x00")
	_, err := zk.Create(t.Context(), "/s/eph", nil, wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)

	got := quiet(t, server.Addr(), "export", "/s")
	require.Equal(t, "exported 3 nodes, skipped 1 ephemeral nodes\n", got.err)
	require.True(t, json.Valid([]byte(got.out)))
	require.Equal(t, `{"format":"zabra-export","version":1,"root":"/s","nodes":[
{"path":"","text":"root","acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]},
{"path":"/a","text":"text <&>","acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]},
{"path":"/a/b","base64":"/wA=","acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]}
]}
`, got.out)

	// Neither a file nor a node is overwritten without a word.
	file := filepath.Join(t.TempDir(), "s.json")
	require.Equal(t, "", ok(t, server.Addr(), "export", "/s", file))
	require.Equal(t, result{1, "", file + " exists, --force overwrites it\n"}, quiet(t, server.Addr(), "export", "/s", file))
	ok(t, server.Addr(), "export", "--force", "/s", file)
	require.Equal(t, result{1, "", "3 of the nodes exist, /s first; nothing was imported, --force overwrites them\n"}, quiet(t, server.Addr(), "import", file))
	ok(t, server.Addr(), "set", "/s/a", "changed")
	require.Equal(t, "imported 3 nodes below /s, 3 of them existed\n", quiet(t, server.Addr(), "import", "--force", file).err)
	require.Equal(t, "text <&>\n", ok(t, server.Addr(), "get", "/s/a"))

	// The root of the tree is there always and is no obstacle, but it stays as it is.
	ok(t, server.Addr(), "create", "/in")
	require.Equal(t, "imported 2 nodes below /, 0 of them existed\n", quiet(t, server.Addr()+"/in", "import", file, "/").err)
	require.Equal(t, "null\n", ok(t, server.Addr(), "get", "/in"))
	require.Equal(t, "text <&>\n", ok(t, server.Addr(), "get", "/in/a"))
	ok(t, server.Addr(), "deleteall", "/in")

	// It comes from a pipe too, and the parent has to exist.
	imported := runOptions(t, []string{"-server", server.Addr(), "-q"}, got.out, "import", "-", "/copy")
	require.Equal(t, result{0, "", "imported 3 nodes below /copy, 0 of them existed\n"}, imported)
	require.Equal(t, "\xff\x00\n", ok(t, server.Addr(), "get", "/copy/a/b"))
	require.Equal(t, result{1, "", "Node does not exist: /no/parent\nthe import ended after 0 of 3 nodes\n"},
		quiet(t, server.Addr(), "import", file, "/no/parent"))

	// The whole tree goes into another server, without what servers keep for themselves.
	whole := filepath.Join(t.TempDir(), "all.json")
	ok(t, server.Addr(), "export", "/", whole)
	other := servertest.Start(t)
	ok(t, other.Addr(), "import", whole)
	require.Equal(t, "/\n/copy\n/s\n/zookeeper\n/copy/a\n/s/a\n/zookeeper/config\n/zookeeper/quota\n/copy/a/b\n/s/a/b\n", ok(t, other.Addr(), "ls", "-R", "/"))
}

func TestImportRefuses(t *testing.T) {
	server := servertest.Start(t)
	const acl = `"acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]`
	head := func(nodes string) string {
		return `{"format":"zabra-export","version":1,"root":"/i","nodes":[` + nodes + `]}`
	}
	for text, want := range map[string]string{
		"":                                "not an export: EOF",
		"{}":                              `not an export of version 1: format "", version 0`,
		"[1]":                             "not an export: json",
		head(""):                          "the file has no nodes",
		head("null"):                      "node 0 of the file is null",
		head(`{"path":"/a",` + acl + `}`): "the root first",
		head(`{"path":"",` + acl + `},{"path":"/a/b",` + acl + `}`):                   "behind its parent",
		head(`{"path":"",` + acl + `},{"path":"",` + acl + `}`):                       "each node stands in a file once",
		head(`{"path":"",` + acl + `},{"path":"/../x",` + acl + `}`):                  "relative paths not allowed",
		head(`{"path":"","text":"","base64":"",` + acl + `}`):                         "both text and base64",
		head(`{"path":"","base64":"?",` + acl + `}`):                                  "illegal base64",
		head(`{"path":"","acl":[]}`):                                                  "has no access control list",
		head(`{"path":"","acl":[{"scheme":"world","id":"anyone","perms":"rwx"}]}`):    `permissions "rwx"`,
		strings.Replace(head(`{"path":"",`+acl+`}`), `"version":1`, `"version":2`, 1): "not an export of version 1",
	} {
		got := runOptions(t, []string{"-server", server.Addr(), "-q"}, text, "import", "-")
		require.Equal(t, 1, got.code, text)
		require.Contains(t, got.err, want, text)
	}
	require.Equal(t, "[zookeeper]\n", ok(t, server.Addr(), "ls", "/"))
	_, err := os.Stat("none.json")
	require.Error(t, err)
	require.Contains(t, quiet(t, server.Addr(), "import", "none.json").err, "none.json")
}

// Many nodes take many requests at a time and several batches.
func TestManyNodes(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	fill(t, zk, "/many")
	const n = 1500
	for i := range n {
		zk.Send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/many/" + itoa(i)), Data: []byte(itoa(i)), ACL: wire.OpenACL}, nil)
	}
	require.NoError(t, zk.Ping(t.Context()))
	file := filepath.Join(t.TempDir(), "many.json")
	require.Equal(t, "exported 1501 nodes, skipped 0 ephemeral nodes\n", quiet(t, server.Addr(), "export", "/many", file).err)
	ok(t, server.Addr(), "import", file, "/copy")
	ok(t, server.Addr(), "diff", "/many", "/copy")
	ok(t, server.Addr(), "deleteall", "/many")
	ok(t, server.Addr(), "deleteall", "-b", "7", "/copy")
	require.Equal(t, "[zookeeper]\n", ok(t, server.Addr(), "ls", "/"))
}

// An import that fails leaves no node with another list than its own.
func TestImportFails(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	fill(t, zk, "/s", "/s/a", "/s/a/b", "/s/z")
	for _, path := range []string{"/s", "/s/a"} {
		ok(t, server.Addr(), "setAcl", path, "world:anyone:ra")
	}
	file := filepath.Join(t.TempDir(), "s.json")
	ok(t, server.Addr(), "export", "/s", file)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	// The scheme of the last node is none that the server knows.
	i := strings.LastIndex(string(data), `"world"`)
	broken := string(data[:i]) + `"nope"` + string(data[i+len(`"world"`):])
	got := runOptions(t, []string{"-server", server.Addr(), "-q"}, broken, "import", "-", "/t")
	require.Equal(t, result{1, "", "Acl is not valid : /t/a/b\nthe import ended after 3 of 4 nodes\n"}, got)
	for _, path := range []string{"/t", "/t/a"} {
		require.Equal(t, "'world,'anyone\n: ra\n", ok(t, server.Addr(), "getAcl", path))
	}
}

func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := &bar{w: &out, what: "nodes", total: 8}
	b.add(2)
	require.Equal(t, "\r[#######.......................]  25% 2/8 nodes\x1b[K", out.String())
	b.end()
	require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"))
	out.Reset()
	b = &bar{w: &out, what: "nodes found"}
	b.add(3)
	require.Equal(t, "\r3 nodes found\x1b[K", out.String())
	b = &bar{what: "nodes"} // nobody watches
	b.add(1)
	b.end()
}
