package zab

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// cluster runs Nodes against each other in one goroutine: links, disks and clock are those of a test.
type cluster struct {
	t     *testing.T
	cfg   *ensemble.Config
	nowMs int64
	rng   *rand.Rand
	hosts map[zxid.ServerID]*host
	conns map[ConnID]*testConn // by the learner's number; the leader's end has the same
	next  ConnID
	// proposed are all payloads ever proposed, by zxid; committed the longest sequence that some node applied.
	proposed                      map[zxid.Zxid]string
	committed                     []zxid.Zxid
	acked                         map[zxid.Zxid]bool
	diffs, truncs, snaps, leaders int
	cut                           map[[2]zxid.ServerID]bool
}

type testConn struct {
	learner, leader     zxid.ServerID
	toLeader, toLearner []Message
}

// host is a node with its disk and what it applied.
type host struct {
	id       zxid.ServerID
	up       bool
	node     *Node
	log      []Entry // durable
	acc, cur zxid.Epoch
	ops      []PersistOp
	applied  []zxid.Zxid
	restore  *zxid.Zxid
	notes    []Message
	conn     ConnID
	served   bool
	reqs     []HistoryRequest
	// base is the snapshot that the log begins at.
	base zxid.Zxid
}

func newCluster(t *testing.T, n int, seed uint64) *cluster {
	var members []ensemble.Member
	for i := range n {
		members = append(members, ensemble.Member{ID: zxid.ServerID(i + 1)})
	}
	cfg, err := ensemble.New(members, 0)
	require.NoError(t, err)
	c := &cluster{t: t, cfg: cfg, nowMs: 1000, rng: rand.New(rand.NewPCG(seed, 1)), hosts: map[zxid.ServerID]*host{}, conns: map[ConnID]*testConn{},
		proposed: map[zxid.Zxid]string{}, acked: map[zxid.Zxid]bool{}, cut: map[[2]zxid.ServerID]bool{}}
	for i := range n {
		id := zxid.ServerID(i + 1)
		c.hosts[id] = &host{id: id}
	}
	for _, id := range cfg.Voters() {
		c.start(id)
	}
	return c
}

func (c *cluster) start(id zxid.ServerID) {
	h := c.hosts[id]
	h.up, h.ops, h.notes, h.conn, h.reqs = true, nil, nil, 0, nil
	last := h.base
	ends := []zxid.Zxid{h.base}
	h.applied = nil
	for _, e := range h.log {
		last = e.Zxid
		if ends[len(ends)-1].Epoch() == last.Epoch() {
			ends[len(ends)-1] = last
		} else {
			ends = append(ends, last)
		}
		h.applied = append(h.applied, e.Zxid)
	}
	if last.Epoch() > h.cur {
		h.cur = last.Epoch()
	}
	h.node = New(Config{LastZxid: last, Ensemble: c.cfg, ID: id, AcceptedEpoch: h.acc, CurrentEpoch: h.cur, Ends: ends, Floor: h.base,
		TickMs: 200, InitLimitMs: 2000, SyncLimitMs: 1000})
	for _, o := range c.cfg.Voters() {
		if o != id && c.hosts[o].up && !c.cut[[2]zxid.ServerID{id, o}] {
			c.link(id, o, true)
		}
	}
	c.drainReady(h)
}

func (c *cluster) link(a, b zxid.ServerID, up bool) {
	kind := InputLinkDown
	if up {
		kind = InputLinkUp
	}
	for _, p := range [][2]zxid.ServerID{{a, b}, {b, a}} {
		if h := c.hosts[p[0]]; h.up && h.node != nil {
			c.step(h, Input{Kind: kind, Peer: p[1]})
		}
	}
}

func (c *cluster) kill(id zxid.ServerID) {
	h := c.hosts[id]
	h.up = false
	for n, k := range c.conns {
		if k.learner == id || k.leader == id {
			c.closeConn(n)
		}
	}
	for _, o := range c.cfg.Voters() {
		if o != id {
			c.link(o, id, false)
		}
	}
}

