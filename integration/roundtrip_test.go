//go:build interop && linux

package integration

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// roundTripSettings are those of both servers: sessions that outlive every restart, a snapshot every few hundred
// transactions, small log files.
var roundTripSettings = map[string]string{"maxSessionTimeout": "120000", "snapCount": "400", "preAllocSize": "64"}

// nothingReaped keeps the reaper of containers and TTL nodes from changing the tree between two dumps.
var nothingReaped = []string{"-Dznode.container.checkIntervalMs=3600000"}

const (
	longSessionMs  = 100000
	shortSessionMs = 8000
)

// TestRoundTrip writes data of every kind with the reference server, goes on with the server under test on the same
// configuration file and data directory, writes more, and goes back.
func TestRoundTrip(t *testing.T) {
	writer := startDataWriter(t)
	for _, real := range []harness.Kind{harness.Apache380, harness.Apache395} {
		t.Run(string(real), func(t *testing.T) {
			t.Run("plain", func(t *testing.T) { trip{real: real, expiry: true}.run(t, writer) })
			t.Run("killed", func(t *testing.T) { roundTripKilled(t, writer, real) })
			if serverUnderTest(t) != harness.Zabra {
				return // the reference server itself cannot read its own snapshots once digest.enabled has changed
			}
			t.Run("gzip-without-our-digests", func(t *testing.T) {
				trip{
					real:   real,
					first:  map[string]string{"snapshot.compression.method": "gz"},
					second: map[string]string{"digest.enabled": "false"},
					third:  map[string]string{"digest.enabled": "true"},
				}.run(t, writer)
			})
			t.Run("snappy-without-its-digests", func(t *testing.T) {
				trip{
					real:   real,
					first:  map[string]string{"snapshot.compression.method": "snappy", "digest.enabled": "false"},
					second: map[string]string{"digest.enabled": "true"},
				}.run(t, writer)
			})
		})
	}
}

// trip goes from the real server to the one under test and back. Each of the three stages may change settings.
type trip struct {
	real                 harness.Kind
	first, second, third map[string]string
	expiry               bool // also look at the end of a session that nobody takes up
}

func newRoundTripServer(t *testing.T, kind harness.Kind, settings map[string]string) *harness.Server {
	server := newServer(t, kind, roundTripSettings)
	server.Defines = nothingReaped
	require.NoError(t, server.Set(settings))
	return server
}

func (tr trip) run(t *testing.T, writer *dataWriter) {
	server := newRoundTripServer(t, tr.real, tr.first)
	require.NoError(t, server.Start())
	writer.fill(t, server.Addr(), "/one")
	session := createEphemeralFor(t, server.Addr(), "/one/session", longSessionMs)
	if tr.expiry {
		createEphemeralFor(t, server.Addr(), "/one/short", shortSessionMs)
	}
	want := dumpTree(t, server.Addr())
	if tr.expiry {
		require.Contains(t, want, "/one/short", "the machine is too slow for this session's timeout")
	}
	require.NoError(t, server.Stop())
	requireNoDigestMismatch(t, server)

	server.Kind = serverUnderTest(t)
	require.NoError(t, server.Set(tr.second))
	launched := time.Now()
	require.NoError(t, server.Start())
	requireSameTree(t, want, dumpTree(t, server.Addr()), "after the change to "+string(server.Kind))
	started := newestSnapshot(t, server)
	if tr.expiry {
		expectExpiry(t, server.Addr(), "/one/short", launched)
	}
	resume(t, server.Addr(), session, "/one/session")
	continueSequence(t, server.Addr(), "/one/seq/n-", "/one/seq/n-0000000008")

	writer.fill(t, server.Addr(), "/two")
	session = createEphemeralFor(t, server.Addr(), "/two/session", longSessionMs)
	eventually(t, "a snapshot", func() bool { return newestSnapshot(t, server) > started })
	want = dumpTree(t, server.Addr())
	require.NoError(t, server.Stop())
	newest := newestSnapshot(t, server)

	server.Kind = tr.real
	require.NoError(t, server.Set(tr.third))
	require.NoError(t, server.Start())
	requireSameTree(t, want, dumpTree(t, server.Addr()), "after the change back to "+string(tr.real))
	requireNewestSnapshotRead(t, server, newest)
	resume(t, server.Addr(), session, "/two/session")
	continueSequence(t, server.Addr(), "/two/seq/n-", "/two/seq/n-0000000008")
	requireNoDigestMismatch(t, server)
	require.NoError(t, server.Stop())
}

