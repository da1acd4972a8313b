package replica

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab"
	"zabra/znode"
)

const (
	// stageTargets is how many nodes the requests are about: the same few everywhere, so that the caches hold them.
	stageTargets   = 8
	stageDataBytes = 100
	// stageTimeoutMs is far longer than the ticks of a test take. Sessions of a crowd have up to twice as much.
	stageTimeoutMs = 1_000_000
	// watchersOfCrowd is how many connections set the watches of a crowd, pathWatchers how many of them one path has that
	// is watched by several.
	watchersOfCrowd = 100
	pathWatchers    = 50
	// siblingsMax is how many children a node gets where the number of all nodes counts.
	siblingsMax = 1000
)

// crowd is what a server may have many of.
type crowd struct {
	name      string
	few, many int
	// grow makes n of them in the tree, before there is a server; gather makes n of them by means of the server.
	grow   func(s *stage, n int)
	gather func(s *stage, n int)
}

var crowds = []crowd{
	{name: "sessions", few: 10, many: sessionsMany, gather: (*stage).gatherSessions},
	{name: "watches", few: 0, many: watchesMany, gather: (*stage).gatherWatches},
	{name: "children", few: 10, many: childrenMany, grow: (*stage).growChildren},
	{name: "znodes", few: 1000, many: znodesMany, grow: (*stage).growZnodes},
}

// stage is a server beside a crowd, and a client that sends the requests that are measured.
type stage struct {
	t    testing.TB
	w    *world
	cl   *client
	tree *znode.Tree

	// The transactions that grow the tree.
	h   znode.TxnHeader
	res znode.Result

	// place is where nodes are created and deleted; targets are nodes that exist. Both are in the crowd if it is one of nodes.
	place   string
	targets []string
	next    int // target

	get, exists, watch, set [][]byte // requests, by target
	list, ping, create      []byte
	remove, sequential      []byte
	spare                   []byte
	deleteEncoder           jute.Encoder
}

// newStage makes a server with a crowd of n.
func newStage(t testing.TB, c crowd, n int) *stage {
	auth, err := znode.NewAuth(znode.AuthConfig{})
	require.NoError(t, err)
	s := &stage{t: t, tree: znode.NewTree(znode.Config{ExtendedTypes: true, Auth: auth}), place: "/busy"}
	s.grown("/busy")
	for i := range stageTargets {
		s.targets = append(s.targets, fmt.Sprintf("/busy/target-%d", i))
		s.grown(s.targets[i])
	}
	s.grown("/small")
	for i := range 10 {
		s.grown(fmt.Sprintf("/small/child-%d", i))
	}
	if c.grow != nil {
		c.grow(s, n)
	}
	cfg := testConfig(t)
	cfg.Tree, cfg.MaxSessionTimeoutMs = znode.Config{ExtendedTypes: true, Auth: auth}, 2*stageTimeoutMs
	s.w = &world{t: t, now: Now{MonoMs: 1_000_000, WallMs: 1_700_000_000_000}, rest: s.settle}
	s.w.r = New(cfg, &Recovered{Tree: s.tree, LastZxid: s.tree.LastZxid()}, s.w.now)
	if c.gather != nil {
		c.gather(s, n)
	}
	s.cl = s.w.connectFor(stageTimeoutMs)
	s.prepare()
	return s
}

// grown creates a node before there is a server.
func (s *stage) grown(path string) {
	s.h.Zxid++
	s.h.Time, s.h.Type = 1_700_000_000_000, wire.OpCreate
	txn := znode.Txn{Type: wire.OpCreate, Path: []byte(path), Data: make([]byte, stageDataBytes), ACL: wire.OpenACL, ParentCVersion: -1}
	s.tree.Apply(&s.h, &txn, &s.res)
	if s.res.Code != wire.CodeOK {
		s.t.Fatal(path, s.res.Code)
	}
}

func (s *stage) growChildren(n int) {
	s.place = "/crowd"
	s.grown(s.place)
	for i := range n {
		s.grown(fmt.Sprintf("/crowd/n%09d", i))
	}
	for i := range s.targets {
		s.targets[i] = fmt.Sprintf("/crowd/n%09d", i*n/stageTargets)
	}
}

