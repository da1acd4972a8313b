package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/internal/certs/certstest"
	"zabra/jute"
	"zabra/server/admin"
	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

const anyone = "digest root:pw"

// unlimited takes the rate limit off.
func unlimited(cfg *conf.Config) { cfg.Admin.RateLimitMs = 0 }

// client connects to the server.
func (s *shell) client() *client.Client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
	defer cancel()
	c, err := client.Dial(ctx, s.Addr().String(), client.Options{Timeout: 10 * time.Second})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Abandon)
	return c
}

func (s *shell) create(c *client.Client, path string, flags int32) {
	s.t.Helper()
	_, err := c.Create(s.t.Context(), path, []byte(path), wire.OpenACL, flags)
	require.NoError(s.t, err)
}

// sent reads a stream to its end and closes it.
func sent(t testing.TB, r *admin.Response) []byte {
	t.Helper()
	require.Zero(t, r.Status, r.Error)
	require.NotNil(t, r.Stream)
	b, err := io.ReadAll(r.Stream)
	require.NoError(t, err)
	require.NoError(t, r.Stream.Close())
	require.EqualValues(t, r.StreamBytes, len(b))
	require.Equal(t, []string{fmt.Sprint(len(b))}, r.Header["snapshot_size"])
	return b
}

func headerZxid(t testing.TB, r *admin.Response) zxid.Zxid {
	t.Helper()
	var z uint64
	_, err := fmt.Sscanf(r.Header["last_zxid"][0], "0x%x", &z)
	require.NoError(t, err)
	return zxid.Zxid(z)
}

// treeOf reads a whole snapshot.
func treeOf(t testing.TB, b []byte) (*znode.Tree, znode.SnapshotInfo) {
	t.Helper()
	tree, info, err := znode.ReadSnapshot(bytes.NewReader(b), znode.Config{}, jute.FieldBytesMaxDefault, 0)
	require.NoError(t, err)
	require.Equal(t, info.Digest, tree.Digest())
	return tree, info
}

// dataFiles lists version-2, without what every server has there.
func (s *shell) dataFiles() (names []string) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.cfg.DataDir, "version-2"))
	require.NoError(s.t, err)
	for _, e := range entries {
		if n := e.Name(); n != "zabra.lock" && n != "zabra.state" && !strings.HasPrefix(n, "log.") {
			names = append(names, n)
		}
	}
	return names
}

func TestActionsAskWhoIsThere(t *testing.T) {
	s := startShell(t, shellConfig(t, unlimited))
	for _, command := range []string{"snapshot", "snap", "restore", "rest"} {
		r := s.Act(command, "", "x")
		require.Equal(t, []any{http.StatusUnauthorized, "Auth info is missing for the command"}, []any{r.Status, r.Error}, command)
	}
	for _, header := range []string{"digest", "digest a b", "world", "world anyone", "nonesuch x", "sasl bob", "x509", "x509 CN=a", " "} {
		r := s.Act("snapshot", header, "")
		require.Equal(t, []any{http.StatusUnauthorized, "Not authenticated"}, []any{r.Status, r.Error}, header)
	}
	for _, header := range []string{anyone, "ip", "ip 1.2.3.4", "digest x:y"} {
		sent(t, s.Act("snapshot", header, ""))
	}
	c := s.client()
	require.NoError(t, c.AddAuth(t.Context(), "digest", []byte("root:pw")))
	_, err := c.SetACL(t.Context(), "/", []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}, {Perms: wire.PermAll &^ wire.PermDelete, Scheme: "ip", ID: "127.0.0.1"}}, -1)
	require.NoError(t, err)
	for header, status := range map[string]int{anyone: 0, "digest root:other": http.StatusForbidden, "ip": http.StatusForbidden} {
		r := s.Act("backup", header, "")
		require.Equal(t, status, r.Status, header)
		if r.Stream != nil {
			r.Stream.Close()
		} else {
			require.Equal(t, "Not authorized", r.Error)
		}
	}
}

