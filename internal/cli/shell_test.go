package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
	"zabra/wire"
	"zabra/zab/zxid"
)

// Where we do not do what zkCli does: an error is an error for scripts, too.
func TestDeviations(t *testing.T) {
	server := servertest.Start(t)
	ok(t, server.Addr(), "create", "/a")
	for _, c := range []struct {
		line string
		want result
	}{
		{"create /b x world:anyone:zr", result{1, "", "Unknown perm type: z\nKeeperErrorCode = InvalidACL\nAcl is not valid : null\n"}},
		{"create /b x world:anyone:r,bad", result{1, "", "bad does not have the form scheme:id:perm\nKeeperErrorCode = InvalidACL\nAcl is not valid : null\n"}},
		{"setAcl /a world:anyone:rq", result{1, "", "Unknown perm type: q\nAcl is not valid : null\n"}},
		{"set -v x /a 1", result{1, "", "-v x: the version must be a whole number, -1 stands for any\n"}},
		{"set -b /a !", result{1, "", "set -b: the data is not in base64: illegal base64 data at input byte 0\n"}},
		{"setquota -n x /a", result{1, "", "NumberFormatException happens when parsing the option value\n"}},
		{"setquota -n 0 /a", result{1, "", "the num quota must be greater than zero\n"}},
		{"setquota -b -1 /a", result{1, "", "the bytes quota must be greater than or equal to zero\n"}},
		{"setquota -n 1 /zookeeper/quota/x", result{1, "", "cannot set a quota under the path: /zookeeper/quota/x\n"}},
		{"deleteall /zookeeper", result{1, "", "Failed to delete some node(s) in the subtree!\n"}},
		{"deleteall /", result{1, "", "Arguments are not valid : /\n"}},
		{"deleteall -b 0 /a", result{1, "", "-b argument must be greater than zero\n"}},
		{"redo x", result{1, "", "redo x: it must be the number of a line, as history shows it\n"}},
		{"redo", result{1, "", "redo cmdno\n"}},
		{"addWatch a", result{1, "", "Path must start with / character\n"}},
		{"addauth nope x", result{1, "", "KeeperErrorCode = AuthFailed\n"}},
		{"help nope", result{1, "", "there is no command nope, help lists all of them\n"}},
		{"reconfig -file a -members b", result{1, "", "Can't use -file and -members together (conflicting non-incremental modes)\n"}},
		{"rmr /a", result{0, "", ""}},
	} {
		require.Equal(t, c.want, quiet(t, server.Addr(), strings.Fields(c.line)...), c.line)
	}
	require.Equal(t, "[zookeeper]\n", ok(t, server.Addr(), "ls", "/"))
	require.Equal(t, "set path data [-s] [-v version] [-b]\n -b         Supply data in base64 format\n -s         Print znode stats additionally\n"+
		" -v <arg>   Set with an expected version\n\n", ok(t, server.Addr(), "help", "set"))
	refused := runWords(t, server.Addr(), "", "addauth", "nope", "x")
	_, events := withoutEvents(refused.out)
	require.Equal(t, "state:AuthFailed type:None path:null zxid: -1", events[1])
	require.Len(t, events, 2, "no other event than these two")
	require.Contains(t, ok(t, server.Addr(), "help"), "\texport [--force] path [file]\n")
}

func TestExitCodes(t *testing.T) {
	server := servertest.Start(t)
	require.Equal(t, ExitOK, quiet(t, server.Addr(), "ls", "/").code)
	require.Equal(t, ExitFailure, quiet(t, server.Addr(), "ls", "/none").code)
	require.Equal(t, ExitFailure, quiet(t, server.Addr(), "ls").code)
	require.Equal(t, ExitUnknown, quiet(t, server.Addr(), "frobnicate").code)
	require.Equal(t, ExitUsage, quiet(t, "h:x", "ls", "/").code)
	script := func(text string) int { return runOptions(t, []string{"-server", server.Addr()}, text).code }
	require.Equal(t, ExitOK, script(""))
	require.Equal(t, ExitOK, script("ls /none\nls /\n"), "the last command counts")
	require.Equal(t, ExitFailure, script("ls /\nls /none"), "a last line without an end, too")
	require.Equal(t, ExitFailure, script("ls /none\nquit\nls /\n"))
	require.Equal(t, ExitUnknown, script("frobnicate\n"))
	require.Equal(t, ExitFailure, script("close\nls /\n"))
}

