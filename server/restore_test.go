package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/server"
	"zabra/server/admin"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// answered returns what an answer says in a field.
func answered(t testing.TB, r *admin.Response, name string) any {
	t.Helper()
	for _, f := range r.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("no field %s in %+v", name, r)
	return nil
}

// backupUnderLoad makes a backup while several clients write, and returns it with its zxid and digest. What the log says
// of that very transaction agrees.
func backupUnderLoad(t *testing.T, query string) (b []byte, z zxid.Zxid, digest string) {
	t.Helper()
	s := startShell(t, shellConfig(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	for i := range 4 {
		c := s.client()
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				path := fmt.Sprintf("/w%d-%04d", i, n)
				if _, err := c.Create(ctx, path, bytes.Repeat([]byte(path), 20), wire.OpenACL, 0); err != nil {
					return
				}
				if n%3 == 2 {
					if err := c.Delete(ctx, fmt.Sprintf("/w%d-%04d", i, n-1), -1); err != nil {
						return
					}
				}
			}
		})
	}
	until(t, "there is something to back up", func() bool { return s.Stats().Nodes > 500 })
	r := s.Act("backup"+query, anyone, "")
	z = headerZxid(t, r)
	until(t, "writes go on", func() bool { return s.Stats().Zxid > z+100 })
	b = sent(t, r)
	stop()
	writers.Wait()
	s.shutdown()
	digest = r.Header["zabra-digest"][0]
	require.Equal(t, loggedDigest(t, s.cfg.DataDir, z), digest)
	return b, z, digest
}

// loggedDigest is the digest that the log has for a transaction.
func loggedDigest(t *testing.T, dir string, z zxid.Zxid) string {
	t.Helper()
	st, err := storage.Open(vfs.OS{}, storage.Config{SnapDir: dir})
	require.NoError(t, err)
	defer st.Close()
	log, err := st.OpenLog(z - 1)
	require.NoError(t, err)
	defer log.Close()
	e, err := log.Next()
	require.NoError(t, err)
	require.Equal(t, z, e.Zxid)
	var h znode.TxnHeader
	var txn znode.Txn
	digest, ok, err := znode.DecodeTxn(e.Payload, jute.FieldBytesMaxDefault, &h, &txn)
	require.NoError(t, err)
	require.True(t, ok)
	return fmt.Sprint(digest.Value)
}

// A backup that was made while clients wrote is put into an empty server while it runs.
func TestBackupUnderLoadThenRestore(t *testing.T) {
	b, z, digest := backupUnderLoad(t, "?compress=gzip")
	s := startShell(t, shellConfig(t))
	r := s.Act("restore", anyone, string(b))
	require.Zero(t, r.Status, r.Error)
	require.Equal(t, []any{int64(zxid.Make(z.Epoch()+1, 0)), z.String(), digest}, []any{r.Fields[0].Value, answered(t, r, "snapshot_zxid"), answered(t, r, "digest")})
	require.Equal(t, digest, fmt.Sprint(s.Digest()))
	s.create(s.client(), "/goes-on", 0)
	s.shutdown()
	again := startShell(t, s.cfg)
	_, _, err := again.client().GetData(t.Context(), "/goes-on", false)
	require.NoError(t, err)
}

// The way without any tool: the file under the name snapshot.<zxid> in each empty data directory.
func TestBackupUnderLoadThenRestoreAnEnsemble(t *testing.T) {
	b, z, digest := backupUnderLoad(t, "")
	place := func(dir string) {
		folder := filepath.Join(dir, "version-2")
		require.NoError(t, os.RemoveAll(folder))
		require.NoError(t, os.MkdirAll(folder, 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "snapshot."+z.Hex()), b, 0o640))
	}
	e := servertest.StartEnsemble(t, 3)
	createOn(t, e, 1, "/lost")
	for id := 1; id <= 3; id++ {
		e.Stop(id)
	}
	for id := 1; id <= 3; id++ {
		place(e.Server(id).DataDir())
		e.Start(id)
	}
	e.Await()
	for id := 1; id <= 3; id++ {
		require.Equal(t, digest, fmt.Sprint(e.Digest(id)), "server %d", id)
	}
	requireAbsent(t, e, 1, "/lost")
	createOn(t, e, 2, "/goes-on")
	requireOn(t, e, 3, "/goes-on")

	alone := shellConfig(t)
	place(alone.DataDir)
	require.Equal(t, digest, fmt.Sprint(startShell(t, alone).Digest()))
}