func (s *stage) growZnodes(n int) {
	name := func(i int) string { return fmt.Sprintf("/parent-%06d/n%09d", i/siblingsMax, i) }
	for i := range n {
		if i%siblingsMax == 0 {
			s.grown(fmt.Sprintf("/parent-%06d", i/siblingsMax))
			continue
		}
		s.grown(name(i))
	}
	s.place = fmt.Sprintf("/parent-%06d", n/siblingsMax/2)
	for i := range s.targets {
		s.targets[i] = name(i*(n/stageTargets) + 1)
	}
}

// gatherSessions opens n sessions with timeouts of all lengths, each with an ephemeral node.
func (s *stage) gatherSessions(n int) {
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = s.w.open()
		timeout := stageTimeoutMs + int32(i*7919%stageTimeoutMs)
		_, err := clients[i].c.Receive(encode(&wire.ConnectRequest{TimeoutMs: timeout, Password: make([]byte, 16)}), s.w.now)
		require.NoError(s.t, err)
	}
	s.settle()
	for i, cl := range clients {
		cl.c.Output(nil)
		cl.sendXid(1, wire.OpCreate, &wire.CreateRequest{Path: fmt.Appendf(nil, "/e%09d", i), ACL: wire.OpenACL, Flags: wire.FlagEphemeral})
	}
	s.settle()
	for _, cl := range clients {
		out, _ := cl.c.Output(nil)
		s.requireOK(out)
	}
}

// gatherWatches sets n watches of all kinds, and one that reaches below its path in any case: whether there is any is known
// without a look.
func (s *stage) gatherWatches(n int) {
	var watchers [watchersOfCrowd]*client
	for i := range watchers {
		watchers[i] = s.w.connectFor(stageTimeoutMs)
	}
	watches := s.tree.Watches()
	watches.AddWatch(watchers[0].c.watcher, []byte("/elsewhere"), true)
	var path []byte
	for i := range n {
		watcher := watchers[i%watchersOfCrowd].c.watcher
		switch i % 4 {
		case 0:
			path = fmt.Appendf(path[:0], "/elsewhere/n%09d", i)
			watches.Add(watcher, znode.TableData, path, znode.WatchStandard)
		case 1:
			path = fmt.Appendf(path[:0], "/elsewhere/n%09d", i)
			watches.Add(watcher, znode.TableChild, path, znode.WatchStandard)
		case 2:
			path = fmt.Appendf(path[:0], "/elsewhere/shared-%09d", i/(pathWatchers*4))
			watches.Add(watcher, znode.TableData, path, znode.WatchPersistent)
		default:
			path = fmt.Appendf(path[:0], "/elsewhere/r%09d", i)
			watches.Add(watcher, znode.TableData, path, znode.WatchRecursive)
		}
	}
}

// prepare encodes the requests.
func (s *stage) prepare() {
	request := func(op wire.Op, r wire.Record) []byte {
		var e jute.Encoder
		(&wire.RequestHeader{Xid: 7, Op: op}).Encode(&e)
		if r != nil {
			r.Encode(&e)
		}
		return e.Bytes()
	}
	data := make([]byte, stageDataBytes)
	for _, path := range s.targets {
		p := []byte(path)
		s.get = append(s.get, request(wire.OpGetData, &wire.PathWatchRequest{Path: p}))
		s.exists = append(s.exists, request(wire.OpExists, &wire.PathWatchRequest{Path: p}))
		s.watch = append(s.watch, request(wire.OpGetData, &wire.PathWatchRequest{Path: p, Watch: true}))
		s.set = append(s.set, request(wire.OpSetData, &wire.SetDataRequest{Path: p, Data: data, Version: -1}))
	}
	create := wire.CreateRequest{Path: []byte(s.place + "/created-"), Data: data, ACL: wire.OpenACL}
	s.create = request(wire.OpCreate, &create)
	s.remove = request(wire.OpDelete, &wire.PathVersionRequest{Path: create.Path, Version: -1})
	create.Flags = wire.FlagSequential
	s.sequential = request(wire.OpCreate, &create)
	s.list = request(wire.OpGetChildren, &wire.PathWatchRequest{Path: []byte("/small")})
	s.ping = request(wire.OpPing, nil)
}

