package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// craftLog writes a data directory with a log of these transactions.
func craftLog(t *testing.T, txns ...znode.Txn) string {
	dir := t.TempDir()
	store, err := storage.Open(vfs.OS{}, storage.Config{SnapDir: dir, LogDir: dir, PreAllocBytes: 64 << 10, SnapCount: 100_000, RecordBytesMax: 1 << 20})
	require.NoError(t, err)
	snap, err := znode.NewTree(znode.Config{}).OpenSnapshot(znode.SnapshotOptions{Digest: true})
	require.NoError(t, err)
	require.NoError(t, store.WriteSnapshot(0, snap.Next))
	snap.Close()
	require.NoError(t, store.Begin(0))
	var entries []zab.Entry
	for i := range txns {
		h := znode.TxnHeader{Zxid: zxid.Zxid(i + 1), Time: 1_700_000_000_000, Type: txns[i].Type}
		entries = append(entries, zab.Entry{Zxid: h.Zxid, Payload: znode.AppendTxn(nil, &h, &txns[i], nil)})
	}
	require.NoError(t, store.Append(entries))
	require.NoError(t, store.Sync())
	require.NoError(t, store.Close())
	return dir
}

func TestC77SequenceNumbersRunOut(t *testing.T) {
	create := func(path string, parentCVersion int32) znode.Txn {
		return znode.Txn{Type: wire.OpCreate, Path: []byte(path), Data: []byte{}, ACL: wire.OpenACL, ParentCVersion: parentCVersion}
	}
	const last = 2147483646 // the second to last that there is
	for name, pipelined := range map[string]bool{"one after the other": false, "pipelined": true} {
		t.Run(name, func(t *testing.T) {
			dir := craftLog(t, create("/p", 1), create("/p/x", last))
			s := startCompat(t, servertest.WithDataDir(dir))
			c := s.closing()
			var calls []*client.Call
			for range 5 {
				calls = append(calls, c.Go(wire.OpCreate, &wire.CreateRequest{Path: []byte("/p/n-"), ACL: wire.OpenACL, Flags: wire.FlagSequential}))
				if !pipelined {
					<-calls[len(calls)-1].Done()
				}
			}
			for i, call := range calls {
				err := call.Wait(compatContext(t))
				if i >= 2 {
					require.Equal(t, wire.CodeNodeExists, err, i)
					continue
				}
				var reply wire.PathReply
				require.NoError(t, err)
				require.NoError(t, call.Decode(&reply))
				require.Equal(t, []string{"/p/n-2147483646", "/p/n-2147483647"}[i], string(reply.Path))
			}
			// Names of their own can still be created, and nothing changes with a restart.
			s.create(c, "/p/y", nil, 0)
			require.NoError(t, c.Close(compatContext(t)))
			s.restart()
			again := s.closing()
			names, err := again.GetChildren(compatContext(t), "/p", false)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"x", "n-2147483646", "n-2147483647", "y"}, names)
			_, err = again.Create(compatContext(t), "/p/n-", nil, wire.OpenACL, wire.FlagEphemeralSequential)
			require.Equal(t, wire.CodeNodeExists, err)
		})
	}
}
