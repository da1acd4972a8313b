package cli

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/server/servertest"
	"zabra/wire"
)

// middle stands between clients and a server. It shows each request to a function, which may wait, and may refuse it: then
// the answer is that the request is not known, and the end of the connection, as from servers that are older.
func middle(t *testing.T, to string, passes func(op wire.Op) bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return front(t, l, to, func(in net.Conn, out io.Writer) { passRequests(in, out, passes) })
}

// front takes connections and has what comes in on them passed on to a server; the answers go back as they are.
func front(t *testing.T, l net.Listener, to string, pass func(in net.Conn, out io.Writer)) string {
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { l.Close() })
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				wg.Go(func() {
					io.Copy(in, out)
					in.Close()
				})
				pass(in, out)
			})
		}
	})
	return l.Addr().String()
}

// passRequests passes frames on: the handshake, and requests as long as they may pass.
func passRequests(in io.ReadWriter, out io.Writer, passes func(op wire.Op) bool) {
	for n := 0; ; n++ {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(in, frame[4:]); err != nil {
			return
		}
		if n > 0 && !passes(wire.Op(int32(binary.BigEndian.Uint32(frame[8:])))) {
			var e jute.Encoder
			start := wire.BeginFrame(&e)
			wire.AppendReplyHeader(&e, int32(binary.BigEndian.Uint32(frame[4:])), 0, wire.CodeUnimplemented)
			wire.EndFrame(&e, start)
			in.Write(e.Bytes())
			return
		}
		if _, err := out.Write(frame); err != nil {
			return
		}
	}
}

// exportOf makes a subtree below /s whose parents let nobody create children, and exports it.
func exportOf(t *testing.T, server *servertest.Server, leaves int) (file string) {
	t.Helper()
	zk := server.Client(t)
	fill(t, zk, "/s", "/s/p")
	for i := range leaves {
		zk.Send(wire.OpCreate, &wire.CreateRequest{Path: fmt.Appendf(nil, "/s/p/%04d", i), Data: []byte("old"), ACL: wire.OpenACL}, nil)
	}
	require.NoError(t, zk.Ping(t.Context()))
	for _, path := range []string{"/s", "/s/p"} {
		ok(t, server.Addr(), "setAcl", path, "world:anyone:ra")
	}
	file = filepath.Join(t.TempDir(), "s.json")
	ok(t, server.Addr(), "export", "/s", file)
	return file
}

// An import that loses its server waits for another, and leaves no parent with the list that it had meanwhile.
func TestImportAcrossRestart(t *testing.T) {
	const leaves, lostAt = 3 * inFlightMax, 2*inFlightMax + 10 // the parents are answered by then
	server := servertest.Start(t)
	file := exportOf(t, server, leaves)
	var creates atomic.Int32
	reached, killed := make(chan struct{}), make(chan struct{})
	addr := middle(t, server.Addr(), func(op wire.Op) bool {
		if op == wire.OpCreate && creates.Add(1) == lostAt {
			close(reached)
			<-killed
		}
		return true
	})
	done := make(chan result, 1)
	go func() { done <- quiet(t, addr, "import", file, "/t") }()
	<-reached
	server.Kill()
	close(killed)
	time.Sleep(300 * time.Millisecond) // each server of the list is tried in vain meanwhile
	server.Restart()
	got := <-done
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "KeeperErrorCode = ConnectionLoss\nthe import ended after ")
	for _, path := range []string{"/t", "/t/p"} {
		require.Equal(t, "'world,'anyone\n: ra\n", ok(t, server.Addr(), "getAcl", path), got.err)
	}
}

// When no server comes back, the user hears which nodes wait for their lists, and what to do.
func TestImportCannotFinish(t *testing.T) {
	server := servertest.Start(t)
	s, seen := open(t, server.Addr(), 10*time.Second)
	var errs bytes.Buffer
	sh := newShell(&Options{Stdout: io.Discard, Stderr: &errs}, s.cfg.servers)
	sh.sess = s
	server.Kill()
	seen.await(t, "Disconnected None null")
	readOnly := []wire.ACL{{Perms: wire.PermRead, Scheme: "world", ID: "anyone"}}
	nodes := []*importedNode{{path: "/t", acl: readOnly, parent: true}, {path: "/t/p", acl: readOnly, parent: true}, {path: "/t/p/x", acl: readOnly}}
	c := &call{shell: sh, ctx: t.Context(), args: []string{"t.json", "/t"}}
	err := c.finishACLs(nodes, 200*time.Millisecond)
	require.ErrorIs(t, err, wire.CodeConnectionLoss)
	require.ErrorContains(t, err, "2 nodes do not have their own access control lists, /t first: KeeperErrorCode = ConnectionLoss\n")
	require.ErrorContains(t, err, "import --force t.json /t sets them")
	require.NoError(t, c.finishACLs(nodes[2:], time.Nanosecond), "it has the list that it was made with")
}