func (c *cluster) closeConn(n ConnID) {
	k := c.conns[n]
	if k == nil {
		return
	}
	delete(c.conns, n)
	for _, id := range []zxid.ServerID{k.learner, k.leader} {
		if h := c.hosts[id]; h.up {
			if h.conn == n {
				h.conn = 0
			}
			c.step(h, Input{Kind: InputDisconnected, Conn: n})
		}
	}
}

func (c *cluster) step(h *host, in Input) {
	in.NowMs = c.nowMs
	h.node.Step(in)
	c.drainReady(h)
}

func (c *cluster) drainReady(h *host) {
	rd := h.node.Ready()
	h.ops = append(h.ops, rd.Persist...)
	for _, m := range rd.Send {
		switch m.Kind {
		case MessageDiff:
			c.diffs++
		case MessageTrunc:
			c.truncs++
		case MessageSnap:
			c.snaps++
		}
		if m.Kind == MessageNotification {
			if o := c.hosts[m.To]; o.up && !c.cut[[2]zxid.ServerID{h.id, m.To}] {
				o.notes = append(o.notes, m)
			}
			continue
		}
		k := c.conns[m.Conn]
		if k == nil {
			continue
		}
		if k.learner == h.id {
			k.toLeader = append(k.toLeader, m)
		} else {
			k.toLearner = append(k.toLearner, m)
		}
	}
	if rd.Restored != nil {
		require.Equal(c.t, *h.restore, rd.Restored.Zxid)
		var keep []zxid.Zxid
		for _, e := range h.log {
			keep = append(keep, e.Zxid)
		}
		// What is applied in the state loaded anew is what the disk had at that point.
		for len(keep) > 0 && keep[len(keep)-1] > rd.Restored.Zxid {
			keep = keep[:len(keep)-1]
		}
		h.applied = keep
	}
	for _, e := range rd.Committed {
		h.applied = append(h.applied, e.Zxid)
		require.Equal(c.t, c.proposed[e.Zxid], string(e.Payload))
	}
	for _, m := range rd.Delivered {
		if m.Kind == MessagePing {
			defer c.step(h, Input{Kind: InputSend, Message: &Message{Kind: MessagePong, ID: m.ID}})
		}
	}
	h.reqs = append(h.reqs, rd.History...)
	for _, g := range rd.Hangup {
		defer c.closeConn(g.Conn)
	}
	st := h.node.Status()
	if st.Serving {
		c.checkPrefix(h)
	}
	if st.Serving != h.served {
		h.served = st.Serving
		if st.Serving && st.Role == RoleLeading {
			c.leaders++
		}
	}
}

// checkPrefix compares what a serving host has applied with what anyone has.
func (c *cluster) checkPrefix(h *host) {
	n := min(len(h.applied), len(c.committed))
	if n > 0 {
		require.Equal(c.t, c.committed[:n], h.applied[:n], "server %d", h.id)
	}
	if len(h.applied) > len(c.committed) {
		c.committed = append([]zxid.Zxid(nil), h.applied...)
	}
}

// perform does the oldest operation of a host's disk.
func (c *cluster) perform(h *host) {
	op := h.ops[0]
	h.ops = h.ops[1:]
	switch op.Kind {
	case PersistAppend:
		h.log = append(h.log, op.Entries...)
	case PersistTruncate:
		for len(h.log) > 0 && h.log[len(h.log)-1].Zxid > op.Zxid {
			h.log = h.log[:len(h.log)-1]
		}
		if op.Reload {
			h.restore = &op.Zxid
		}
	case PersistSetAccepted:
		h.acc = op.Epoch
	case PersistSetCurrent:
		h.cur = op.Epoch
	case PersistInstallSnapshot:
		h.restore = &op.Zxid
		h.base = 0 // tests keep whole logs: a snapshot is all of it
	}
	c.step(h, Input{Kind: InputPersisted, Token: op.Token, Generation: op.Generation})
}

