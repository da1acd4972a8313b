package server_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/internal/storage/vfs"
	"zabra/server"
	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
)

// No answer to a write leaves before the sync that covers it has returned, although many share one.
func TestNoAnswerBeforeItsSync(t *testing.T) {
	s := startDurable(t, vfs.NewMem(), durableConfig(t), nil).serve()
	s.disk.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindSyncData || op.Kind == vfs.KindSync {
			time.Sleep(time.Millisecond) // a disk takes its time; writes gather meanwhile
		}
		return nil
	})
	const sessions, each = 6, 400
	l := newLoad(s, sessions)
	before := s.disk.Count(vfs.KindSyncData)
	l.run(each)
	syncs := s.disk.Count(vfs.KindSyncData) - before
	require.Len(t, l.acks, sessions*each)
	require.Greater(t, syncs, sessions*each/(sessions*loadPipelineMax)/2)
	require.Less(t, syncs, sessions*each/2, "writes share syncs")
	t.Logf("%d writes, %d syncs", len(l.acks), syncs)
	l.check()
	s.shutdown()
	l.recovers(s.fs, l.acked())
}

// While a sync of the log hangs, reads are answered and see the state before it; writes wait, and so does a read behind
// a write of the same session.
func TestReadsGoOnWhileASyncHangs(t *testing.T) {
	s := startDurable(t, vfs.NewMem(), durableConfig(t), nil).serve()
	ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
	defer cancel()
	l := newLoad(s, 3)
	writer, other, reader := l.sessions[0], l.sessions[1], l.sessions[2]
	create := func(c *loadSession, path string) *client.Call {
		return c.Go(wire.OpCreate, &wire.CreateRequest{Path: []byte(path), Data: []byte("old"), ACL: wire.OpenACL})
	}
	get := func(c *loadSession, path string) *client.Call {
		return c.Go(wire.OpGetData, &wire.PathWatchRequest{Path: []byte(path)})
	}
	require.NoError(t, create(writer, "/a").Wait(ctx))

	hanging, goOn := make(chan struct{}, 1), make(chan struct{})
	free := sync.OnceFunc(func() { close(goOn) })
	defer free() // the server could not be closed
	s.disk.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindSyncData && strings.HasPrefix(path.Base(op.Name), "log.") {
			select {
			case hanging <- struct{}{}:
			default:
			}
			<-goOn
		}
		return nil
	})
	set := writer.Go(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Data: []byte("new"), Version: -1})
	behind := get(writer, "/a")
	<-hanging
	waiting := []*client.Call{set, behind, create(other, "/b"), create(writer, "/c")}
	dialled := make(chan error, 1)
	go func() {
		c, err := client.Dial(ctx, s.Addr().String(), client.Options{})
		if err == nil {
			c.Abandon()
		}
		dialled <- err
	}()
	for range 300 {
		call := get(reader, "/a")
		require.NoError(t, call.Wait(ctx))
		var reply wire.DataReply
		require.NoError(t, call.Decode(&reply))
		require.Equal(t, "old", string(reply.Data))
		require.LessOrEqual(t, call.Zxid, s.ledger.durable())
	}
	for _, call := range waiting {
		require.False(t, isDone(call), "%v", call.Op)
	}
	require.Empty(t, dialled)

	free()
	for _, call := range waiting {
		require.NoError(t, call.Wait(ctx))
	}
	var reply wire.DataReply
	require.NoError(t, behind.Decode(&reply))
	require.Equal(t, "new", string(reply.Data))
	require.NoError(t, <-dialled)
}

func isDone(call *client.Call) bool {
	select {
	case <-call.Done():
		return true
	default:
		return false
	}
}

// diskFault is a call that fails once, under load.
type diskFault struct {
	name string
	err  error
	hits func(op vfs.Op, base string) bool
	// after is how many such calls succeed before.
	after int
	// preAllocKB is the step in which the log grows.
	preAllocKB int64
	// beside is set for what happens beside the writing of transactions, which may get on for a moment.
	beside bool
}

func isLog(base string) bool    { return strings.HasPrefix(base, "log.") }
func isNewLog(base string) bool { return base == "zabra.log.tmp" }

var diskFaults = []diskFault{
	{name: "fdatasync of the log", err: syscall.EIO, after: 20,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindSyncData && isLog(base) }},
	{name: "write of the log", err: syscall.EIO, after: 20,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindWrite && isLog(base) }},
	{name: "full disk, write of the log", err: syscall.ENOSPC, after: 7,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindWrite && isLog(base) }},
	{name: "full disk, longer log", err: syscall.ENOSPC, after: 2, preAllocKB: 64,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindTruncate && isNewLog(base) }},
	{name: "full disk, zeros ahead of the log", err: syscall.ENOSPC, after: 2, preAllocKB: 64, beside: true,
		hits: func(op vfs.Op, base string) bool {
			return op.Kind == vfs.KindWrite && isLog(base) && op.Off+op.Len == 16+64<<10
		}},
	{name: "full disk, new log", err: syscall.ENOSPC, after: 2,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindCreate && isNewLog(base) }},
	{name: "first write of a new log", err: syscall.EIO, after: 3,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindWrite && isNewLog(base) }},
	{name: "first sync of a new log", err: syscall.EIO, after: 2,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindSync && isNewLog(base) }},
	{name: "rename of a new log", err: syscall.EIO, after: 2,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindRename && isLog(base) }},
	{name: "sync of the directory", err: syscall.EIO, after: 2,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindSyncDir && op.Name == "/log/version-2" }},
	{name: "last sync of an old log", err: syscall.EIO, after: 1,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindSync && isLog(base) }},
	{name: "state file", err: syscall.EIO, after: 20,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindWrite && base == "zabra.state" }},
	{name: "full disk, snapshot", err: syscall.ENOSPC, after: 1, beside: true,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindWrite && base == "zabra.snapshot.tmp" }},
	{name: "sync of a snapshot", err: syscall.EIO, after: 1, beside: true,
		hits: func(op vfs.Op, base string) bool { return op.Kind == vfs.KindSync && base == "zabra.snapshot.tmp" }},
}

