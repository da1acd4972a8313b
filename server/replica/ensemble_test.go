package replica

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab"
	"zabra/zab/ensemble" //lint:allow import tests make memberships, the code is given one
	"zabra/zab/zxid"
	"zabra/znode"
)

// flock is an ensemble of replicas in one goroutine: network, disks and clock are moved by hand. The core is the real one.
type flock struct {
	t     testing.TB
	cfg   *ensemble.Config
	now   Now
	hosts map[zxid.ServerID]*host
	ids   []zxid.ServerID
	links map[zab.ConnID]*link // both ends have the same number
	next  zab.ConnID
	sent  map[zab.MessageKind]int
	// snaps counts states that replaced others.
	snaps int
}

// host is one server with its disk.
type host struct {
	f        *flock
	id       zxid.ServerID
	w        *world
	up       bool
	awake    bool
	holdDisk bool
	log      []zab.Entry
	accepted zxid.Epoch
	current  zxid.Epoch
	ops      []zab.PersistOp
	notes    []zab.Message
	history  []zab.HistoryRequest
	conn     zab.ConnID // to the leader
}

// link is a connection between a learner and its leader. A direction that is held delivers nothing.
type link struct {
	learner, leader         zxid.ServerID
	toLeader, toLearner     []zab.Message
	holdLeader, holdLearner bool
	// hold keeps messages of some kinds, and what is behind them, from the learner.
	hold func(*zab.Message) bool
}

const (
	testTickMs  = 500
	testVoters  = 3
	testLimitMs = 10 * testTickMs
)

func newFlock(t testing.TB, observers int) *flock {
	var members []ensemble.Member
	for i := range testVoters + observers {
		members = append(members, ensemble.Member{ID: zxid.ServerID(i + 1), Observer: i >= testVoters,
			Addresses: []ensemble.Address{{Host: fmt.Sprintf("h%d", i+1), QuorumPort: 2888, ElectionPort: 3888}}})
	}
	cfg, err := ensemble.New(members, 0)
	require.NoError(t, err)
	f := &flock{t: t, cfg: cfg, now: Now{MonoMs: 1_000_000, WallMs: 1_700_000_000_000}, hosts: map[zxid.ServerID]*host{},
		links: map[zab.ConnID]*link{}, sent: map[zab.MessageKind]int{}}
	for _, m := range cfg.Members() {
		f.ids = append(f.ids, m.ID)
		f.hosts[m.ID] = &host{f: f, id: m.ID}
	}
	for _, id := range f.ids {
		f.start(id)
	}
	f.elect()
	return f
}

// OpenLog makes the durable log a source for recovery.
func (h *host) SessionMark() zxid.SessionID { return 0 }

func (h *host) OpenLog(after zxid.Zxid) (zab.LogReader, error) {
	i := slices.IndexFunc(h.log, func(e zab.Entry) bool { return e.Zxid > after })
	if i < 0 {
		i = len(h.log)
	}
	return &memoryLog{h.log[i:]}, nil
}
func (h *host) Snapshots() ([]zab.SnapshotFile, error) { return nil, nil }
func (h *host) OpenSnapshot(zab.SnapshotFile) (io.ReadCloser, error) {
	return nil, io.ErrUnexpectedEOF
}

type memoryLog struct{ entries []zab.Entry }

func (l *memoryLog) Next() (zab.Entry, error) {
	if len(l.entries) == 0 {
		return zab.Entry{}, io.EOF
	}
	e := l.entries[0]
	l.entries = l.entries[1:]
	return e, nil
}
func (l *memoryLog) Close() error { return nil }

func (h *host) config() Config {
	cfg := testConfig(h.f.t)
	cfg.ServerByte = byte(h.id)
	cfg.TickMs = testTickMs
	cfg.Ensemble = &zab.Config{Ensemble: h.f.cfg, ID: h.id, AcceptedEpoch: h.accepted, CurrentEpoch: h.current,
		TickMs: testTickMs, InitLimitMs: testLimitMs, SyncLimitMs: testLimitMs}
	cfg.Wake = func() { h.awake = true }
	return cfg
}