// roundTripKilled is the same with SIGKILL in the middle of writes. What is right after a crash is what the other server
// makes of a copy of the same directory.
func roundTripKilled(t *testing.T, writer *dataWriter, real harness.Kind) {
	under := serverUnderTest(t)
	server := newRoundTripServer(t, real, nil)
	require.NoError(t, server.Start())
	writer.fill(t, server.Addr(), "/one")
	session := createEphemeralFor(t, server.Addr(), "/one/session", longSessionMs)
	book := newLedger()
	book.prepare(t, server.Addr())
	book.load(t, server.Addr(), 2*time.Second, server.Kill)

	want := dumpOfCopy(t, real, server)
	server.Kind = under
	require.NoError(t, server.Start())
	requireSameTree(t, want, dumpTree(t, server.Addr()), "after a kill of "+string(real))
	book.verify(t, server.Addr())
	resume(t, server.Addr(), session, "/one/session")

	writer.fill(t, server.Addr(), "/two")
	session = createEphemeralFor(t, server.Addr(), "/two/session", longSessionMs)
	book.load(t, server.Addr(), 2*time.Second, server.Kill)
	want = dumpOfCopy(t, under, server)
	newest := newestSnapshot(t, server)
	server.Kind = real
	require.NoError(t, server.Start())
	if under == harness.Zabra { // the reference server leaves half of a snapshot behind when it is killed
		requireNewestSnapshotRead(t, server, newest)
	}
	requireSameTree(t, want, dumpTree(t, server.Addr()), "after a kill of "+string(under))
	book.verify(t, server.Addr())
	resume(t, server.Addr(), session, "/two/session")
	requireNoDigestMismatch(t, server)
	require.NoError(t, server.Stop())
	t.Logf("%d acknowledged writes kept", book.acked.Load())
}

// dumpOfCopy starts a server of the given kind on a copy of a stopped server's data and dumps its tree.
func dumpOfCopy(t *testing.T, kind harness.Kind, of *harness.Server) map[string]nodeDump {
	dir, err := os.MkdirTemp(of.Dir, "copy-for-"+string(kind)+"-")
	require.NoError(t, err)
	server, err := harness.New(kind, dir, roundTripSettings)
	require.NoError(t, err)
	server.Defines = nothingReaped
	watchOver(t, server)
	copyData(t, of.DataDir(), server.DataDir())
	require.NoError(t, server.Start())
	tree := dumpTree(t, server.Addr())
	requireNoDigestMismatch(t, server)
	require.NoError(t, server.Stop())
	return tree
}

// dataWriter is the Java program that writes nodes of all kinds; one process serves all tests.
type dataWriter struct {
	stdin  io.Writer
	lines  *bufio.Scanner
	stderr strings.Builder
}

func startDataWriter(t *testing.T) *dataWriter {
	w := &dataWriter{}
	cmd := javaProgram("DataWriter")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = &w.stderr
	require.NoError(t, harness.StartChild(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if w.stderr.Len() > 0 {
			t.Logf("DataWriter: %s", w.stderr.String())
		}
	})
	w.stdin, w.lines = stdin, bufio.NewScanner(stdout)
	return w
}

// fill writes below base, in a session that lives on without a connection.
func (w *dataWriter) fill(t *testing.T, addr, base string) {
	_, err := fmt.Fprintf(w.stdin, "%s %s %d %d\n", addr, base, longSessionMs, 800)
	require.NoError(t, err)
	require.True(t, w.lines.Scan() && w.lines.Text() == "READY", "DataWriter failed, see its output behind the test")
}

// expectExpiry waits until an ephemeral node goes with its session, which is given its whole timeout from the start of the
// server that found it in the data.
func expectExpiry(t *testing.T, addr, path string, launched time.Time) {
	c := dial(t, addr)
	defer c.Close()
	exists, _, gone, err := c.ExistsW(path)
	require.NoError(t, err)
	require.True(t, exists, "%s went early", path)
	serving := time.Now()
	expectEvent(t, gone, zk.EventNodeDeleted, path)
	require.Greater(t, time.Since(launched), shortSessionMs*time.Millisecond, "time given to the session")
	require.Less(t, time.Since(serving), (shortSessionMs+2500)*time.Millisecond, "time given to the session")
}