// The commands that ZooKeeper does not have are for the server's own machine as long as everybody may do everything, and
// otherwise for who has proved to be somebody.
func TestOwnActionsWantProof(t *testing.T) {
	const elsewhere = "192.0.2.7:5000"
	s := startShell(t, shellConfig(t, unlimited))
	sent(t, s.Act("backup", "", ""))
	require.Zero(t, s.Act("top", "", "").Status)
	for _, command := range []string{"backup", "handover", "top"} {
		for header, status := range map[string]int{"": http.StatusUnauthorized, "ip": http.StatusForbidden, anyone: http.StatusForbidden} {
			require.Equal(t, status, s.ActFrom(elsewhere, command, header).Status, "%s %q", command, header)
		}
	}
	c := s.client()
	require.NoError(t, c.AddAuth(t.Context(), "digest", []byte("root:pw")))
	_, err := c.SetACL(t.Context(), "/", []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}, -1)
	require.NoError(t, err)
	for _, from := range []string{elsewhere, "127.0.0.1:5000"} {
		for header, status := range map[string]int{"": http.StatusUnauthorized, "ip": http.StatusForbidden, "digest root:other": http.StatusForbidden} {
			require.Equal(t, status, s.ActFrom(from, "backup", header).Status, "%s %q", from, header)
		}
		sent(t, s.ActFrom(from, "backup", anyone))
	}
}

// admin.snapshot.enabled=false keeps the data in.
func TestBackupCanBeSwitchedOff(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.Admin.SnapshotEnabled = false }))
	for _, command := range []string{"snapshot", "backup"} {
		require.Equal(t, http.StatusServiceUnavailable, s.Act(command, anyone, "").Status, command)
	}
}

// A certificate counts when the clients' authorities vouch for it, not those of the servers alone; the superuser's opens every door.
func TestActionsByCertificate(t *testing.T) {
	ca, serversOnly := certstest.NewCA(t, "clients"), certstest.NewCA(t, "servers")
	name := pkix.Name{CommonName: "admin", OrganizationalUnit: []string{"ops"}, Organization: []string{"Ex, Inc"}}
	s := startShell(t, secureConfig(t, ca, unlimited, func(cfg *conf.Config) { cfg.Security.X509SuperUser = `CN=admin,OU=ops,O=Ex\, Inc` }))
	shown := func(ca *certstest.CA, verified bool) *tls.ConnectionState {
		state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{ca.Issue(t, name).Cert}}
		if verified {
			state.VerifiedChains = [][]*x509.Certificate{state.PeerCertificates}
		}
		return state
	}
	c := s.client()
	require.NoError(t, c.AddAuth(t.Context(), "digest", []byte("root:pw")))
	_, err := c.SetACL(t.Context(), "/", []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}, -1)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, s.ActTLS("backup", "x509", "", shown(ca, false)).Status)
	require.Equal(t, http.StatusUnauthorized, s.ActTLS("backup", "x509", "", shown(serversOnly, true)).Status)
	sent(t, s.ActTLS("backup", "x509", "", shown(ca, true)))
}

func TestSnapshotCommand(t *testing.T) {
	for _, compression := range []string{"", "gz"} {
		t.Run(compression, func(t *testing.T) {
			s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.SnapshotCompression = compression }))
			c := s.client()
			s.create(c, "/a", 0)
			r := s.Act("snapshot", anyone, "")
			b := sent(t, r)
			z := headerZxid(t, r)
			require.Equal(t, c.LastZxid(), z)
			name := "snapshot." + z.Hex()
			if compression != "" {
				name += "." + compression
			}
			onDisk, err := os.ReadFile(filepath.Join(s.cfg.DataDir, "version-2", name))
			require.NoError(t, err)
			require.Equal(t, onDisk, b)
			if compression == "" {
				tree, info := treeOf(t, b)
				require.Equal(t, s.Digest(), tree.Digest())
				require.Equal(t, z, info.LastZxid)
			}
			r = s.Act("snap?streaming=false", anyone, "")
			require.Equal(t, http.StatusTooManyRequests, r.Status)
			require.Empty(t, r.Error)
			require.Equal(t, "300", r.Header.Get("Retry-After"))
			require.Contains(t, s.word("mntr"), "zk_snapshot_rate_limited_count\t1\n")
		})
	}
}