func (h *host) recover() *Recovered {
	rec, err := Recover(h, h.config())
	require.NoError(h.f.t, err)
	require.Zero(h.f.t, rec.DigestMismatches)
	return rec
}

// start starts a server with what its disk holds.
func (f *flock) start(id zxid.ServerID) {
	h := f.hosts[id]
	f.pass(1)
	h.up, h.ops, h.notes, h.conn, h.history = true, nil, nil, 0, nil
	h.w = &world{t: f.t, now: f.now, flushed: map[*Conn]int{}, rest: f.settle}
	h.w.r = New(h.config(), h.recover(), f.now)
	f.step(h)
	for _, o := range f.ids {
		if o != id && f.hosts[o].up {
			f.step(h, zab.Input{Kind: zab.InputLinkUp, Peer: o})
			f.step(f.hosts[o], zab.Input{Kind: zab.InputLinkUp, Peer: id})
		}
	}
}

// kill ends a server at once. What is durable stays.
func (f *flock) kill(id zxid.ServerID) {
	h := f.hosts[id]
	h.up = false
	for _, n := range f.linkIDs() {
		if l := f.links[n]; l != nil && (l.learner == id || l.leader == id) {
			f.disconnect(n)
		}
	}
	for _, o := range f.ids {
		if o := f.hosts[o]; o.id != id && o.up {
			o.notes = slices.DeleteFunc(o.notes, func(m zab.Message) bool { return m.From == id })
			f.step(o, zab.Input{Kind: zab.InputLinkDown, Peer: id})
		}
	}
}

func (f *flock) linkIDs() (ids []zab.ConnID) {
	for n := range f.links {
		ids = append(ids, n)
	}
	slices.Sort(ids)
	return ids
}

func (f *flock) disconnect(n zab.ConnID) {
	l := f.links[n]
	if l == nil {
		return
	}
	delete(f.links, n)
	for _, id := range []zxid.ServerID{l.learner, l.leader} {
		if h := f.hosts[id]; h.up {
			if h.conn == n {
				h.conn = 0
			}
			f.step(h, zab.Input{Kind: zab.InputDisconnected, Conn: n})
		}
	}
}

// step steps one server and takes what it wants done.
func (f *flock) step(h *host, inputs ...zab.Input) {
	h.awake = false
	h.w.now = f.now
	rd := h.w.r.Step(f.now, inputs)
	h.ops = append(h.ops, rd.Persist...)
	h.history = append(h.history, rd.History...)
	for _, c := range rd.Flush {
		h.w.flushed[c]++
	}
	h.w.audit = append(h.w.audit, rd.Audit...)
	for _, m := range rd.Send {
		f.sent[m.Kind]++
		if m.Kind == zab.MessageNotification {
			if o := f.hosts[m.To]; o.up {
				o.notes = append(o.notes, m)
			}
			continue
		}
		l := f.links[m.Conn]
		switch {
		case l == nil:
		case l.learner == h.id:
			l.toLeader = append(l.toLeader, m)
		default:
			l.toLearner = append(l.toLearner, m)
		}
	}
	for _, g := range rd.Hangup {
		f.disconnect(g.Conn)
	}
}

// perform does the oldest operation of a server's disk.
func (f *flock) perform(h *host) {
	op := h.ops[0]
	h.ops = h.ops[1:]
	reload := false
	switch op.Kind {
	case zab.PersistAppend:
		h.log = append(h.log, op.Entries...)
	case zab.PersistTruncate:
		i := slices.IndexFunc(h.log, func(e zab.Entry) bool { return e.Zxid > op.Zxid })
		if i >= 0 {
			h.log = h.log[:i]
		}
		reload = op.Reload
	case zab.PersistSetAccepted:
		h.accepted = op.Epoch
	case zab.PersistSetCurrent:
		h.current = op.Epoch
	case zab.PersistInstallSnapshot:
		reload = true // the transfer has put the log of the leader here
	}
	if reload {
		f.snaps++
		h.w.r.Restore(h.recover())
	}
	f.step(h, zab.Input{Kind: zab.InputPersisted, Token: op.Token})
}

