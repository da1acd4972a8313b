package znode

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/wire"
)

func TestEventFrame(t *testing.T) {
	path := []byte("/a/b")
	e := NewEvent(wire.EventNodeDataChanged, path, 0x205, nil)
	const want = "00000020" + "ffffffff" + "0000000000000205" + "00000000" + "00000003" + "00000003" + "00000004" + "2f612f62"
	require.Equal(t, want, hex.EncodeToString(e.Frame()))
	require.Same(t, &e.Frame()[0], &e.Frame()[0], "built once")

	path[1] = 'x'
	require.Equal(t, "/a/b", string(e.Path), "the event keeps its own copy")

	literal := &Event{Type: wire.EventNodeDataChanged, Path: []byte("/a/b"), Zxid: 0x205}
	require.Equal(t, e.Frame(), literal.Frame())
}

func TestEventFrameOfOddPaths(t *testing.T) {
	for _, path := range [][]byte{nil, {}, []byte("no slash"), []byte("/\U0001f600"), []byte("/é")} {
		e := NewEvent(wire.EventNodeDeleted, path, -1, nil)
		require.Equal(t, path, e.Path)
		d := jute.NewDecoder(e.Frame()[4:], jute.FieldBytesMaxDefault)
		var h wire.ReplyHeader
		var w wire.WatcherEvent
		h.Decode(&d)
		w.Decode(&d)
		require.NoError(t, d.Err())
		require.Zero(t, d.Remaining())
		require.EqualValues(t, -1, h.Zxid)
		require.Equal(t, path == nil, w.Path == nil)
	}
}

func TestEventAllocations(t *testing.T) {
	path := []byte("/service/members/n-0000000001")
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { NewEvent(wire.EventNodeCreated, path, 1, nil) }), 2.0)
}
