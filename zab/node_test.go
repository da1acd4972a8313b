package zab

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

func propose(n *Node, count int) []zxid.Zxid {
	var ids []zxid.Zxid
	for range count {
		z := n.NextZxid()
		n.Propose(Entry{Zxid: z})
		ids = append(ids, z)
	}
	return ids
}

func committed(rd Ready) []zxid.Zxid {
	var ids []zxid.Zxid
	for _, e := range rd.Committed {
		ids = append(ids, e.Zxid)
	}
	return ids
}

func TestFixedEpochCommitsOnlyWhatIsDurable(t *testing.T) {
	n := NewFixedEpoch(Config{LastZxid: 7})
	first := propose(n, 2)
	require.Equal(t, []zxid.Zxid{8, 9}, first)

	rd := n.Ready()
	require.Len(t, rd.Persist, 1)
	require.Equal(t, PersistAppend, rd.Persist[0].Kind)
	require.Len(t, rd.Persist[0].Entries, 2)
	require.Empty(t, rd.Committed, "nothing is durable yet")
	tok1 := rd.Persist[0].Token

	second := propose(n, 1)
	tok2 := n.Ready().Persist[0].Token
	require.Greater(t, tok2, tok1)
	require.Equal(t, 3, n.Outstanding())

	n.Persisted(tok1)
	require.Equal(t, first, committed(n.Ready()))
	require.Equal(t, first[1], n.Status().LastCommitted)
	n.Persisted(tok1)
	require.Empty(t, n.Ready().Committed, "a token confirmed twice commits nothing twice")
	n.Persisted(tok2)
	require.Equal(t, second, committed(n.Ready()))
	require.Zero(t, n.Outstanding())
}

func TestConfirmingATokenConfirmsAllBefore(t *testing.T) {
	n := NewFixedEpoch(Config{})
	var all []zxid.Zxid
	var last Token
	for range 5 {
		all = append(all, propose(n, 3)...)
		last = n.Ready().Persist[0].Token
	}
	n.Persisted(last)
	require.Equal(t, all, committed(n.Ready()))
}

func TestCounterNeverReachesItsReservedValues(t *testing.T) {
	n := NewFixedEpoch(Config{LastZxid: zxid.Make(3, zxid.CounterMax-1)})
	require.Equal(t, []zxid.Zxid{zxid.Make(3, zxid.CounterMax), zxid.Make(4, 1), zxid.Make(4, 2)}, propose(n, 3))
}

func TestMistakesOfTheCallerPanic(t *testing.T) {
	n := NewFixedEpoch(Config{LastZxid: 1})
	require.PanicsWithValue(t, "zab: proposal 0x3 is not the next one after 0x1", func() { n.Propose(Entry{Zxid: 3}) })
	require.Panics(t, func() { n.Persisted(1) })
	require.Panics(t, func() { n.Step(Input{}) })
}
