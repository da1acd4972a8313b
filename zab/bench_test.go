package zab

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// benchEntries are a batch that is proposed again and again, each time with the next zxids.
func benchEntries(n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i].Payload = make([]byte, 200)
	}
	return entries
}

func number(entries []Entry, next zxid.Zxid) {
	for i := range entries {
		entries[i].Zxid = next + zxid.Zxid(i)
	}
}

// BenchmarkCommit proposes a batch, confirms that it is durable, and takes it as committed: alone, and in an ensemble of
// three whose messages and disks take no time.
func BenchmarkCommit(b *testing.B) {
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("standalone/batch=%d", batch), func(b *testing.B) {
			n := NewFixedEpoch(Config{})
			entries := benchEntries(batch)
			b.ReportAllocs()
			for b.Loop() {
				number(entries, n.NextZxid())
				n.Propose(entries...)
				rd := n.Ready()
				n.Persisted(rd.Persist[len(rd.Persist)-1].Token)
				if rd = n.Ready(); len(rd.Committed) != batch {
					b.Fatal(len(rd.Committed))
				}
			}
		})
	}
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("three/batch=%d", batch), func(b *testing.B) {
			w := newTrio(b)
			entries := benchEntries(batch)
			b.ReportAllocs()
			for b.Loop() {
				number(entries, w.leader.NextZxid())
				w.committed = 0
				w.leader.Step(Input{Kind: InputPropose, Entries: entries, NowMs: w.now})
				if w.rest(); w.committed != trioServers*batch {
					b.Fatal(w.committed)
				}
			}
		})
	}
}

const trioServers = 3

// trio is an ensemble of three in one goroutine. Messages arrive in order and at once, disks are done at once.
type trio struct {
	tb     testing.TB
	nodes  [trioServers]*Node
	leader *Node
	now    int64
	// conns are the connections of the followers, by server, with the same number at both ends.
	conns [trioServers]ConnID
	// queue holds messages on their way, spare is the memory of those that have arrived.
	queue, spare []Message
	committed    int // by all, since it was last set to zero
}

// newTrio elects a leader and has everybody serve.
func newTrio(tb testing.TB) *trio {
	var members []ensemble.Member
	for i := range trioServers {
		members = append(members, ensemble.Member{ID: zxid.ServerID(i + 1)})
	}
	cfg, err := ensemble.New(members, 0)
	require.NoError(tb, err)
	w := &trio{tb: tb, now: 1000}
	for i := range w.nodes {
		w.nodes[i] = New(Config{Ensemble: cfg, ID: zxid.ServerID(i + 1), TickMs: 2000, InitLimitMs: 20_000, SyncLimitMs: 10_000,
			Ends: []zxid.Zxid{0}, NowMs: w.now})
	}
	for _, n := range w.nodes {
		for _, o := range w.nodes {
			if o != n {
				n.Step(Input{Kind: InputLinkUp, Peer: o.cfg.ID, NowMs: w.now})
			}
		}
	}
	for range 100 {
		w.now += 100
		for _, n := range w.nodes {
			n.Step(Input{Kind: InputTick, NowMs: w.now})
		}
		w.rest()
		w.connect()
		w.rest()
	}
	serving := 0
	for _, n := range w.nodes {
		if n.Status().Serving {
			serving++
		}
		if n.role == RoleLeading {
			w.leader = n
		}
	}
	require.Equal(tb, trioServers, serving)
	require.NotNil(tb, w.leader)
	return w
}

// connect gives connections to followers that have none and whose leader leads.
func (w *trio) connect() {
	for i, n := range w.nodes {
		st := n.Status()
		if st.Role != RoleFollowing || w.conns[i] != 0 || nodeOf(w.nodes[:], st.Leader).role != RoleLeading {
			continue
		}
		w.conns[i] = ConnID(i + 1)
		nodeOf(w.nodes[:], st.Leader).Step(Input{Kind: InputConnected, Peer: n.cfg.ID, Conn: w.conns[i], NowMs: w.now})
		n.Step(Input{Kind: InputConnected, Peer: st.Leader, Conn: w.conns[i], NowMs: w.now})
	}
}

// rest goes on until nothing is on its way and nobody has anything to do.
func (w *trio) rest() {
	for busy := true; busy; {
		busy = false
		for _, n := range w.nodes {
			busy = w.serve(n) || busy
		}
		arrived := w.queue
		w.queue = w.spare[:0]
		for i := range arrived {
			m := &arrived[i]
			nodeOf(w.nodes[:], m.To).Step(Input{Kind: InputMessage, Message: m, Conn: m.Conn, NowMs: w.now})
			busy = true
		}
		w.spare = arrived
	}
}

// serve does what a node wants done, and reports whether that was anything.
func (w *trio) serve(n *Node) bool {
	rd := n.Ready()
	if len(rd.History) > 0 || len(rd.Hangup) > 0 {
		w.tb.Fatal(rd.History, rd.Hangup)
	}
	w.queue = append(w.queue, rd.Send...)
	w.committed += len(rd.Committed)
	if len(rd.Persist) > 0 {
		n.Step(Input{Kind: InputPersisted, Token: rd.Persist[len(rd.Persist)-1].Token, NowMs: w.now})
	}
	return len(rd.Persist)+len(rd.Send)+len(rd.Committed) > 0
}
