package server_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/server"
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// crashWorld is a disk, what was promised about it, and clients. One seed is one world: several servers' lives on the
// same directory, most of them ended by a crash at some operation on the disk. The server is whole, its goroutines and
// all, but for the sockets: clients hand their frames to the replica, as the readers of sockets do. Its clock is that of
// a synctest bubble, and its disk gated: so a seed repeats.
type crashWorld struct {
	t    testing.TB
	seed uint64
	life int
	rng  *rand.Rand

	cfg  *conf.Config
	mem  *vfs.Mem
	disk *gatedDisk
	srv  *server.Server
	// starting holds the goroutine that makes srv.
	starting sync.WaitGroup
	logs     *observer.ObservedLogs

	clients []*crashClient
	// requests are all writes ever sent.
	requests map[requestID]*crashRequest
	// model is the state that answers were last compared with; lastApplied is what its last transaction did.
	model       *dataModel
	lastApplied *applied
	// acked is the highest zxid that any client was told of.
	acked zxid.Zxid
	// found is the last zxid that the running server has found at its start.
	found zxid.Zxid

	// next is the disk that the crash left, nil while all is well.
	next    *vfs.Mem
	crashIn int // changes on the disk until then
	purging chan error
	report  crashReport
}

// crashReport tells how much a world has lived through.
type crashReport struct {
	Lives, Looked         int // servers that ran; crashes looked into beside
	Changes               int // on the disk
	Logs, Snapshots       int // that got their name
	Removed               int // files
	Logged, Lost          int // transactions; those that a crash took, because nobody was told of them
	Answered, Refused     int // requests and handshakes; those that were refused
	Multis, Ended, Reaped int // transactions of those kinds: multis, ends of sessions, containers and TTL nodes that went
	trace                 uint64
}

// requestID names a write. Clients never repeat an xid.
type requestID struct {
	session zxid.SessionID
	xid     int32
}

func newCrashWorld(t testing.TB, seed uint64) *crashWorld {
	w := &crashWorld{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), mem: vfs.NewMem(), model: newDataModel(),
		requests: map[requestID]*crashRequest{}}
	w.cfg = crashConfig(seed)
	w.disk = newGatedDisk(w.mem)
	for i := range 2 + w.rng.IntN(4) {
		w.clients = append(w.clients, &crashClient{w: w, remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(4000+i))})
	}
	return w
}

func crashConfig(seed uint64) *conf.Config {
	cfg := conf.Default()
	cfg.DataDir, cfg.DataLogDir = "/data", []string{"", "/log"}[seed/2%2]
	cfg.ClientPort, cfg.ClientPortAddress = conf.Unset, ""
	cfg.TickTimeMs, cfg.MinSessionTimeoutMs, cfg.MaxSessionTimeoutMs = 500, 1000, 60000
	cfg.SnapCount = 4 + int(seed%23)
	cfg.PreAllocKB = []int64{0, 8, 64}[seed%3]
	cfg.TxnLogSizeLimitKB = []int64{0, 0, 0, 3}[seed%4]
	cfg.SnapshotCompression = []string{"", "", "gz", "snappy"}[seed%4]
	cfg.CloseSessionTxnEnabled = seed%5 != 0
	cfg.SerializeLastProcessedZxidEnabled = seed%7 != 0
	cfg.ExtendedTypesEnabled = true
	cfg.ContainerCheckIntervalMs = 1000
	cfg.AutopurgePurgeIntervalHours = 0
	cfg.Admin.Enabled = false
	return cfg
}

func (w *crashWorld) require(ok bool, format string, args ...any) {
	if !ok {
		w.t.Helper()
		w.t.Fatalf("%s=%d, life %d: %s", crashSeedVariable, w.seed, w.life, fmt.Sprintf(format, args...))
	}
}

func (w *crashWorld) ok(err error, format string, args ...any) {
	w.t.Helper()
	w.require(err == nil, "%s: %v", fmt.Sprintf(format, args...), err)
}

// note folds what happened into the trace.
func (w *crashWorld) note(format string, args ...any) {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	w.report.trace = w.report.trace*1099511628211 ^ h.Sum64()
}

// run is the whole history of a world. It belongs into a synctest bubble.
func (w *crashWorld) run() {
	defer w.kill()
	for range 2 + w.rng.IntN(3) {
		w.live()
	}
	w.look(w.mem, w.acked)
	w.report.Lives = w.life
}