// What clients know of the state before is not mistaken for the restored one: zxids do not go back, and no session goes on.
func TestRestoreBeginsAnew(t *testing.T) {
	s := startShell(t, shellConfig(t, unlimited))
	owner := s.client()
	s.create(owner, "/e", wire.FlagEphemeral)
	s.create(owner, "/kept", 0)
	b := sent(t, s.Act("backup", anyone, ""))
	backupDigest := s.Digest()
	c := s.client()
	s.create(c, "/lost", 0)
	_, _, err := c.GetData(t.Context(), "/kept", true)
	require.NoError(t, err)
	seen := c.LastZxid()

	r := s.Act("rest", "ip", string(b))
	require.Zero(t, r.Status, r.Error)
	require.Equal(t, int64(zxid.Make(seen.Epoch()+1, 0)), answered(t, r, "last_zxid"))
	require.Equal(t, fmt.Sprint(backupDigest), answered(t, r, "digest"))
	<-c.Done()
	for _, old := range []*client.Client{c, owner} {
		_, err = client.Dial(t.Context(), s.Addr().String(), client.Options{Session: old.Session(), Password: old.Password(), LastZxidSeen: seen})
		require.ErrorIs(t, err, wire.CodeSessionExpired)
	}
	fresh := s.client()
	_, err = fresh.Exists(t.Context(), "/lost", false)
	require.Equal(t, wire.CodeNoNode, err)
	_, err = fresh.Exists(t.Context(), "/kept", false)
	require.NoError(t, err)
	until(t, "the ephemeral node of a session that is no more is gone", func() bool {
		_, err := fresh.Exists(t.Context(), "/e", false)
		return errors.Is(err, wire.CodeNoNode)
	})
	require.Greater(t, fresh.LastZxid(), seen)
	require.Contains(t, s.word("mntr"), "zk_cnt_restore_time\t1\n")

	// Once more, with the state that came of it: the epoch goes on.
	r = s.Act("restore", "ip", string(b))
	require.Zero(t, r.Status, r.Error)
	require.Equal(t, int64(zxid.Make(seen.Epoch()+2, 0)), answered(t, r, "last_zxid"))
	s.create(s.client(), "/x", 0)
	s.shutdown()
	again := startShell(t, s.cfg)
	_, err = again.client().Exists(t.Context(), "/x", false)
	require.NoError(t, err)
}

// What is no whole snapshot changes nothing.
func TestRestoreRefuses(t *testing.T) {
	s := startShell(t, shellConfig(t, unlimited))
	c := s.client()
	s.create(c, "/a", 0)
	b := sent(t, s.Act("backup", anyone, ""))
	flipped := bytes.Clone(b)
	flipped[len(b)/2] ^= 1
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(b)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	badSum := bytes.Clone(packed.Bytes())
	badSum[len(badSum)-6] ^= 1
	before, digest := s.dataFiles(), s.Digest()
	withoutZxid := b[:len(b)-21]
	bodies := map[string][]byte{
		"nothing": nil, "a word": []byte("hello"), "cut": b[:len(b)-1], "cut in the middle": b[:len(b)/2], "flipped": flipped,
		"longer": append(bytes.Clone(b), 'x'), "packed and cut": packed.Bytes()[:packed.Len()-9], "packed, bad sum": badSum,
		"packed, longer": append(bytes.Clone(packed.Bytes()), "junk"...), "no zxid": withoutZxid,
	}
	for name, body := range bodies {
		r := s.Act("restore", anyone, string(body))
		require.Equal(t, http.StatusBadRequest, r.Status, "%s: %s", name, r.Error)
		require.NotEmpty(t, r.Error)
	}
	require.Contains(t, s.Act("restore", anyone, string(withoutZxid)).Error, "which transaction")
	require.Equal(t, before, s.dataFiles())
	require.Equal(t, digest, s.Digest())
	s.create(c, "/b", 0)                                                                          // the session goes on
	require.Contains(t, s.word("mntr"), fmt.Sprintf("zk_restore_error_count\t%d\n", len(bodies))) // without the one that has no body
}

// The rate limit holds for what was refused, too, and each command has its own.
func TestRestoreRateLimit(t *testing.T) {
	s := startShell(t, shellConfig(t))
	sent(t, s.Act("snapshot", anyone, ""))
	require.Equal(t, http.StatusBadRequest, s.Act("restore", anyone, "x").Status)
	r := s.Act("restore", anyone, "x")
	require.Equal(t, http.StatusTooManyRequests, r.Status)
	require.Equal(t, "300", r.Header.Get("Retry-After"))
	require.Contains(t, s.word("mntr"), "zk_restore_rate_limited_count\t1\n")
}