// A disk that fails once ends the server, though it would work again: the server says why, acknowledges nothing that is
// not certain, and leaves a directory with all that it has acknowledged, whether the machine stays up or not.
func TestFailingDisk(t *testing.T) {
	for i, fault := range diskFaults {
		t.Run(fault.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			mem := vfs.NewMem()
			cfg := durableConfig(t)
			cfg.PreAllocKB, cfg.DataLogDir = fault.preAllocKB, "/log"
			s := startDurable(t, mem, cfg, nil).serve()
			l := newLoad(s, 4)
			f := fault.inject(s)
			l.run(5000)
			require.True(t, f.hit.Load(), "the load did not come to it")
			err := s.ended()
			require.ErrorIs(t, err, fault.err)
			require.False(t, errors.Is(err, server.ErrServerClosed))
			told := s.logs.FilterMessageSnippet("Severe unrecoverable error")
			require.Equal(t, 1, told.Len())
			require.Contains(t, told.All()[0].ContextMap()["error"], fault.err.Error())
			if !fault.beside {
				require.Zero(t, f.changes.Load(), "the log was changed after the failure")
			}
			require.NotEmpty(t, l.acks)
			l.check()
			for _, c := range l.sessions {
				<-c.Done()
				c.Abandon()
			}
			goleak.VerifyNone(t, before)

			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 5 {
				require.NoError(t, l.recovers(mem.CrashClone(rng), l.acked()).Close())
			}
			l.goesOn(l.recovers(mem.Clone(), l.acked()))
		})
	}
}

type injected struct {
	hit     atomic.Bool
	changes atomic.Int64 // of logs after the failure
}

func (f *diskFault) inject(s *durableShell) *injected {
	in := &injected{}
	var seen atomic.Int64
	s.disk.Inject(func(op vfs.Op) error {
		base := path.Base(op.Name)
		if in.hit.Load() {
			if op.Kind.Changes() && (isLog(base) || isNewLog(base)) {
				in.changes.Add(1)
			}
			return nil
		}
		if !f.hits(op, base) || seen.Add(1) <= int64(f.after) {
			return nil
		}
		in.hit.Store(true)
		return f.err
	})
	return in
}

// goesOn requires that all sessions can be taken up on the next server and write on.
func (l *load) goesOn(next *durableShell) {
	l.t.Helper()
	next.serve()
	again := &load{t: l.t, s: next, first: len(next.ledger.history())}
	for i, c := range l.sessions {
		n := again.open(client.Options{Session: c.Session(), Password: c.Password(), LastZxidSeen: c.LastZxid()}, 100+i)
		require.Equal(l.t, c.Session(), n.Session())
		again.sessions = append(again.sessions, n)
	}
	again.run(50)
	require.Len(l.t, again.acks, 50*len(l.sessions))
	again.check()
	next.shutdown()
	again.recovers(next.fs, again.acked())
}

// The checks of these tests can fail: they notice a disk whose syncs of one kind do nothing.
func TestLyingDiskIsNoticed(t *testing.T) {
	for _, kind := range []vfs.Kind{vfs.KindSyncData, vfs.KindSync, vfs.KindSyncDir} {
		t.Run(kind.String(), func(t *testing.T) {
			mem := vfs.NewMem()
			cfg := durableConfig(t)
			cfg.PreAllocKB, cfg.SnapCount = 0, 100_000 // the syncs of zeros and of finished logs would help
			s := startDurable(t, lyingDisk{mem, kind}, cfg, nil).serve()
			l := newLoad(s, 2)
			l.run(150)
			require.Len(t, l.acks, 300)
			noticed := 0
			for seed := range uint64(20) {
				if l.lost(mem.CrashClone(rand.New(rand.NewPCG(seed, 3)))) {
					noticed++
				}
			}
			require.Positive(t, noticed)
		})
	}
}

// lost tells whether something acknowledged is missing on fs, or the directory does not load.
func (l *load) lost(fs vfs.FS) bool {
	srv, err := server.New(l.s.cfg, server.Options{FS: fs})
	if err != nil {
		return true
	}
	defer srv.Close()
	history := l.s.ledger.history()
	r := recovery{srv: srv, fs: fs, cfg: l.s.cfg, history: history, acked: l.acked(),
		modelAt: func(z zxid.Zxid) (*dataModel, error) { return replayed(history[:z]) }}
	return r.check() != nil
}

// lyingDisk reports success for one kind of sync without making it.
type lyingDisk struct {
	*vfs.Mem
	kind vfs.Kind
}

func (d lyingDisk) Create(name string) (vfs.File, error) {
	f, err := d.Mem.Create(name)
	return lyingFile{f, d.kind}, err
}

func (d lyingDisk) SyncDir(dir string) error {
	if d.kind == vfs.KindSyncDir {
		return nil
	}
	return d.Mem.SyncDir(dir)
}

type lyingFile struct {
	vfs.File
	kind vfs.Kind
}

func (f lyingFile) Sync() error {
	if f.kind == vfs.KindSync {
		return nil
	}
	return f.File.Sync()
}

func (f lyingFile) SyncData() error {
	if f.kind == vfs.KindSyncData {
		return nil
	}
	return f.File.SyncData()
}