// measured is a request, or two of which the second undoes the first.
type measured struct {
	name string
	do   func(*stage)
}

// measuredRequests leave the tree as it was, but for versions.
var measuredRequests = []measured{
	{"getData", func(s *stage) { s.answered(s.get[s.target()], 1) }},
	{"exists", func(s *stage) { s.answered(s.exists[s.target()], 1) }},
	{"getChildren", func(s *stage) { s.answered(s.list, 1) }},
	{"ping", func(s *stage) { s.answered(s.ping, 1) }},
	{"setData", func(s *stage) { s.answered(s.set[s.target()], 1) }},
	{"create+delete", func(s *stage) { s.answered(s.create, 1); s.answered(s.remove, 1) }},
	{"sequential+delete", (*stage).createSequential},
	{"watch+event", (*stage).watchAndFire},
	{"open+close", (*stage).openAndClose},
}

// target chooses the next one.
func (s *stage) target() int {
	s.next = (s.next + 1) % stageTargets
	return s.next
}

// answered sends a request and returns the last of the frames that come back, whose number is given.
func (s *stage) answered(frame []byte, frames int) (body []byte) {
	if v, err := s.cl.c.Receive(frame, s.w.now); v != Continue || err != nil {
		s.t.Fatal(v, err)
	}
	if !s.w.r.Idle() {
		s.settle()
	}
	s.spare, _ = s.cl.c.Output(s.spare)
	out, came := s.spare, 0
	for ; len(out) > 0; came++ {
		body, out = s.requireOK(out)
	}
	if came != frames {
		s.t.Fatalf("%d frames came instead of %d", came, frames)
	}
	return body
}

// requireOK takes a frame off what a client was sent.
func (s *stage) requireOK(out []byte) (body, rest []byte) {
	const headBytes = 4 + 16
	if len(out) < headBytes {
		s.t.Fatalf("no frame: %x", out)
	}
	end := 4 + binary.BigEndian.Uint32(out)
	if code := wire.Code(binary.BigEndian.Uint32(out[headBytes-4:])); code != wire.CodeOK {
		s.t.Fatal(code)
	}
	return out[headBytes:end], out[end:]
}

// settle steps until everything is answered.
func (s *stage) settle() {
	var written zab.Token
	for range 100 {
		rd := s.w.r.Step(s.w.now, confirmed(written))
		if len(rd.Persist) == 0 && s.w.r.Idle() {
			return
		}
		for i := range rd.Persist {
			written = rd.Persist[i].Token
		}
	}
	s.t.Fatal("the replica does not come to rest")
}

func (s *stage) createSequential() {
	body := s.answered(s.sequential, 1)
	e := &s.deleteEncoder
	e.Reset(e.Bytes()[:0])
	(&wire.RequestHeader{Xid: 8, Op: wire.OpDelete}).Encode(e)
	e.Buffer(body[4:])
	e.Int32(-1)
	s.answered(e.Bytes(), 1)
}

// watchAndFire sets a watch, and changes the node: an event comes before the answer.
func (s *stage) watchAndFire() {
	i := s.target()
	s.answered(s.watch[i], 1)
	s.answered(s.set[i], 2)
}

func (s *stage) openAndClose() {
	cl := s.w.connectFor(stageTimeoutMs)
	cl.sendXid(1, wire.OpCloseSession, nil)
	s.settle()
	cl.c.Closed()
	s.settle()
	if s.w.r.tracker.Get(cl.id) != nil {
		s.t.Fatal("the session is still there")
	}
}

// tick is a millisecond in which nothing happens.
func (s *stage) tick() {
	s.w.pass(1)
	if rd := s.w.r.Step(s.w.now, nil); len(rd.Persist) > 0 || len(rd.Flush) > 0 {
		s.t.Fatal("something happened")
	}
}

// check requires that the tree is sound and that no session has ended.
func (s *stage) check() {
	require.NoError(s.t, s.w.r.Tree().Check())
	require.Zero(s.t, s.w.r.Stats().DigestMismatches)
	require.Zero(s.t, s.w.r.counters.expired.Load())
}