// An import over one that could not finish gives the first nodes their lists, though it ends at those that have theirs.
func TestImportAgain(t *testing.T) {
	server := servertest.Start(t)
	file := exportOf(t, server, 1)
	ok(t, server.Addr(), "create", "/t", "", "ip:127.0.0.1:cdrwa")
	ok(t, server.Addr(), "create", "/t/p", "", "world:anyone:ra")
	got := quiet(t, server.Addr(), "import", "--force", file, "/t")
	require.Equal(t, result{1, "", "Insufficient permission : /t/p\nthe import ended after 1 of 3 nodes\n"}, got)
	require.Equal(t, "'world,'anyone\n: ra\n", ok(t, server.Addr(), "getAcl", "/t"))
}

// A failed import over nodes that exist changes none that it has not come to, nor one that has refused.
func TestImportForceFails(t *testing.T) {
	const leaves = 3 * inFlightMax
	server := servertest.Start(t)
	file := exportOf(t, server, leaves)
	last := fmt.Sprintf("/s/p/%04d", leaves-1)
	ok(t, server.Addr(), "setAcl", last, "world:anyone:cra")
	ok(t, server.Addr(), "setAcl", "/s", "world:anyone:wra")
	ok(t, server.Addr(), "setAcl", "/s/p", "world:anyone:wra")
	ok(t, server.Addr(), "setAcl", "/s/p/0000", "world:anyone:cra")
	got := quiet(t, server.Addr(), "import", "--force", file)
	require.Equal(t, result{1, "", fmt.Sprintf("Insufficient permission : /s/p/0000\nthe import ended after 2 of %d nodes\n", leaves+2)}, got)
	for path, want := range map[string]string{"/s": "ra", "/s/p": "ra", "/s/p/0000": "cra", "/s/p/0001": "cdrwa", last: "cra"} {
		require.Equal(t, "'world,'anyone\n: "+want+"\n", ok(t, server.Addr(), "getAcl", path), path)
	}
}

// Servers that do not tell who the client is are imported into all the same.
func TestImportIntoOldServer(t *testing.T) {
	server := servertest.Start(t)
	fill(t, server.Client(t), "/s", "/s/a=x", "/s/a/b")
	file := filepath.Join(t.TempDir(), "s.json")
	ok(t, server.Addr(), "export", "/s", file)
	addr := middle(t, server.Addr(), func(op wire.Op) bool { return op != wire.OpWhoAmI })
	require.Equal(t, result{0, "", "imported 3 nodes below /t, 0 of them existed\n"}, quiet(t, addr, "import", file, "/t"))
	ok(t, server.Addr(), "diff", "/s", "/t")
}

// What goes to stdout is the document and nothing else, also without -q.
func TestExportToStdout(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	fill(t, zk, "/s=1")
	got := runWords(t, server.Addr(), "", "export", "/s")
	require.Equal(t, 0, got.code)
	require.True(t, strings.HasPrefix(got.out, `{"format":"zabra-export"`), got.out)
	require.True(t, strings.HasSuffix(got.out, "]}\n"), got.out)
	require.Equal(t, "Connecting to "+server.Addr()+"\n"+connectEvent+"exported 1 nodes, skipped 0 ephemeral nodes\n", got.err)
	require.Equal(t, "imported 1 nodes below /t, 0 of them existed\n", runOptions(t, []string{"-server", server.Addr(), "-q"}, got.out, "import", "-", "/t").err)
	for words, want := range map[string]bool{"export /s": true, "export /s -": true, "export --force /s": true, "export /s f": false, "ls /": false, "nosuch": false, "": false} {
		require.Equal(t, want, isDocument(strings.Fields(words)), words)
	}

	// A node that ends with its session is no export, and no file.
	_, err := zk.Create(t.Context(), "/e", nil, wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "e.json")
	for _, words := range [][]string{{"export", "/e"}, {"export", "/e", file}} {
		require.Equal(t, result{1, "", "/e is an ephemeral node, which ends with its session: there is nothing to export\n"}, quiet(t, server.Addr(), words...))
	}
	_, err = os.Stat(file)
	require.ErrorIs(t, err, os.ErrNotExist)
}
