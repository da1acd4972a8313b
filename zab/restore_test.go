package zab

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

// A standalone server's state is replaced: what is under way is neither committed nor forgotten by the disk, nothing is
// served until the snapshot is installed, and then the zxids go on behind it.
func TestRestoreOfAStandaloneServer(t *testing.T) {
	n := NewFixedEpoch(Config{LastZxid: 7})
	propose(n, 2)
	before := n.Ready().Persist[0].Token
	generation, _ := n.Serves()
	n.Step(Input{Kind: InputRestore, Zxid: 9})
	require.True(t, n.Status().Serving, "9 was given out already")
	z := zxid.Make(3, 0)
	n.Step(Input{Kind: InputRestore, Zxid: z})
	require.False(t, n.Status().Serving)
	rd := n.Ready()
	require.Len(t, rd.Persist, 1)
	require.Equal(t, PersistOp{Kind: PersistInstallSnapshot, Token: before + 1, Zxid: z}, rd.Persist[0])
	n.Step(Input{Kind: InputRestore, Zxid: zxid.Make(4, 0)})
	require.Empty(t, n.Ready().Persist, "one at a time")
	n.Propose(Entry{Zxid: z + 1})
	require.Empty(t, n.Ready().Persist, "nobody is served")

	n.Persisted(before)
	rd = n.Ready()
	require.Empty(t, rd.Committed)
	require.Nil(t, rd.Restored)
	require.True(t, n.Busy())
	n.Persisted(before + 1)
	rd = n.Ready()
	require.Equal(t, z, rd.Restored.Zxid)
	require.Empty(t, rd.Committed)
	st := n.Status()
	require.True(t, st.Serving)
	require.Equal(t, []zxid.Zxid{z, z, z}, []zxid.Zxid{st.LastDurable, st.LastProposed, st.LastCommitted})
	require.Greater(t, st.Generation, generation)
	require.False(t, n.Busy())

	ids := propose(n, 2)
	require.Equal(t, []zxid.Zxid{z + 1, z + 2}, ids)
	n.Persisted(n.Ready().Persist[0].Token)
	require.Equal(t, ids, committed(n.Ready()))
}