// A digest that is not that of the content is found before anything changes: of a snapshot that ZooKeeper wrote while the
// data changed, the rest is in the log.
func TestRestoreComparesTheDigest(t *testing.T) {
	var b []byte
	func() {
		tree := znode.NewTree(znode.Config{})
		var res znode.Result
		tree.Apply(&znode.TxnHeader{Zxid: 1, Type: wire.OpCreate}, &znode.Txn{Type: wire.OpCreate, Path: []byte("/a"), Data: []byte("1"), ParentCVersion: 1}, &res)
		snap, err := tree.OpenSnapshot(znode.SnapshotOptions{Digest: true, LastZxid: true})
		require.NoError(t, err)
		defer snap.Close()
		for done := false; !done; {
			b, done, err = snap.Next(b, 1<<20)
			require.NoError(t, err)
		}
	}()
	s := startShell(t, shellConfig(t, unlimited))
	r := s.Act("restore", anyone, string(reseal(t, b)))
	require.Equal(t, http.StatusBadRequest, r.Status)
	require.Contains(t, r.Error, "its digest is")
	require.Zero(t, s.Act("restore", anyone, string(b)).Status)
}

// A member is not restored while it runs; the answer says how.
func TestRestoreOfAMemberIsRefused(t *testing.T) {
	cfg := memberConfig(t, "1", fmt.Sprintf("server.1=127.0.0.1:%d:%d\n", unusedPort(t), unusedPort(t)))
	s := startShell(t, cfg)
	until(t, "it serves", func() bool { return s.Stats().Mode == "leader" })
	r := s.Act("restore", anyone, "x")
	require.Equal(t, http.StatusConflict, r.Status)
	require.Contains(t, r.Error, "zabra restore FILE --config zoo.cfg")
	r = s.Act("handover", anyone, "")
	require.Equal(t, http.StatusConflict, r.Status)
	require.Contains(t, r.Error, "no follower")
}

// From a crash at any moment of a restore the server starts with the old state or with the new one.
func TestRestoreCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	disk := vfs.NewMem()
	fault := vfs.NewFault(disk)
	cfg := shellConfig(t, unlimited, func(cfg *conf.Config) { cfg.DataDir, cfg.DataLogDir, cfg.PreAllocKB = "/data", "", 16 })
	s, err := server.New(cfg, server.Options{FS: fault})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	c, err := client.Dial(t.Context(), s.Addr().String(), client.Options{})
	require.NoError(t, err)
	_, err = c.Create(t.Context(), "/kept", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	b := sent(t, s.Act("backup", anyone, ""))
	restoredDigest := s.Digest()
	_, err = c.Create(t.Context(), "/lost", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	oldDigest := s.Digest()

	var mu sync.Mutex
	var disks []*vfs.Mem
	fault.Observe(func(op vfs.Op, _ error) {
		if op.Kind.Changes() {
			mu.Lock()
			defer mu.Unlock()
			disks = append(disks, disk.CrashClone(rng), disk.CrashClone(rng), disk.Clone())
		}
	})
	r := s.Act("restore", anyone, string(b))
	fault.Observe(nil)
	require.Zero(t, r.Status, r.Error)
	c.Abandon()
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-served, server.ErrServerClosed)

	old, restored := 0, 0
	for i, d := range append(disks, disk.Clone()) {
		s, err := server.New(cfg, server.Options{FS: d})
		require.NoError(t, err, "disk %d", i)
		switch s.Digest() {
		case oldDigest:
			old++
		case restoredDigest:
			restored++
			require.GreaterOrEqual(t, s.Stats().Zxid, zxid.Make(1, 0))
		default:
			t.Fatalf("disk %d: neither the old state nor the new one", i)
		}
		require.NoError(t, s.Close())
	}
	t.Logf("%d times the old state, %d times the new one", old, restored)
	require.Greater(t, old, 10)
	require.Greater(t, restored, 10)
}

// A body that breaks off is the client's fault, and leaves nothing behind.
func TestRestoreOfABrokenBody(t *testing.T) {
	s := startShell(t, shellConfig(t, unlimited))
	before := s.dataFiles()
	r := s.ActBody("restore", anyone, io.MultiReader(strings.NewReader("ZKSN"), brokenReader{}))
	require.Equal(t, http.StatusBadRequest, r.Status)
	require.Contains(t, r.Error, "broke off")
	require.Equal(t, before, s.dataFiles())
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// reseal changes the digest at a snapshot's end and makes the checksums right again.
func reseal(t *testing.T, b []byte) []byte {
	t.Helper()
	const sealBytes, digestBytes, zxidBytes = 8 + 5, 8 + 4 + 8, 8
	b = bytes.Clone(b)
	zxidAt := len(b) - sealBytes - zxidBytes
	sealAt := zxidAt - sealBytes
	b[sealAt-digestBytes+8+4] ^= 1
	for _, at := range []int{sealAt, zxidAt + zxidBytes} {
		binary.BigEndian.PutUint64(b[at:], uint64(adler32.Checksum(b[:at])))
	}
	return b
}
