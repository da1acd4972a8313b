package tools

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/wire"
	"zabra/zab"
	"zabra/znode"
)

// What a server with a raised limit wrote is read, and the limit is named.
func TestDoctorNamesARaisedLimit(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	s, err := storage.Open(vfs.OS{}, storage.Config{SnapDir: dir, RecordBytesMax: 8 << 20, Go: func(f func()) { f() }})
	require.NoError(t, err)
	require.NoError(t, s.Begin(0x9b))
	h := znode.TxnHeader{Zxid: 0x9c, Type: wire.OpSetData}
	payload := znode.AppendTxn(nil, &h, &znode.Txn{Type: wire.OpSetData, Path: []byte("/a"), Data: make([]byte,
		jute.FieldBytesMaxDefault+1)}, nil)
	require.NoError(t, s.Append([]zab.Entry{{Zxid: h.Zxid, Payload: payload}}))
	require.NoError(t, s.Close())

	d := diagnosed(t, dir)
	text := d.text(t)
	require.True(t, d.Standalone.Starts, text)
	require.Equal(t, "0x9c", d.Data.LastZxid)
	require.Contains(t, text, "larger than 2097150 bytes, the default limit of a server")
	require.Contains(t, text, "start it with a larger jute.maxbuffer")
	_, err = run(func(o Output) error { return VerifyLogs(o, []string{dir}) })
	require.NoError(t, err)
}

// While a server writes, what looks like damage may be none.
func TestDoctorJudgesNoDamageBesideARunningServer(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	s := startedOn(t, dir)
	appendTxn(t, s, znode.TxnHeader{Zxid: 0x9c})
	edit(t, filepath.Join(dir, dataFolder, "log.9c"), func(b []byte) []byte { return b[:20] })
	d := diagnosed(t, dir)
	require.Contains(t, d.text(t), "could not be read to their end while a Zabra server")
	for _, f := range d.Findings {
		require.NotEqual(t, LevelError, f.Level, f.What)
	}
	require.True(t, d.Sound())
}