// tell answers a request for history: all of it, or a snapshot, which is the log up to there.
func (f *flock) tell(h *host) {
	q := h.history[0]
	h.history = h.history[1:]
	a := zab.History{Conn: q.Conn, After: q.After}
	if q.SnapshotOnly || q.After == 0 && !q.LogOnly {
		st := h.w.r.core.Status()
		a.Snapshot = &zab.SnapshotFile{Zxid: min(st.LastCommitted, st.LastDurable)}
	} else {
		for _, e := range h.log {
			if e.Zxid <= q.After {
				a.Prev = e.Zxid
			} else {
				e.Origin = zab.Origin{} // is not on disk
				a.Entries = append(a.Entries, e)
			}
		}
	}
	f.step(h, zab.Input{Kind: zab.InputHistory, History: &a})
}

// act does one thing that is due; false if nothing is.
func (f *flock) act() bool {
	for _, id := range f.ids {
		if h := f.hosts[id]; h.up && f.actHost(h) {
			return true
		}
	}
	for _, n := range f.linkIDs() {
		if f.actLink(n, f.links[n]) {
			return true
		}
	}
	return false
}

func (f *flock) actHost(h *host) bool {
	st := h.w.r.core.Status()
	switch {
	case h.awake:
		f.step(h)
	case len(h.notes) > 0:
		m := h.notes[0]
		h.notes = h.notes[1:]
		f.step(h, zab.Input{Kind: zab.InputMessage, Message: &m})
	case len(h.ops) > 0 && !h.holdDisk:
		f.perform(h)
	case len(h.history) > 0:
		f.tell(h)
	case (st.Role == zab.RoleFollowing || st.Role == zab.RoleObserving) && h.conn == 0:
		l := f.hosts[st.Leader]
		if !l.up || l.w.r.core.Status().Role != zab.RoleLeading {
			return false
		}
		f.next++
		n := f.next
		f.links[n] = &link{learner: h.id, leader: l.id}
		h.conn = n
		f.step(l, zab.Input{Kind: zab.InputConnected, Peer: h.id, Conn: n})
		if f.links[n] != nil {
			f.step(h, zab.Input{Kind: zab.InputConnected, Peer: l.id, Conn: n})
		}
	default:
		return false
	}
	return true
}

func (f *flock) actLink(n zab.ConnID, l *link) bool {
	if len(l.toLeader) > 0 && !l.holdLeader {
		m := l.toLeader[0]
		l.toLeader = l.toLeader[1:]
		m.Conn = n
		f.step(f.hosts[l.leader], zab.Input{Kind: zab.InputMessage, Message: &m})
		return true
	}
	if len(l.toLearner) == 0 || l.holdLearner || l.hold != nil && l.hold(&l.toLearner[0]) {
		return false
	}
	m := l.toLearner[0]
	l.toLearner = l.toLearner[1:]
	m.Conn = n
	h := f.hosts[l.learner]
	f.step(h, zab.Input{Kind: zab.InputMessage, Message: &m})
	if m.Kind == zab.MessageSnap && h.conn == n {
		h.log = nil
		for _, e := range f.hosts[l.leader].log {
			if e.Zxid <= m.Snapshot.Zxid {
				h.log = append(h.log, e)
			}
		}
		f.step(h, zab.Input{Kind: zab.InputSnapshot, Conn: n})
	}
	return true
}

// settle lets everything happen that needs no time.
func (f *flock) settle() {
	f.t.Helper()
	for i := 0; f.act(); i++ {
		if i > 1_000_000 {
			f.t.Fatal("the ensemble does not come to rest")
		}
	}
}

