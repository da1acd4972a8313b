package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

// TestAnswersDoNotWaitForTheWholeStep: of many transactions that become durable together, the first are answered while the
// last are yet to be applied. No answer is lost between the two ways out, and none comes out before its transaction is applied.
func TestAnswersDoNotWaitForTheWholeStep(t *testing.T) {
	const batch, clients, each = 4, 6, 3
	early := 0
	var w *world
	w = newWorld(t, func(c *Config) {
		c.ApplyBatchMax = batch
		c.FlushEarly = func(conns []*Conn) {
			early++
			require.NotEmpty(t, conns)
			require.Equal(t, early*batch, int(w.r.Stats().Commits)-clients, "the answers of one batch, with the next not yet applied")
			for _, c := range conns {
				require.True(t, c.HasOutput())
				w.flushed[c]++
			}
		}
	})
	all := make([]*client, clients)
	for i := range all {
		all[i] = w.connect()
	}
	for i, cl := range all {
		for k := range each {
			require.Equal(t, Continue, cl.sendXid(int32(k+1), wire.OpCreate, create(fmt.Sprintf("/n%d-%d", i, k))))
		}
	}
	w.step()
	clear(w.flushed)
	early = 0
	w.stepWith(w.written)
	require.Equal(t, (clients*each-1)/batch, early)
	for i, cl := range all {
		require.Positive(t, w.flushed[cl.c], "client %d", i)
		require.Len(t, cl.replies(), each)
	}
}

// A single batch leaves by Flush alone.
func TestSmallStepFlushesOnce(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.FlushEarly = func([]*Conn) { t.Error("nothing follows") } })
	cl := w.connect()
	require.Equal(t, Continue, cl.sendXid(1, wire.OpCreate, create("/a")))
	w.settle()
	require.Len(t, cl.replies(), 1)
}
