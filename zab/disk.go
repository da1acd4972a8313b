package zab

import (
	"fmt"

	"zabra/zab/zxid"
)

// disk is what the core knows of this server's disk: what is durable, what was handed out, what waits for it.
type disk struct {
	lastToken, confirmed Token
	// durable, accepted and current are what a crash leaves.
	durable           zxid.Zxid
	accepted, current zxid.Epoch
	// handed is the end of the log as the operations handed out will make it.
	handed zxid.Zxid
	ops    []PersistOp
	marks  []mark
	// held are messages that promise something about this disk. They belong to the present role.
	held []heldMessage
	// restoring counts operations in flight after which the state is loaded anew.
	restoring int
	restored  []zxid.Zxid
	spare     []PersistOp
	nowMs     int64
}

// mark is what an operation makes true once its token is confirmed.
type mark struct {
	token Token
	kind  PersistKind
	zxid  zxid.Zxid
	epoch zxid.Epoch
	load  bool
	atMs  int64
}

// heldMessage may leave when a token is confirmed.
type heldMessage struct {
	after   Token
	message Message
}

func (d *disk) init(last zxid.Zxid, accepted, current zxid.Epoch) {
	d.durable, d.handed, d.accepted, d.current = last, last, accepted, current
}

// idle reports whether everything handed out is durable.
func (d *disk) idle() bool { return d.confirmed == d.lastToken }

// waitsSinceMs is when the oldest operation in flight was handed out; false if there is none.
func (d *disk) waitsSinceMs() (int64, bool) {
	if len(d.marks) == 0 {
		return 0, false
	}
	return d.marks[0].atMs, true
}

func (d *disk) add(op PersistOp, m mark) Token {
	d.lastToken++
	op.Token, m.token, m.kind, m.atMs = d.lastToken, d.lastToken, op.Kind, d.nowMs
	d.ops = append(d.ops, op)
	d.marks = append(d.marks, m)
	return d.lastToken
}

func (d *disk) append(entries []Entry) {
	last := entries[len(entries)-1].Zxid
	d.handed = last
	d.add(PersistOp{Kind: PersistAppend, Entries: entries}, mark{zxid: last})
}

func (d *disk) setAccepted(e zxid.Epoch) Token {
	return d.add(PersistOp{Kind: PersistSetAccepted, Epoch: e}, mark{epoch: e})
}

func (d *disk) setCurrent(e zxid.Epoch) Token {
	return d.add(PersistOp{Kind: PersistSetCurrent, Epoch: e}, mark{epoch: e})
}

// truncate is durable knowledge at once in one direction: what is behind z does not count any more.
func (d *disk) truncate(z zxid.Zxid, reload bool) {
	d.handed = z
	d.durable = min(d.durable, z)
	if reload {
		d.restoring++
	}
	d.add(PersistOp{Kind: PersistTruncate, Zxid: z, Reload: reload}, mark{zxid: z, load: reload})
}

func (d *disk) install(z zxid.Zxid) {
	d.handed = z
	d.durable = min(d.durable, z)
	d.restoring++
	d.add(PersistOp{Kind: PersistInstallSnapshot, Zxid: z}, mark{zxid: z, load: true})
}

// hold keeps a message until all that was handed out so far is durable.
func (d *disk) hold(m Message) { d.held = append(d.held, heldMessage{d.lastToken, m}) }

// takeOps hands the operations out. The slice is the caller's until the call after the next.
func (d *disk) takeOps() []PersistOp {
	if len(d.ops) == 0 {
		return nil
	}
	ops := d.ops
	d.ops, d.spare = d.spare[:0], ops
	return ops
}

// persisted notes that all operations up to tok are durable. It reports whether that is news.
func (d *disk) persisted(tok Token) bool {
	if tok > d.lastToken {
		panic(fmt.Sprintf("zab: token %d confirmed, but only %d were handed out", tok, d.lastToken))
	}
	if tok <= d.confirmed {
		return false
	}
	d.confirmed = tok
	i := 0
	for ; i < len(d.marks) && d.marks[i].token <= tok; i++ {
		d.settle(&d.marks[i])
	}
	d.marks = append(d.marks[:0], d.marks[i:]...)
	return true
}

func (d *disk) settle(m *mark) {
	switch m.kind {
	case PersistAppend, PersistTruncate, PersistInstallSnapshot:
		d.durable = m.zxid
	case PersistSetAccepted:
		d.accepted = m.epoch
	case PersistSetCurrent:
		d.current = m.epoch
	}
	if m.load {
		d.restoring--
		d.restored = append(d.restored, m.zxid)
	}
}

// afterPersist does what waited for the disk in every role: it tells of a state that was loaded anew, and lets messages
// go that were held.
func (n *Node) afterPersist() {
	for _, z := range n.disk.restored {
		n.out.Restored, n.out.Committed = &SnapshotFile{Zxid: z}, nil
		n.applied = z
	}
	n.disk.restored = n.disk.restored[:0]
	i := 0
	for ; i < len(n.disk.held) && n.disk.held[i].after <= n.disk.confirmed; i++ {
		n.send(n.disk.held[i].message)
	}
	n.disk.held = append(n.disk.held[:0], n.disk.held[i:]...)
}