// pass moves the clock and lets everybody notice.
func (f *flock) pass(ms int64) {
	f.now.MonoMs += ms
	f.now.WallMs += ms
	for _, id := range f.ids {
		if h := f.hosts[id]; h.up {
			f.step(h)
		}
	}
}

// wait lets time pass in steps short enough for pings and expiry.
func (f *flock) wait(ms int64) {
	for ; ms > 0; ms -= testTickMs / 5 {
		f.pass(testTickMs / 5)
		f.settle()
	}
}

// elect waits until everybody who is up serves.
func (f *flock) elect() {
	f.t.Helper()
	for i := 0; ; i++ {
		f.settle()
		all := true
		for _, id := range f.ids {
			h := f.hosts[id]
			all = all && (!h.up || h.w.r.Serving())
		}
		if all {
			return
		}
		if i > 2000 {
			for _, id := range f.ids {
				f.t.Logf("%d up=%v %+v", id, f.hosts[id].up, f.hosts[id].w.r.core.Status())
			}
			f.t.Fatal("the ensemble does not come to serve")
		}
		f.pass(10)
	}
}

func (f *flock) leader() *host {
	f.t.Helper()
	for _, id := range f.ids {
		if h := f.hosts[id]; h.up && h.w.r.core.Status().Role == zab.RoleLeading && h.w.r.Serving() {
			return h
		}
	}
	f.t.Fatal("there is no leader")
	return nil
}

// learners are the servers that follow, by id.
func (f *flock) learners() (list []*host) {
	for _, id := range f.ids {
		if h := f.hosts[id]; h.up && h.conn != 0 {
			list = append(list, h)
		}
	}
	return list
}

func (h *host) link() *link { return h.f.links[h.conn] }

func (h *host) connect() *client { return h.w.connect() }

// reattach begins to take a session up at this server; nothing is awaited.
func (h *host) reattach(cl *client) *client {
	again := h.w.open()
	again.id, again.pw = cl.id, cl.pw
	again.greet(cl.id, cl.pw)
	return again
}

func (cl *client) greet(id zxid.SessionID, pw []byte) {
	req := wire.ConnectRequest{TimeoutMs: 5000, SessionID: id, Password: pw, HasReadOnly: true}
	v, err := cl.c.Receive(encode(&req), cl.w.now)
	require.NoError(cl.w.t, err)
	require.Equal(cl.w.t, Wait, v)
}

// ended tells whether the connection ends without anything more to write.
func (cl *client) ended() bool {
	out, fin := cl.c.Output(nil)
	return fin && len(out) == 0 && len(cl.buf) == 0
}

// checkEqual compares all servers that are up: applied transactions, digest, sessions, no orphan, nothing left over.
func (f *flock) checkEqual() {
	f.t.Helper()
	want := f.leader().w.r
	for _, id := range f.ids {
		h := f.hosts[id]
		if !h.up {
			continue
		}
		r := h.w.r
		require.NoError(f.t, r.Tree().Check())
		require.Equal(f.t, want.Tree().LastZxid(), r.Tree().LastZxid(), "server %d", id)
		require.Equal(f.t, want.Tree().Digest(), r.Tree().Digest(), "server %d", id)
		require.Equal(f.t, sessionsOf(want.Tree()), sessionsOf(r.Tree()), "server %d", id)
		require.Empty(f.t, r.Tree().Orphans())
		require.Zero(f.t, r.Stats().DigestMismatches)
		require.Zero(f.t, r.outstanding.Load(), "server %d", id)
		require.Zero(f.t, r.queuedBytes.Load(), "server %d", id)
		require.Zero(f.t, r.proposed.Load(), "server %d", id)
		require.Zero(f.t, r.proposedBytes.Load(), "server %d", id)
	}
}

func sessionsOf(tree *znode.Tree) map[zxid.SessionID]int32 {
	m := map[zxid.SessionID]int32{}
	tree.VisitSessions(func(s zxid.SessionID, ms int32) bool {
		m[s] = ms
		return true
	})
	return m
}