// answer answers a request for history from the durable log.
func (c *cluster) answer(h *host) {
	r := h.reqs[0]
	h.reqs = h.reqs[1:]
	a := History{Conn: r.Conn, After: r.After}
	for _, e := range h.log {
		switch {
		case e.Zxid <= r.After:
			a.Prev = e.Zxid
		case len(a.Entries) < 3:
			a.Entries = append(a.Entries, e)
		}
	}
	if r.SnapshotOnly || !r.LogOnly && c.rng.IntN(4) == 0 {
		st := h.node.Status()
		z := min(st.LastCommitted, st.LastDurable)
		if a = (History{Conn: r.Conn, After: r.After}); z >= r.After {
			a.Snapshot = &SnapshotFile{Zxid: z}
		} else {
			a.Err = fmt.Errorf("no snapshot of %v", r.After)
		}
	}
	c.step(h, Input{Kind: InputHistory, History: &a})
}

// act does one thing that is due, chosen at random; false if nothing is.
func (c *cluster) act() bool {
	var acts []func()
	for _, id := range c.cfg.Voters() {
		h := c.hosts[id]
		if !h.up {
			continue
		}
		if len(h.ops) > 0 {
			acts = append(acts, func() { c.perform(h) })
		}
		if len(h.reqs) > 0 {
			acts = append(acts, func() { c.answer(h) })
		}
		if len(h.notes) > 0 {
			acts = append(acts, func() {
				m := h.notes[0]
				h.notes = h.notes[1:]
				c.step(h, Input{Kind: InputMessage, Message: &m})
			})
		}
		st := h.node.Status()
		if (st.Role == RoleFollowing) && h.conn == 0 {
			l := c.hosts[st.Leader]
			if l.up && l.node.Status().Role == RoleLeading && !c.cut[[2]zxid.ServerID{id, l.id}] && !c.cut[[2]zxid.ServerID{l.id, id}] {
				acts = append(acts, func() { c.connect(h, l) })
			}
		}
	}
	for n := ConnID(1); n <= c.next; n++ {
		k := c.conns[n]
		if k == nil {
			continue
		}
		if len(k.toLeader) > 0 {
			acts = append(acts, func() {
				m := k.toLeader[0]
				k.toLeader = k.toLeader[1:]
				c.step(c.hosts[k.leader], Input{Kind: InputMessage, Message: &m})
			})
		}
		if len(k.toLearner) > 0 {
			acts = append(acts, func() { c.toLearner(n, k) })
		}
	}
	if len(acts) == 0 {
		return false
	}
	acts[c.rng.IntN(len(acts))]()
	return true
}

func (c *cluster) connect(h, l *host) {
	c.next++
	c.conns[c.next] = &testConn{learner: h.id, leader: l.id}
	h.conn = c.next
	conn := c.next
	c.step(l, Input{Kind: InputConnected, Peer: h.id, Conn: conn})
	if c.conns[conn] != nil {
		c.step(h, Input{Kind: InputConnected, Peer: l.id, Conn: conn})
	}
}

func (c *cluster) toLearner(n ConnID, k *testConn) {
	m := k.toLearner[0]
	k.toLearner = k.toLearner[1:]
	h := c.hosts[k.learner]
	c.step(h, Input{Kind: InputMessage, Message: &m})
	if m.Kind == MessageSnap && h.conn == n {
		var log []Entry
		for _, e := range c.hosts[k.leader].log {
			if e.Zxid <= m.Snapshot.Zxid {
				log = append(log, e)
			}
		}
		h.log = log // the file is there before it counts; a crash in between is the storage's business
		c.step(h, Input{Kind: InputSnapshot, Conn: n})
	}
}

func (c *cluster) tick(ms int64) {
	c.nowMs += ms
	for _, id := range c.cfg.Voters() {
		if h := c.hosts[id]; h.up {
			c.step(h, Input{Kind: InputTick})
		}
	}
}

// run lets things happen until cond holds.
func (c *cluster) run(what string, cond func() bool) {
	c.t.Helper()
	for i := 0; !cond(); i++ {
		if i > 200000 {
			for _, id := range c.cfg.Voters() {
				c.t.Logf("%d up=%v %+v", id, c.hosts[id].up, c.hosts[id].node.Status())
			}
			c.t.Fatal("never: " + what)
		}
		if !c.act() {
			c.tick(10)
		}
	}
}

func (c *cluster) leader() *host {
	for _, id := range c.cfg.Voters() {
		if h := c.hosts[id]; h.up && h.node.Status().Role == RoleLeading && h.node.Status().Serving {
			return h
		}
	}
	return nil
}