// refusing is an address where connections are refused. Its port stays taken as long as the test runs: it is that of the
// near end of a connection.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

// A server that cannot be reached is told with the reason, and others of the list are tried.
func TestUnreachable(t *testing.T) {
	t.Parallel() // it waits for a whole timeout, which has to be long enough for one attempt on a busy machine
	addr := refusing(t)
	for _, options := range [][]string{{"-server", addr, "-q"}, {"-server", addr, "-q", "-timeout", "3000", "-waitforconnection"}} {
		got := runOptions(t, options, "", "get", "/a")
		require.Equal(t, 1, got.code)
		require.Regexp(t, `^KeeperErrorCode = ConnectionLoss( for /a)?\nno server can be reached, the last answer is: .*connection refused\n$`, got.err)
	}
	server := servertest.Start(t)
	require.Equal(t, "[zookeeper]\n", ok(t, addr+","+server.Addr(), "ls", "/"))
}

func TestChroot(t *testing.T) {
	server := servertest.Start(t)
	ok(t, server.Addr(), "create", "/app")
	root := server.Addr() + "/app"
	require.Equal(t, result{0, "", "Created /x\n"}, quiet(t, root, "create", "/x", "data"))
	require.Equal(t, "/\n/x\n", ok(t, root, "ls", "-R", "/"))
	require.Equal(t, "data\n", ok(t, server.Addr(), "get", "/app/x"))
	require.Equal(t, result{1, "", "Node does not exist: /none\n"}, quiet(t, root, "get", "/none"))
	got := runOptions(t, []string{"-server", root, "-q"}, "create -e /e\ngetEphemerals\nget -w /x\nset /x 2\nsync /x\n")
	require.Equal(t, "[/e]\ndata\n\nWATCHER::\n\nWatchedEvent state:SyncConnected type:NodeDataChanged path:/x zxid: 0xN\nSync is OK\n",
		eventZxid.ReplaceAllString(got.out, "zxid: 0xN"))
	ok(t, root, "deleteall", "/x")
	require.Equal(t, "[app, zookeeper]\n", ok(t, server.Addr(), "ls", "/"))
}

// notices collects events.
type notices struct {
	mu   sync.Mutex
	seen []string
	more chan struct{}
}

func newNotices() *notices { return &notices{more: make(chan struct{}, 1)} }

func (n *notices) add(e notice) {
	n.mu.Lock()
	n.seen = append(n.seen, e.state+" "+e.typ+" "+e.path)
	n.mu.Unlock()
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// await waits until the events seen end with these.
func (n *notices) await(t *testing.T, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitMax)
	defer cancel()
	for {
		n.mu.Lock()
		seen := strings.Join(n.seen, "\n")
		n.mu.Unlock()
		if strings.HasSuffix(seen, strings.Join(want, "\n")) {
			return
		}
		select {
		case <-n.more:
		case <-ctx.Done():
			require.Fail(t, "events do not come", "%v after %v", want, seen)
		}
	}
}

func open(t *testing.T, addr string, timeout time.Duration) (*session, *notices) {
	t.Helper()
	servers, err := parseServers(addr)
	require.NoError(t, err)
	seen := newNotices()
	s := openSession(sessionConfig{servers: servers, timeout: timeout, notify: seen.add})
	t.Cleanup(func() { s.close(false) })
	_, err = s.connection(t.Context(), true)
	require.NoError(t, err)
	return s, seen
}