// kill ends what runs, without another change on the disk.
func (w *crashWorld) kill() {
	w.disk.kill()
	w.starting.Wait()
	if w.srv != nil {
		_ = w.srv.Close() // says that the power is gone
		w.srv, w.purging = nil, nil
	}
}

// live runs one server until it crashes or is stopped.
func (w *crashWorld) live() {
	w.life++
	if w.seed%11 == 0 {
		w.cfg.DigestEnabled = !w.cfg.DigestEnabled
	}
	w.crashIn = w.rng.IntN(400)
	if w.rng.IntN(6) == 0 {
		w.crashIn = w.rng.IntN(15) // while it starts, mostly
	}
	if w.open() {
		w.load(60 + w.rng.IntN(400))
	}
	if w.next == nil && w.rng.IntN(2) == 0 {
		w.shutdown()
	}
	if w.next == nil {
		w.crash()
	}
	w.kill()
	w.startOver()
}

// startOver puts the next life on the disk that the last one left. Clients know that their connections are gone.
func (w *crashWorld) startOver() {
	history, durable := w.disk.history(), w.disk.durable()
	w.mem, w.next = w.next, nil
	w.disk = newGatedDisk(w.mem)
	w.disk.resume(history, durable)
	for _, c := range w.clients {
		c.forget()
	}
}

// open starts a server and checks what it has found. It is false if the world crashed meanwhile.
func (w *crashWorld) open() bool {
	core, logs := observer.New(zapcore.ErrorLevel)
	w.logs = logs
	done := make(chan error, 1)
	w.starting.Go(func() {
		var err error
		w.srv, err = w.newServer(w.disk, core)
		done <- err
	})
	err, alive := w.await(done)
	if !alive {
		return false
	}
	w.ok(err, "start")
	w.disk.openGate(true)
	defer w.disk.openGate(false)
	last := w.recovered(w.srv, w.mem, w.acked)
	w.report.Lost += len(w.disk.history()) - int(last)
	w.disk.restart(last)
	w.advance(last)
	w.acked, w.found = last, last // what was found is promised from now on
	go func() { _ = w.srv.Serve() }()
	time.Sleep(time.Millisecond) // the first step is due
	return true
}

func (w *crashWorld) newServer(fsys vfs.FS, core zapcore.Core) (*server.Server, error) {
	return server.New(w.cfg, server.Options{Log: zap.New(core), FS: fsys, Version: "test", Rand: rand.New(rand.NewPCG(w.seed, uint64(w.life)))})
}

// recovered checks what a server has found on a disk, and returns the last zxid.
func (w *crashWorld) recovered(srv *server.Server, mem *vfs.Mem, acked zxid.Zxid) zxid.Zxid {
	r := recovery{srv: srv, fs: mem, cfg: w.cfg, history: w.disk.history(), acked: acked, modelAt: w.modelAt}
	w.ok(r.check(), "recovery")
	for _, entry := range w.logs.All() {
		w.require(false, "the server complains: %s %v", entry.Message, entry.ContextMap())
	}
	return srv.Stats().Zxid
}

// look crashes a disk and sees what a server finds on it, without consequences.
func (w *crashWorld) look(mem *vfs.Mem, acked zxid.Zxid) {
	w.report.Looked++
	disk := w.cut(mem)
	core, logs := observer.New(zapcore.ErrorLevel)
	saved := w.logs
	w.logs = logs
	srv, err := w.newServer(disk, core)
	w.ok(err, "start after a crash")
	last := w.recovered(srv, disk, acked)
	again := disk.CrashClone(w.rng) // everything that it found is durable now
	w.ok(srv.Close(), "close")
	srv, err = w.newServer(again, core)
	w.ok(err, "start after a second crash")
	w.require(w.recovered(srv, again, last) == last, "the second crash took something")
	w.ok(srv.Close(), "close")
	w.logs = saved
}

// modelAt returns the state after a transaction.
func (w *crashWorld) modelAt(z zxid.Zxid) (*dataModel, error) {
	if z < w.model.last {
		return replayed(w.disk.history()[:z])
	}
	m := w.model.clone()
	return m, m.replay(w.disk.history()[m.last:z])
}

