package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/wire"
)

func TestPrintStat(t *testing.T) {
	ctime := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	s := wire.Stat{Czxid: 0x1a, Mzxid: 0x2b, Ctime: ctime.UnixMilli(), Mtime: ctime.Add(time.Hour).UnixMilli(), Version: 3, CVersion: -4, AVersion: 5,
		EphemeralOwner: -0x7f00000000000000, DataLength: 6, NumChildren: 7, Pzxid: 0x1_0000_0000}
	var out bytes.Buffer
	printStat(&out, &s)
	require.Equal(t, "cZxid = 0x1a\nctime = "+ctime.Format("Mon Jan 02 15:04:05 MST 2006")+"\nmZxid = 0x2b\nmtime = "+
		ctime.Add(time.Hour).Format("Mon Jan 02 15:04:05 MST 2006")+"\npZxid = 0x100000000\ncversion = -4\ndataVersion = 3\naclVersion = 5\n"+
		"ephemeralOwner = 0x8100000000000000\ndataLength = 6\nnumChildren = 7\n", out.String())
}

// The texts of Java's client for all codes that it can meet.
func TestDescribe(t *testing.T) {
	for code, want := range map[wire.Code]string{
		wire.CodeSystemError: "KeeperErrorCode = SystemError for /p", wire.CodeConnectionLoss: "KeeperErrorCode = ConnectionLoss for /p",
		wire.CodeMarshalling: "KeeperErrorCode = MarshallingError for /p", wire.CodeUnimplemented: "KeeperErrorCode = Unimplemented for /p",
		wire.CodeBadArguments: "Arguments are not valid : /p", wire.CodeNoNode: "Node does not exist: /p", wire.CodeNoAuth: "Insufficient permission : /p",
		wire.CodeBadVersion: "version No is not valid : /p", wire.CodeNoChildrenForEphemerals: "Ephemerals cannot have children: /p",
		wire.CodeNodeExists: "Node already exists: /p", wire.CodeNotEmpty: "Node not empty: /p", wire.CodeInvalidACL: "Acl is not valid : /p",
		wire.CodeSessionExpired: "KeeperErrorCode = Session expired for /p", wire.CodeAuthFailed: "KeeperErrorCode = AuthFailed for /p",
		wire.CodeSessionMoved: "KeeperErrorCode = Session moved for /p", wire.CodeNotReadOnly: "Not a read-only call: /p",
		wire.CodeEphemeralOnLocalSession: "KeeperErrorCode = Ephemeral node on local session for /p",
		wire.CodeNoWatcher:               "KeeperErrorCode = No such watcher for /p", wire.CodeReconfigDisabled: "KeeperErrorCode = Reconfig is disabled for /p",
		wire.CodeAuthRequired:       "KeeperErrorCode = Session closed because client failed to authenticate for /p",
		wire.CodeQuotaExceeded:      "Quota has exceeded : /p",
		wire.CodeThrottled:          "KeeperErrorCode = Op throttled due to high load for /p",
		wire.CodeReconfigInProgress: "another reconfiguration is in progress: try again when it is done",
	} {
		require.Equal(t, want, (&opError{path: "/p", err: code}).Error())
		require.Equal(t, want, (&opError{path: "/p", err: fmt.Errorf("wrapped: %w", code)}).Error())
		require.Equal(t, want, (&opError{path: "/p", err: &client.MultiError{Index: 1, Code: code}}).Error())
	}
	require.Equal(t, "KeeperErrorCode = Directory not empty", keeperError(wire.CodeNotEmpty, ""))
}

func TestClientAddresses(t *testing.T) {
	require.Equal(t, "100000000 0.0.0.0:2181,h2:2182,", clientAddresses("server.1=h1:2:3:participant;0.0.0.0:2181\n"+
		"server.2=h2:2:3:participant;h2:2182\nserver.3=h3:2:3:observer\nversion=100000000"))
	require.Equal(t, " ", clientAddresses(""))
}

func TestReconfigRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dynamic")
	require.NoError(t, os.WriteFile(file, []byte("# members\nserver.1=a:1:2;3\nserver.2=b:1:2;3\nversion=7\n"), 0o600))
	flags := func(words ...string) *call {
		set, _, err := parseFlags(lookupCommand("reconfig").flags, words)
		require.NoError(t, err)
		return &call{flags: set}
	}
	req, err := flags("-v", "1f", "-add", "server.3=c:1:2", "-add", "4=d:1:2", "-remove", "1,2").reconfigRequest()
	require.NoError(t, err)
	require.Equal(t, &wire.ReconfigRequest{Joining: []byte("server.3=c:1:2,4=d:1:2"), Leaving: []byte("1,2"), ConfigID: 0x1f}, req)
	req, err = flags("-file", file).reconfigRequest()
	require.NoError(t, err)
	require.Equal(t, &wire.ReconfigRequest{NewMembers: []byte("server.1=a:1:2;3,server.2=b:1:2;3"), ConfigID: -1}, req)
	_, err = flags("-file", file+"x").reconfigRequest()
	require.ErrorContains(t, err, "Error processing "+file+"x")
}

func TestQuotaText(t *testing.T) {
	for text, want := range map[string]string{
		"count=3,bytes=-1": "count=3,bytes=-1=;byteHardLimit=-1;countHardLimit=-1",
		"count=3,bytes=4=;byteHardLimit=5;countHardLimit=6": "count=3,bytes=4=;byteHardLimit=5;countHardLimit=6",
		"":            "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=-1",
		"count=,junk": "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=-1",
	} {
		require.Equal(t, want, parseQuota(text).String())
	}
}