func sessionID(s *session) zxid.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// A session that finds its server again has its identities and its watches, and hears of what changed meanwhile.
func TestSessionReconnects(t *testing.T) {
	server := servertest.Start(t)
	s, seen := open(t, server.Addr(), 10*time.Second)
	sh := newShell(&Options{Stdout: io.Discard, Stderr: io.Discard}, s.cfg.servers)
	sh.sess = s
	for _, line := range []string{"create /p", "create /q", "addauth digest bob:secret", "create /mine x auth::cdrwa", "addWatch /p", "get -w /q", "stat -w /new", "ls -w /"} {
		sh.execute(t.Context(), splitWords(line))
		if line != "stat -w /new" {
			require.Equal(t, 0, sh.code, line)
		}
	}
	before := sessionID(s)
	server.Kill()
	seen.await(t, "Disconnected None null")
	server.Restart()
	seen.await(t, "SyncConnected None null")
	require.Equal(t, before, sessionID(s))
	for _, line := range []string{"get /mine", "set /q 1", "create /new", "create /p/child"} {
		sh.execute(t.Context(), splitWords(line))
		require.Equal(t, 0, sh.code, line)
	}
	seen.await(t, "SyncConnected NodeDataChanged /q", "SyncConnected NodeCreated /new", "SyncConnected NodeChildrenChanged /", "SyncConnected NodeCreated /p/child")
	// One-shot watches are used up, the persistent one is not.
	require.False(t, s.watches.has(watchData, "/q") || s.watches.has(watchExist, "/new") || s.watches.has(watchChild, "/"))
	require.True(t, s.watches.has(watchRecursive, "/p"))
}

// Names that others have chosen cannot steer a terminal.
func TestNamesOnTerminal(t *testing.T) {
	server := servertest.Start(t)
	s, _ := open(t, server.Addr(), 10*time.Second)
	for _, terminal := range []bool{true, false} {
		var out strings.Builder
		sh := newShell(&Options{Stdout: &out, Stderr: io.Discard, StdoutTerminal: terminal}, s.cfg.servers)
		sh.sess = s
		for _, line := range []string{"create /x", "create /y", "setAcl /x digest:eve\x1b[2J:x:cdrwa,world:anyone:ra", "addauth digest eve\x1b[2J:x",
			"getAcl /x", "diff /x /y", "whoami"} {
			sh.execute(t.Context(), splitWords(line))
		}
		require.Equal(t, 3, strings.Count(out.String(), "eve"), out.String())
		require.Equal(t, !terminal, strings.Contains(out.String(), "\x1b"))
		require.Equal(t, terminal, strings.Contains(out.String(), "eve\uFFFD[2J"))
		sh.execute(t.Context(), []string{"deleteall", "/x"})
	}
	require.Equal(t, "a\uFFFDb", (&shell{opt: &Options{StdoutTerminal: true}}).shown("a\nb"))
}

// Ctrl-C and what ends the process end a command in good order.
func TestSignals(t *testing.T) {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it is, and stays so
		signals = append(signals, syscall.SIGHUP)
	}
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	for _, sig := range signals {
		require.True(t, interruptible(t.Context(), func(ctx context.Context) {
			require.NoError(t, self.Signal(sig))
			select {
			case <-ctx.Done():
			case <-time.After(waitMax):
				require.Fail(t, "the signal is not heard of", sig)
			}
		}), sig)
	}
}

// When the server does not know the session any more it is over, until connect opens another.
func TestSessionExpires(t *testing.T) {
	server := servertest.Start(t)
	s, seen := open(t, server.Addr(), 10*time.Second)
	zk, err := s.connection(t.Context(), false)
	require.NoError(t, err)
	require.NoError(t, zk.Close(t.Context())) // behind the session's back
	seen.await(t, "Disconnected None null", "Expired None null")
	st, alive := s.current()
	require.Equal(t, stateClosed, st)
	require.False(t, alive)
	_, err = s.connection(t.Context(), true)
	require.ErrorIs(t, err, wire.CodeSessionExpired)
}