// advance moves the model on. Each transaction must be what somebody asked for, or the server's own.
func (w *crashWorld) advance(z zxid.Zxid) {
	w.require(int(z) <= len(w.disk.history()), "zxid %v was not logged", z)
	for w.model.last < z {
		a, err := w.model.apply(w.disk.history()[w.model.last])
		w.ok(err, "log")
		w.lastApplied = a
		w.count(a)
		r := w.requests[requestID{a.h.ClientID, a.h.Cxid}]
		switch {
		case r != nil:
			w.ok(r.matches(a), "transaction %v of session %v", a.h.Zxid, a.h.ClientID)
		case a.h.Cxid == 0 && (a.txn.Type == wire.OpCreateSession || a.txn.Type == wire.OpCloseSession || a.txn.Type == wire.OpDeleteContainer):
		case a.h.Cxid == 0 && a.txn.Type == wire.OpError && a.h.ClientID == 0: // the reaper came too late
		default:
			w.require(false, "nobody asked for transaction %v: %+v %+v", a.h.Zxid, a.h, a.txn)
		}
	}
}

// count notes what kind of transaction there was.
func (w *crashWorld) count(a *applied) {
	w.report.Logged++
	switch a.txn.Type {
	case wire.OpMulti:
		w.report.Multis++
	case wire.OpCloseSession:
		w.report.Ended++
	case wire.OpDeleteContainer:
		w.report.Reaped++
	}
}

// sessionLife returns the transactions that begin and end a session, 0 for none.
func (w *crashWorld) sessionLife(id zxid.SessionID) (born, died zxid.Zxid) {
	var h znode.TxnHeader
	var txn znode.Txn
	for _, payload := range slices.Backward(w.disk.history()) {
		_, _, err := znode.DecodeTxn(payload, jute.FieldBytesMaxDefault, &h, &txn)
		w.ok(err, "log")
		switch {
		case h.ClientID == id && txn.Type == wire.OpCreateSession:
			return h.Zxid, died
		case h.ClientID == id && txn.Type == wire.OpCloseSession:
			died = h.Zxid
		}
	}
	return 0, died
}

// settle waits until nothing moves any more, and takes the answers. Nothing may have been answered that is not durable.
func (w *crashWorld) settle() {
	synctest.Wait()
	if w.next != nil {
		return // what the server still says is lost with it
	}
	w.ok(w.disk.err(), "log")
	var list []answer
	for _, c := range w.clients {
		list = append(list, c.collect()...)
	}
	slices.SortStableFunc(list, func(a, b answer) int { return int(a.z - b.z) })
	for i := range list {
		w.check(&list[i])
	}
	for _, entry := range w.logs.All() {
		w.require(false, "the server complains: %s %v", entry.Message, entry.ContextMap())
	}
}

// check compares an answer with what its transaction did, or with the state that it was read from.
func (w *crashWorld) check(a *answer) {
	w.note("answer %v %v %d", a.c.remote, a.z, a.header.Err)
	w.report.Answered++
	if a.header.Err != wire.CodeOK || a.req == nil && a.c.id == 0 {
		w.report.Refused++
	}
	w.require(a.z <= w.disk.durable(), "%v, but only %v is durable", a, w.disk.durable())
	w.acked = max(w.acked, a.z)
	if a.req == nil {
		return
	}
	if a.req.isRead() {
		w.require(a.z >= w.model.last, "%v, but answers had come to %v", a, w.model.last)
		w.advance(a.z)
		w.ok(a.req.checkRead(w.model, a.header.Err, a.body), "%v", a)
		return
	}
	w.advance(a.z)
	w.require(w.lastApplied.h.Zxid == a.z && w.lastApplied.h.ClientID == a.c.id && w.lastApplied.h.Cxid == a.req.xid, "%v, but the transaction is %+v", a, w.lastApplied.h)
	w.ok(a.req.checkWrite(w.lastApplied, a.header.Err, a.body), "%v", a)
	if a.req.op == wire.OpCloseSession {
		a.c.id, a.c.password = 0, nil
	}
}

// load lets the clients and the disk do something at a time.
func (w *crashWorld) load(steps int) {
	eager := 2 + w.rng.IntN(7) // of 10 steps that many belong to the disk, if it has anything to do
	for range steps {
		if w.settle(); w.next != nil {
			return
		}
		if waiting := w.disk.waiting(); len(waiting) > 0 && w.rng.IntN(10) < eager {
			w.releaseOne(waiting)
		} else {
			w.act()
		}
	}
	w.settle()
}