func continueSequence(t *testing.T, addr, prefix, want string) {
	c := dial(t, addr)
	defer c.Close()
	path, err := c.Create(prefix, nil, zk.FlagSequence, openACL)
	require.NoError(t, err)
	require.Equal(t, want, path)
}

var snapshotName = regexp.MustCompile(`^snapshot\.([0-9a-f]+)(\.gz|\.snappy)?$`)

// newestSnapshot returns the highest zxid in the name of a snapshot file.
func newestSnapshot(t *testing.T, server *harness.Server) int64 {
	entries, err := os.ReadDir(filepath.Join(server.DataDir(), "version-2"))
	require.NoError(t, err)
	newest := int64(-1)
	for _, entry := range entries {
		if m := snapshotName.FindStringSubmatch(entry.Name()); m != nil {
			z, err := strconv.ParseInt(m[1], 16, 64)
			require.NoError(t, err)
			newest = max(newest, z)
		}
	}
	return newest
}

// requireNewestSnapshotRead proves that the reference server took our newest snapshot: it would otherwise go back to an older
// one without much ado, until a purge has taken that away.
func requireNewestSnapshotRead(t *testing.T, server *harness.Server, zxid int64) {
	log := server.Log()
	require.Empty(t, regexp.MustCompile(`(?m)^.*problem reading snap file.*$`).FindAllString(log, 3))
	require.True(t, regexp.MustCompile(fmt.Sprintf(`Reading snapshot .*/snapshot\.%x\b`, zxid)).MatchString(log), "snapshot.%x was not read", zxid)
}

// digestTrouble is what the reference server logs when the digest of its tree is not the one in the log or snapshot.
var digestTrouble = regexp.MustCompile(`(?m)^.*(Digests are not matching|[Dd]igest mismatch|lead to inconsistent state|of snapshot digest does not exist).*$`)

func digestMismatches(server *harness.Server) []string {
	return digestTrouble.FindAllString(server.Log(), 5)
}

func requireNoDigestMismatch(t *testing.T, server *harness.Server) {
	t.Helper()
	require.Empty(t, digestMismatches(server), "digest mismatch in the log of %s", server.Kind)
	if server.PID() != 0 && server.Kind != harness.Zabra {
		values, err := harness.Monitor(server.Addr())
		require.NoError(t, err)
		require.Equal(t, "0", values["digest_mismatches_count"])
	}
}

// TestDigestMismatchIsSeen proves that the check above can fail: the reference server is started on a log in which the data of
// one transaction was changed under a right checksum.
func TestDigestMismatchIsSeen(t *testing.T) {
	server := newServer(t, harness.Apache395, nil)
	require.NoError(t, server.Start())
	c := dial(t, server.Addr())
	_, err := c.Create("/honest", []byte("honest data"), 0, openACL)
	require.NoError(t, err)
	c.Close()
	require.NoError(t, server.Stop())
	require.Empty(t, digestMismatches(server))

	logs, err := filepath.Glob(filepath.Join(server.DataDir(), "version-2", "log.*"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	falsify(t, logs[0], "honest data", "forged data")
	require.NoError(t, server.Start())
	require.NotEmpty(t, digestMismatches(server))
}

// falsify replaces text in the one transaction that has it, and sets the record's checksum.
func falsify(t *testing.T, file, from, to string) {
	const fileHeader, recordHeader = 16, 12 // bytes; a record is an 8-byte checksum, a 4-byte length, the payload and 'B'
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	for at := fileHeader; at+recordHeader < len(b); {
		length := int(binary.BigEndian.Uint32(b[at+8:]))
		if length == 0 {
			break // the zeros behind the last record
		}
		payload := b[at+recordHeader : at+recordHeader+length]
		if i := strings.Index(string(payload), from); i >= 0 {
			copy(payload[i:], to)
			binary.BigEndian.PutUint64(b[at:], uint64(adler32.Checksum(payload)))
			require.NoError(t, os.WriteFile(file, b, 0o644))
			return
		}
		at += recordHeader + length + 1
	}
	require.Fail(t, "the text is in no transaction")
}