func TestCompletion(t *testing.T) {
	server := servertest.Start(t)
	zk := server.Client(t)
	fill(t, zk, "/app", "/app/one", "/app/one/x", "/app/only", "/app/with blank", "/b")
	s, _ := open(t, server.Addr(), 10*time.Second)
	c := &completer{&shell{sess: s}}
	for line, want := range map[string][]string{
		"setq":                    {"setquota "},
		"getA":                    {"getAcl", "getAllChildrenNumber"},
		"get -":                   {"-b", "-s", "-w", "-x"},
		"reconfig -mem":           {"-members "},
		"get ":                    {"/"},
		"get /":                   {"/app", "/b", "/zookeeper"},
		"get /b":                  {"/b "},
		"get -s /ap":              {"/app/"},
		"get /app/on":             {"/app/one", "/app/only"},
		"get /app/one":            {"/app/one/"},
		"get /app/w":              nil,
		`get "/app/w`:             {`"/app/with blank" `},
		"set /app/only /":         nil,
		"diff /b /ap":             {"/app/"},
		"get /none/":              nil,
		"addauth /":               nil,
		"nosuch /":                nil,
		"addWatch -m PERSISTENT_": {"PERSISTENT_RECURSIVE "},
		"printwatches o":          {"off", "on"},
		"help setA":               {"setAcl "},
		"get rel":                 nil,
	} {
		before, prefix := splitForCompletion(line)
		require.Equal(t, want, c.candidates(before, prefix), line)
	}
	rest, length := c.Do([]rune("get /b"), 6)
	require.Equal(t, [][]rune{[]rune(" ")}, rest)
	require.Equal(t, 2, length)
}

// certificates writes a CA's certificate and one of a server and a client, in PEM.
func certificates(t *testing.T) (ca, pair string, config *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	both := append(cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
	ca, pair = filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "pair.pem")
	require.NoError(t, os.WriteFile(ca, cert, 0o600))
	require.NoError(t, os.WriteFile(pair, both, 0o600))
	loaded, err := tls.X509KeyPair(both, both)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(cert))
	return ca, pair, &tls.Config{Certificates: []tls.Certificate{loaded}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// tlsFront takes TLS connections and passes them on to a server.
func tlsFront(t *testing.T, config *tls.Config, to string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	return front(t, l, to, func(in net.Conn, out io.Writer) { io.Copy(out, in) })
}

func TestTLS(t *testing.T) {
	server := servertest.Start(t)
	ca, pair, config := certificates(t)
	addr := tlsFront(t, config, server.Addr())
	run := func(options ...string) result {
		return runOptions(t, append([]string{"-q", "-server", addr}, options...), "", "ls", "/")
	}
	require.Equal(t, result{0, "[zookeeper]\n", ""}, run("--tls-ca", ca, "--tls-cert", pair))
	require.Equal(t, result{0, "[zookeeper]\n", ""}, run("--tls-ca", ca, "--tls-key", pair, "--tls-any-name"))
	file := filepath.Join(t.TempDir(), "client.cfg")
	lines := "zookeeper.client.secure=true\nzookeeper.ssl.trustStore.location=" + ca + "\nzookeeper.ssl.keyStore.location=" + pair + "\nzookeeper.ssl.keyStore.type=PEM\n"
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	require.Equal(t, result{0, "[zookeeper]\n", ""}, run("-client-configuration", file))

	require.Contains(t, run("--tls", "--tls-cert", pair).err, "certificate signed by unknown authority")
	require.Equal(t, 1, run("--tls-ca", ca).code, "no certificate of its own")
	other, _, _ := certificates(t)
	require.Equal(t, 1, run("--tls-ca", other, "--tls-cert", pair, "--tls-any-name").code, "the chain is checked without the name, too")
	_, host, _ := strings.Cut(addr, ":")
	options := []string{"-q", "-server", "localhost:" + host, "--tls-ca", ca, "--tls-cert", pair}
	require.Contains(t, runOptions(t, options, "", "ls", "/").err, "localhost", "the name is checked")
	require.Equal(t, 0, runOptions(t, append(options, "--tls-any-name"), "", "ls", "/").code)
}
