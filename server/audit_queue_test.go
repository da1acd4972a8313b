package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/server/replica"
	"zabra/wire"
	"zabra/znode"
)

func openAudit(t *testing.T) (a *auditLog, file string, logs *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	auth, err := znode.NewAuth(znode.AuthConfig{})
	require.NoError(t, err)
	a, file = &auditLog{}, filepath.Join(t.TempDir(), "audit.log")
	cfg := &conf.Config{Audit: conf.Audit{Enabled: true, Format: conf.AuditText, File: file}}
	require.NoError(t, a.open(cfg, zap.New(core), auth))
	t.Cleanup(a.close)
	return a, file, logs
}

func lineCount(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Count(string(text), "\n")
}

// TestAuditQueueIsBounded: while the log's disk stands still nothing is lost as long as there is room, the step waits for a
// while, and then goes on without; what is missing is told in both logs.
func TestAuditQueueIsBounded(t *testing.T) {
	a, file, logs := openAudit(t)
	records := make([]replica.AuditRecord, auditQueueMax)
	for i := range records {
		records[i] = replica.AuditRecord{Op: wire.OpSetData, Path: "/a", Result: replica.AuditSuccess}
	}
	a.add(1, records)
	require.Zero(t, a.lost.Load())
	a.add(2, records[:3]) // the first of them waits for auditWaitMax, the others do not
	require.EqualValues(t, 3, a.lost.Load())
	a.drain()
	require.Equal(t, auditQueueMax+1, lineCount(t, file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "operation=auditRecordsMissing:3\tresult=failure\n")
	missing := logs.FilterMessageSnippet("records of the audit log are missing").All()
	require.Len(t, missing, 1)
	require.Equal(t, int64(3), missing[0].ContextMap()["records"])
	a.add(3, records[:1])
	a.drain()
	require.Equal(t, auditQueueMax+2, lineCount(t, file), "there is room again")
	require.EqualValues(t, 3, a.lost.Load())
}

// TestAuditQueueBoundsBytes: long paths count.
func TestAuditQueueBoundsBytes(t *testing.T) {
	a, _, _ := openAudit(t)
	long := []replica.AuditRecord{{Op: wire.OpDelete, Path: strings.Repeat("x", auditQueueBytesMax/4), Result: replica.AuditFailure}}
	for range 4 {
		a.add(1, long)
	}
	require.Zero(t, a.lost.Load())
	a.add(1, long)
	require.EqualValues(t, 1, a.lost.Load())
	a.sink.enabled = false // nobody needs these lines
}

// TestAuditWaitsForRoom: a step that waits goes on as soon as there is room, and loses nothing.
func TestAuditWaitsForRoom(t *testing.T) {
	a, file, _ := openAudit(t)
	a.add(1, make([]replica.AuditRecord, auditQueueMax))
	done := make(chan struct{})
	go func() {
		a.add(2, make([]replica.AuditRecord, 1))
		close(done)
	}()
	a.drain()
	<-done
	a.drain()
	require.Zero(t, a.lost.Load())
	require.Equal(t, auditQueueMax+1, lineCount(t, file))
}

// TestAuditFileThatCannotBeWritten: it is told once in a while, and what is missing is counted.
func TestAuditFileThatCannotBeWritten(t *testing.T) {
	a, _, logs := openAudit(t)
	require.NoError(t, a.sink.file.Close())
	for range 3 {
		a.add(1, make([]replica.AuditRecord, 2))
		a.drain()
	}
	require.EqualValues(t, 6, a.lost.Load())
	require.Equal(t, 1, logs.FilterMessageSnippet("the audit log cannot be written; look at the disk that it is on").Len())
}

func TestAuditWords(t *testing.T) {
	kinds := map[int32]string{-1: "", 0: "persistent", 1: "ephemeral", 2: "persistent_sequential", 3: "ephemeral_sequential", 4: "container",
		5: "persistent_with_ttl", 6: "persistent_sequential_with_ttl", 7: ""}
	for flags, want := range kinds {
		require.Equal(t, want, auditKind(flags))
	}
	operations := map[wire.Op]string{wire.OpCreate: "create", wire.OpCreateTTL: "create", wire.OpDeleteContainer: "delete", wire.OpSetData: "setData",
		wire.OpSetACL: "setAcl", wire.OpMulti: "multiOperation", wire.OpReconfig: "reconfig", wire.OpSync: "sync"}
	for op, want := range operations {
		require.Equal(t, want, auditOperation(op))
	}
	require.Equal(t, `10.0.0.1,a\,b,CN=x,OU=y,super`, auditUser([]wire.ClientInfo{
		{Scheme: "ip", User: "10.0.0.1"}, {Scheme: "digest", User: "a,b"}, {Scheme: "x509", User: "CN=x,OU=y"}, {Scheme: "super"}}))
	require.Equal(t, "world:anyone:cdrwa,ip:10.0.0.1:", auditACL([]wire.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}, {Scheme: "ip", ID: "10.0.0.1"}}))
	require.Equal(t, `a"b\\\t\xff\u2028é`, string(appendEscaped(nil, "a\"b\\\t\xff\u2028é")))
}

// TestAuditQueueCountsWhatRecordsHold: a long list of identities is part of what a waiting record takes.
func TestAuditQueueCountsWhatRecordsHold(t *testing.T) {
	const many = 1000
	plain := auditEntry{AuditRecord: replica.AuditRecord{Path: "/a"}}
	acl := auditEntry{AuditRecord: replica.AuditRecord{Path: "/a", ACL: make([]wire.ACL, many)}}
	ids := auditEntry{AuditRecord: replica.AuditRecord{Path: "/a", IDs: []wire.ID{{Scheme: "digest", ID: strings.Repeat("x", many)}}}}
	require.Equal(t, plain.costBytes()+many*auditIdentityBytes, acl.costBytes())
	require.Equal(t, plain.costBytes()+auditIdentityBytes+len("digest")+many, ids.costBytes())
}