func TestSnapshotCommandLeavesTheFile(t *testing.T) {
	s := startShell(t, shellConfig(t, unlimited))
	c := s.client()
	for i := range 3 {
		s.create(c, fmt.Sprintf("/n%d", i), 0)
		r := s.Act("snapshot?streaming=false", anyone, "")
		require.Zero(t, r.Status, r.Error)
		require.Nil(t, r.Stream)
		require.Contains(t, s.dataFiles(), "snapshot."+headerZxid(t, r).Hex())
		require.Equal(t, c.LastZxid(), headerZxid(t, r))
	}
	require.Equal(t, http.StatusBadRequest, s.Act("snapshot?streaming=maybe", anyone, "").Status)
}

func TestActionsSwitchedOff(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.Admin.SnapshotEnabled, cfg.Admin.RestoreEnabled = false, false }))
	require.Equal(t, http.StatusServiceUnavailable, s.Act("snapshot", anyone, "").Status)
	require.Equal(t, http.StatusServiceUnavailable, s.Act("restore", anyone, "x").Status)
	s = startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.SerializeLastProcessedZxidEnabled = false }))
	for _, command := range []string{"snapshot", "backup", "restore"} {
		r := s.Act(command, anyone, "x")
		require.Equal(t, http.StatusInternalServerError, r.Status)
		require.Contains(t, r.Error, "serializeLastProcessedZxid.enabled")
	}
	r := s.Act("handover", anyone, "")
	require.Equal(t, http.StatusConflict, r.Status)
	require.Contains(t, r.Error, "standalone")
}

// A backup leaves nothing on the disk, also while it is sent, and there is one at a time. A client that goes away in the
// middle leaves the place to the next one.
func TestBackup(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c := s.client()
	s.create(c, "/a", 0)
	before := s.dataFiles()
	r := s.Act("backup", anyone, "")
	digest := s.Digest()
	s.create(c, "/later", 0)
	require.Equal(t, before, s.dataFiles())
	require.Equal(t, http.StatusConflict, s.Act("backup", anyone, "").Status)
	_, err := r.Stream.Read(make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, r.Stream.Close())
	require.NoError(t, r.Stream.Close())

	r = s.Act("backup?compress=gzip", anyone, "")
	require.Zero(t, r.Status, "never limited: %s", r.Error)
	packed, err := gzip.NewReader(bytes.NewReader(sent(t, r)))
	require.NoError(t, err)
	b, err := io.ReadAll(packed)
	require.NoError(t, err)
	tree, info := treeOf(t, b)
	require.Equal(t, headerZxid(t, r), info.LastZxid)
	require.Equal(t, c.LastZxid(), info.LastZxid)
	require.Equal(t, []string{fmt.Sprint(tree.Digest())}, r.Header["zabra-digest"])
	require.Equal(t, s.Digest(), tree.Digest())
	require.NotEqual(t, digest, tree.Digest())
	require.Equal(t, before, s.dataFiles())
	require.Equal(t, http.StatusBadRequest, s.Act("backup?compress=rar", anyone, "").Status)
}

// The nodes are looked through for one request at a time.
func TestTopOneAtATime(t *testing.T) {
	s := startShell(t, shellConfig(t))
	s.client() // it serves
	release := s.Surveying()
	require.Equal(t, http.StatusConflict, s.Act("top", "", "").Status)
	release()
	require.Zero(t, s.Act("top", "", "").Status)
}
