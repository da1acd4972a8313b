package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/server"
	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// durableShell is a server behind a socket on a disk of which the test knows everything.
type durableShell struct {
	*shell
	fs     vfs.FS // without faults
	ledger *ledger
}

// startDurable starts a server on fs and counts what it logs from the beginning, unless history tells what is there.
func startDurable(t testing.TB, fs vfs.FS, cfg *conf.Config, history [][]byte) *durableShell {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	s := &durableShell{shell: &shell{t: t, cfg: cfg, logs: logs, disk: vfs.NewFault(fs), served: make(chan error, 1)}, fs: fs}
	s.ledger = newLedger(s.disk)
	s.ledger.resume(history, 0)
	var err error
	s.Server, err = server.New(cfg, server.Options{Log: zap.New(core), FS: s.ledger, Version: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	s.ledger.restart(s.Stats().Zxid)
	return s
}

func (s *durableShell) serve() *durableShell {
	go func() { s.served <- s.Serve() }()
	return s
}

// durableConfig has a directory that exists in memory only, and small logs.
func durableConfig(t testing.TB) *conf.Config {
	return shellConfig(t, func(cfg *conf.Config) {
		cfg.DataDir, cfg.SnapCount, cfg.PreAllocKB, cfg.ExtendedTypesEnabled = "/data", 100, 64, true
	})
}

// load is what clients send, and what they were told.
type load struct {
	t        testing.TB
	s        *durableShell
	sessions []*loadSession
	first    int // transactions that were logged before

	mu       sync.Mutex
	acks     []ack
	tooEarly []string // answers that came before they were certain
	strange  error
}

// loadSession is one client. Requests are pipelined.
type loadSession struct {
	*client.Client
	l        *load
	rng      *rand.Rand
	xid      int32
	requests map[int32]*crashRequest // by xid; sent by one goroutine
	pending  chan struct{}           // one element for each request in flight
	// then is called, once, when so many answers more have come as countdown says.
	countdown int
	then      func()
}

// ack is a write's answer.
type ack struct {
	session zxid.SessionID
	z       zxid.Zxid
	code    wire.Code
	body    []byte
	xid     int32
}

// loadPipelineMax is how many requests a client has in flight.
const loadPipelineMax = 16

func newLoad(s *durableShell, sessions int) *load {
	l := &load{t: s.t, s: s}
	for i := range sessions {
		l.sessions = append(l.sessions, l.open(client.Options{}, i))
	}
	return l
}

func (l *load) open(opt client.Options, i int) *loadSession {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
	defer cancel()
	opt.Timeout, opt.NoPings = time.Minute, true
	c, err := client.Dial(ctx, l.s.Addr().String(), opt)
	require.NoError(l.t, err)
	l.t.Cleanup(c.Abandon)
	return &loadSession{Client: c, l: l, rng: rand.New(rand.NewPCG(uint64(i), 7)), requests: map[int32]*crashRequest{},
		pending: make(chan struct{}, loadPipelineMax)}
}

// run lets all clients send n writes each, and returns when each is answered or its connection lost.
func (l *load) run(n int) {
	var wg sync.WaitGroup
	for _, c := range l.sessions {
		wg.Go(func() { c.run(n) })
	}
	wg.Wait()
}

// paths are what the writes of all loads are about.
func loadPaths() *dataModel {
	m := newDataModel()
	for _, p := range []string{"/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/c/z", "/b/x/1"} {
		m.nodes[p] = &dataNode{}
	}
	return m
}

func (c *loadSession) run(n int) {
	paths := loadPaths()
	for i := 0; i < n && c.Err() == nil; i++ {
		r := randomWrite(c.rng, paths)
		c.pending <- struct{}{}
		c.xid++
		r.xid = c.xid
		c.requests[r.xid] = r
		c.Send(r.op, r.record(), c.answered)
	}
	for range loadPipelineMax {
		c.pending <- struct{}{}
	}
	for range loadPipelineMax {
		<-c.pending
	}
}

// answered is called by the client's reader.
func (c *loadSession) answered(call *client.Call) {
	durable := c.l.s.ledger.durable()
	defer func() { <-c.pending }()
	var code wire.Code
	if errors.Is(call.Err, wire.CodeConnectionLoss) || call.Err != nil && !errors.As(call.Err, &code) {
		return // nobody knows
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if call.Zxid > durable {
		c.l.tooEarly = append(c.l.tooEarly, fmt.Sprintf("%v %v of session %v, while only %v was durable", call.Op, call.Zxid, c.Session(), durable))
	}
	if c.countdown--; c.countdown == 0 && c.then != nil {
		go c.then()
	}
	c.l.acks = append(c.l.acks, ack{session: c.Session(), z: call.Zxid, code: code, body: call.Body, xid: call.Xid})
}

// acked returns the highest zxid that anybody was told of.
func (l *load) acked() (z zxid.Zxid) {
	for _, a := range l.acks {
		z = max(z, a.z)
	}
	return z
}

// check compares all answers with what the log says.
func (l *load) check() {
	l.t.Helper()
	require.NoError(l.t, l.s.ledger.err())
	require.Empty(l.t, l.tooEarly)
	requests := map[zxid.SessionID]map[int32]*crashRequest{}
	for _, c := range l.sessions {
		requests[c.Session()] = c.requests
	}
	byZxid := map[zxid.Zxid]ack{}
	for _, a := range l.acks {
		byZxid[a.z] = a
	}
	require.Len(l.t, byZxid, len(l.acks), "each write has its own zxid")
	m := newDataModel()
	require.NoError(l.t, m.replay(l.s.ledger.history()[:l.first])) // clients begin anew with xid 1
	for _, payload := range l.s.ledger.history()[l.first:] {
		did, err := m.apply(payload)
		require.NoError(l.t, err)
		if r := requests[did.h.ClientID][did.h.Cxid]; r != nil {
			require.NoError(l.t, r.matches(did))
		}
		if a, ok := byZxid[did.h.Zxid]; ok {
			require.Equal(l.t, a.session, did.h.ClientID)
			require.Equal(l.t, a.xid, did.h.Cxid)
			require.NoError(l.t, requests[a.session][a.xid].checkWrite(did, a.code, a.body))
			delete(byZxid, a.z)
		}
	}
	require.Empty(l.t, byZxid, "acknowledged but not in the log")
}

// recovers requires that a server finds on fs everything that was acknowledged. It serves nobody yet.
func (l *load) recovers(fs vfs.FS, acked zxid.Zxid) *durableShell {
	l.t.Helper()
	history := l.s.ledger.history()
	next := startDurable(l.t, fs, l.s.cfg, history)
	r := recovery{srv: next.Server, fs: fs, cfg: l.s.cfg, history: history, acked: acked,
		modelAt: func(z zxid.Zxid) (*dataModel, error) { return replayed(history[:z]) }}
	require.NoError(l.t, r.check())
	require.Zero(l.t, next.logs.FilterLevelExact(zapcore.ErrorLevel).Len())
	return next
}

// typeOf returns the type of a logged transaction.
func typeOf(t testing.TB, payload []byte) wire.Op {
	var h znode.TxnHeader
	var txn znode.Txn
	_, _, err := znode.DecodeTxn(payload, jute.FieldBytesMaxDefault, &h, &txn)
	require.NoError(t, err)
	return h.Type
}
