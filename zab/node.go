package zab

import (
	"fmt"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// Config is what a Node must know at its start.
type Config struct {
	// LastZxid is the last transaction that is durable and applied here; 0 on a fresh directory.
	LastZxid zxid.Zxid

	// Ensemble is the membership; nil means fixed-epoch mode, and the rest is unused.
	Ensemble *ensemble.Config
	// ID is this server's, one of the members'.
	ID zxid.ServerID
	// AcceptedEpoch and CurrentEpoch are what is durable here.
	AcceptedEpoch, CurrentEpoch zxid.Epoch
	// TickMs is tickTime. InitLimitMs bounds each step of the start of a leader and its learners, SyncLimitMs the
	// silence of a peer after that.
	TickMs, InitLimitMs, SyncLimitMs int64
	// Rand returns random numbers.
	Rand func() uint64
	// Plant re-plants known bugs, for the simulator to find. It is zero everywhere else.
	Plant Plant
}

// Plant is a set of known bugs.
type Plant uint64

// Status is what a server is at a moment.
type Status struct {
	Role  Role
	Phase Phase
	// Leader is the server that is followed or is about to be; 0 and HasLeader false while an election goes on.
	Leader    zxid.ServerID
	HasLeader bool
	// Epoch is the current epoch as it is durable, Accepted the accepted one.
	Epoch, Accepted zxid.Epoch
	// Serving tells that clients may be served: as the leader, or as a learner that is level.
	Serving bool
	// Generation grows with each change of the role.
	Generation uint32
	// LastDurable, LastProposed and LastCommitted are ends of the history. LastProposed is the last in the log.
	LastDurable, LastProposed, LastCommitted zxid.Zxid
	// SyncedFollowers, SyncedObservers and Learners count a leader's connections.
	SyncedFollowers, SyncedObservers, Learners int
	// ElectionMs is how long the last election took.
	ElectionMs int64
}

// Node is the state of one server's part in the broadcast.
type Node struct {
	// step is the behaviour of the current role. Only the become methods set it.
	step       func(Input)
	generation uint32

	lastProposed  zxid.Zxid
	lastCommitted zxid.Zxid
	lastToken     Token
	// outstanding holds proposals that are not yet durable, in order; marks says up to which index each token reaches.
	outstanding []Entry
	marks       []mark
	// proposed entries that no persist operation covers yet.
	fresh []Entry

	committed []Entry
	persist   [1]PersistOp
}

// mark ties a persist token to the last zxid that it makes durable.
type mark struct {
	token Token
	last  zxid.Zxid
}

// NewFixedEpoch returns the Node of a standalone server.
func NewFixedEpoch(cfg Config) *Node {
	n := &Node{lastProposed: cfg.LastZxid, lastCommitted: cfg.LastZxid}
	n.becomeFixedEpoch()
	return n
}

func (n *Node) becomeFixedEpoch() {
	n.generation++
	n.step = n.stepFixedEpoch
}

// Step feeds one input.
func (n *Node) Step(in Input) { n.step(in) }

// Propose orders entries. Their zxids must be those that NextZxid told, one after the other.
func (n *Node) Propose(entries ...Entry) { n.step(Input{Kind: InputPropose, Entries: entries}) }

// Persisted confirms all persist operations of the current role up to tok.
func (n *Node) Persisted(tok Token) {
	n.step(Input{Kind: InputPersisted, Token: tok, Generation: n.generation})
}

// LastCommitted returns the zxid of the newest committed transaction.
func (n *Node) LastCommitted() zxid.Zxid { return n.lastCommitted }

// Outstanding returns how many proposals are not committed.
func (n *Node) Outstanding() int { return len(n.outstanding) + len(n.fresh) }

// NextZxid returns the id of the next proposal. When the counter of an epoch is used up, a fixed-epoch server goes on in
// the next epoch at counter 1: counters 0 and 0xffffffff are never those of a transaction.
func (n *Node) NextZxid() zxid.Zxid {
	if n.lastProposed.Counter() >= zxid.CounterMax {
		return zxid.Make(n.lastProposed.Epoch()+1, zxid.CounterMin)
	}
	return n.lastProposed + 1
}

func (n *Node) stepFixedEpoch(in Input) {
	switch in.Kind {
	case InputPropose:
		n.handlePropose(in.Entries)
	case InputPersisted:
		if in.Generation == n.generation {
			n.handlePersisted(in.Token)
		}
	default:
		panic(fmt.Sprintf("zab: unknown input kind %d", in.Kind))
	}
}

func (n *Node) handlePropose(entries []Entry) {
	for _, e := range entries {
		if want := n.NextZxid(); e.Zxid != want {
			panic(fmt.Sprintf("zab: proposal %v is not the next one after %v", e.Zxid, n.lastProposed))
		}
		n.lastProposed = e.Zxid
		n.fresh = append(n.fresh, e)
	}
}

// handlePersisted commits what a quorum of one has on its disk.
func (n *Node) handlePersisted(tok Token) {
	if tok > n.lastToken {
		panic(fmt.Sprintf("zab: token %d confirmed, but only %d were handed out", tok, n.lastToken))
	}
	covered := 0
	for covered < len(n.marks) && n.marks[covered].token <= tok {
		covered++
	}
	if covered == 0 {
		return
	}
	last := n.marks[covered-1].last
	n.marks = append(n.marks[:0], n.marks[covered:]...)
	i := 0
	for i < len(n.outstanding) && n.outstanding[i].Zxid <= last {
		i++
	}
	n.committed = append(n.committed, n.outstanding[:i]...)
	rest := copy(n.outstanding, n.outstanding[i:])
	clear(n.outstanding[rest:])
	n.outstanding = n.outstanding[:rest]
	n.lastCommitted = last
}

// Ready returns what is to be done and forgets it. All proposals since the last call become one append: they reach the
// disk with one write and one sync.
func (n *Node) Ready() Ready {
	var rd Ready
	if len(n.fresh) > 0 {
		n.lastToken++
		n.persist[0] = PersistOp{Kind: PersistAppend, Token: n.lastToken, Generation: n.generation, Entries: n.fresh}
		rd.Persist = n.persist[:]
		n.marks = append(n.marks, mark{token: n.lastToken, last: n.lastProposed})
		n.outstanding = append(n.outstanding, n.fresh...)
		// The operation owns its slice: the disk goroutine reads it while the next proposals come in.
		n.fresh = nil
	}
	if len(n.committed) > 0 {
		rd.Committed = n.committed
		n.committed = nil
	}
	return rd
}