func (c *cluster) allServe() bool {
	last := zxid.Zxid(-1)
	for _, id := range c.cfg.Voters() {
		h := c.hosts[id]
		if !h.up {
			continue
		}
		st := h.node.Status()
		if !st.Serving || len(h.ops) > 0 || h.node.Outstanding() > 0 || last >= 0 && st.LastDurable != last {
			return false
		}
		last = st.LastDurable
	}
	return true
}

func (c *cluster) propose() {
	h := c.leader()
	if h == nil {
		return
	}
	z := h.node.NextZxid()
	p := fmt.Sprintf("%d-%d", h.id, c.rng.Int())
	require.NotContains(c.t, c.proposed, z, "one zxid, two transactions")
	c.proposed[z] = p
	c.step(h, Input{Kind: InputPropose, Entries: []Entry{{Zxid: z, Payload: []byte(p)}}})
}

func TestThreeServersElectAndCommit(t *testing.T) {
	c := newCluster(t, 3, 1)
	c.run("all serve", c.allServe)
	for range 20 {
		c.propose()
	}
	c.run("all level", c.allServe)
	require.Len(t, c.committed, 20)
	old := c.leader()
	c.kill(old.id)
	c.run("a new leader", func() bool { return c.leader() != nil && c.allServe() })
	require.NotEqual(t, old.id, c.leader().id)
	c.propose()
	c.run("level", c.allServe)
	c.start(old.id)
	c.run("all three", c.allServe)
	require.Len(t, c.committed, 21)
}

func TestRandomWorlds(t *testing.T) {
	var diffs, truncs, snaps, leaders int
	for seed := range uint64(200) {
		c := newCluster(t, 3+2*int(seed%2), seed)
		for range 40 {
			for range c.rng.IntN(60) {
				if !c.act() {
					c.tick(10)
				}
				if c.rng.IntN(4) == 0 {
					c.propose()
				}
			}
			c.fault()
		}
		for _, id := range c.cfg.Voters() {
			for _, o := range c.cfg.Voters() {
				if o > id {
					c.heal(id, o)
				}
			}
			if !c.hosts[id].up {
				c.start(id)
			}
		}
		c.run(fmt.Sprintf("seed %d: everybody serves", seed), c.allServe)
		before := len(c.committed)
		c.propose()
		c.run("the last write", c.allServe)
		require.Greater(t, len(c.committed), before)
		diffs, truncs, snaps, leaders = diffs+c.diffs, truncs+c.truncs, snaps+c.snaps, leaders+c.leaders
	}
	t.Logf("%d DIFF, %d TRUNC, %d SNAP, %d leaderships", diffs, truncs, snaps, leaders)
	require.NotZero(t, truncs)
	require.NotZero(t, snaps)
}

func (c *cluster) heal(a, b zxid.ServerID) {
	if c.cut[[2]zxid.ServerID{a, b}] {
		delete(c.cut, [2]zxid.ServerID{a, b})
		delete(c.cut, [2]zxid.ServerID{b, a})
		if c.hosts[a].up && c.hosts[b].up {
			c.link(a, b, true)
		}
	}
}

func (c *cluster) fault() {
	ids := c.cfg.Voters()
	a, b := ids[c.rng.IntN(len(ids))], ids[c.rng.IntN(len(ids))]
	switch c.rng.IntN(6) {
	case 0:
		if c.hosts[a].up {
			c.kill(a)
		}
	case 1, 2:
		if !c.hosts[a].up {
			c.start(a)
		}
	case 3:
		if n := ConnID(c.rng.IntN(int(c.next) + 1)); c.conns[n] != nil {
			c.closeConn(n)
		}
	case 4:
		if a != b && !c.cut[[2]zxid.ServerID{a, b}] {
			c.cut[[2]zxid.ServerID{a, b}], c.cut[[2]zxid.ServerID{b, a}] = true, true
			for n, k := range c.conns {
				if k.learner == a && k.leader == b || k.learner == b && k.leader == a {
					c.closeConn(n)
				}
			}
			c.link(a, b, false)
		}
	case 5:
		c.heal(a, b)
	}
}