// releaseOne lets one change happen, unless it is time for the crash: just before it, or just behind.
func (w *crashWorld) releaseOne(waiting []*gatedOp) {
	op := waiting[w.rng.IntN(len(waiting))]
	w.note("%v %s %d %d", op.Kind, op.Name, op.Off, op.Len)
	if w.rng.IntN(60) == 0 {
		w.look(w.mem, w.acked)
	}
	w.crashIn--
	w.report.Changes++
	switch name := path.Base(op.Name); {
	case op.Kind == vfs.KindRemove:
		w.report.Removed++
	case op.Kind == vfs.KindRename && strings.HasPrefix(name, "log."):
		w.report.Logs++
	case op.Kind == vfs.KindRename && strings.HasPrefix(name, "snapshot."):
		w.report.Snapshots++
	}
	switch {
	case w.crashIn >= 0:
		w.disk.release(op)
	case w.rng.IntN(2) == 0:
		w.crash()
	default:
		w.disk.releaseAndCut(op, w.crash)
	}
}

// crash ends the server's life now.
func (w *crashWorld) crash() { w.next = w.cut(w.mem) }

// cut returns what is left of a disk when the power goes, or when only the process dies.
func (w *crashWorld) cut(mem *vfs.Mem) *vfs.Mem {
	if w.rng.IntN(4) == 0 {
		return mem.Clone()
	}
	return mem.CrashClone(w.rng)
}

// await lets the disk work until something is done. It is false if the world crashed meanwhile.
func (w *crashWorld) await(done <-chan error) (error, bool) {
	for {
		if w.settle(); w.next != nil {
			return nil, false
		}
		select {
		case err := <-done:
			return err, true
		default:
		}
		waiting := w.disk.waiting()
		w.require(len(waiting) > 0, "everything stands still")
		w.releaseOne(waiting)
	}
}

// act lets a client do something, or the time pass.
func (w *crashWorld) act() {
	c := w.clients[w.rng.IntN(len(w.clients))]
	switch p := w.rng.IntN(100); {
	case p < 4:
		w.pass()
	case p < 6:
		w.purge()
	case c.conn == nil:
		c.connect()
	case p < 8:
		c.drop()
	case !c.ready():
		time.Sleep(time.Millisecond) // so that not everything happens at one instant
	case p < 10:
		c.send(&crashRequest{op: wire.OpCloseSession})
	case p < 25:
		c.send(randomRead(w.rng, w.model))
	default:
		for range 1 + w.rng.IntN(3) {
			if !c.ready() {
				break
			}
			c.send(randomWrite(w.rng, w.model))
			synctest.Wait() // the step that takes it is over
		}
	}
	w.note("act %v", c.remote)
}

// pass lets time pass: a little, or so much that silent sessions end and outlived nodes go.
func (w *crashWorld) pass() {
	ms := 1 + w.rng.IntN(100)
	if w.rng.IntN(3) == 0 {
		ms = w.rng.IntN(8000)
	}
	time.Sleep(time.Duration(ms) * time.Millisecond) // the bubble's clock, not ours
}

// purge begins to remove old snapshots and logs, unless that is under way.
func (w *crashWorld) purge() {
	if w.purging != nil {
		select {
		case err := <-w.purging:
			w.ok(err, "purge")
			w.purging = nil
		default:
			return
		}
	}
	w.purging = make(chan error, 1)
	w.srv.Purge(w.purging)
}

// shutdown stops the server in peace: everything is answered, and the log ends with its last record.
func (w *crashWorld) shutdown() {
	done := make(chan error, 1)
	go func() { done <- w.srv.Shutdown(context.Background()) }()
	err, alive := w.await(done)
	if !alive {
		return
	}
	w.ok(err, "shutdown")
	for _, c := range w.clients {
		w.require(len(c.sent) == 0, "%v: %d requests were not answered", c.remote, len(c.sent))
	}
	w.srv, w.purging = nil, nil
	w.acked = zxid.Zxid(len(w.disk.history()))
	w.next = w.mem.CrashClone(w.rng) // it needs no luck any more
	found, err := readStrictly(w.next, w.cfg)
	w.ok(err, "ZooKeeper would not start")
	w.require(found.last() == w.acked, "the log ends at %v instead of %v", found.last(), w.acked)
	// Logs of earlier lives may keep the zeros behind their end: ZooKeeper's do.
	w.require(!slices.ContainsFunc(found.padded, func(log numberedFile) bool { return log.zxid > w.found }), "not trimmed: %v", found.padded)
}
