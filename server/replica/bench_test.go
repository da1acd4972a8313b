package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/wire"
)

// BenchmarkGetData measures a read on the connection's goroutine: decode, execute, encode. It must not allocate.
func BenchmarkGetData(b *testing.B) {
	w := newWorld(b, nil)
	cl := w.connect()
	cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/some/path"[:5]), ACL: wire.OpenACL, Data: make([]byte, 100)})
	cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/some/path"), ACL: wire.OpenACL, Data: make([]byte, 100)})
	var e jute.Encoder
	(&wire.RequestHeader{Xid: 7, Op: wire.OpGetData}).Encode(&e)
	(&wire.PathWatchRequest{Path: []byte("/some/path")}).Encode(&e)
	spare := make([]byte, 0, 1<<12)
	b.ReportAllocs()
	for b.Loop() {
		v, err := cl.c.Receive(e.Bytes(), w.now)
		if v != Continue || err != nil {
			b.Fatal(v, err)
		}
		spare, _ = cl.c.Output(spare)
	}
}

func TestGetDataDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	w := newWorld(t, nil)
	cl := w.connect()
	cl.mustCreate("/some", 0)
	cl.mustCreate("/some/path", 0)
	var e jute.Encoder
	(&wire.RequestHeader{Xid: 7, Op: wire.OpGetData}).Encode(&e)
	(&wire.PathWatchRequest{Path: []byte("/some/path")}).Encode(&e)
	spare := make([]byte, 0, 1<<12)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_, _ = cl.c.Receive(e.Bytes(), w.now)
		spare, _ = cl.c.Output(spare)
	}))
}

// BenchmarkSetData measures a write from the socket's side to its answer, the disk left out, in batches of 100.
func BenchmarkSetData(b *testing.B) {
	w := newWorld(b, nil)
	cl := w.connect()
	cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/n"), ACL: wire.OpenACL})
	var e jute.Encoder
	(&wire.RequestHeader{Xid: 7, Op: wire.OpSetData}).Encode(&e)
	(&wire.SetDataRequest{Path: []byte("/n"), Data: make([]byte, 100), Version: -1}).Encode(&e)
	spare := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := cl.c.Receive(e.Bytes(), w.now); err != nil {
			b.Fatal(err)
		}
		if n++; n%100 == 0 {
			rd := w.r.Step(w.now, confirmed(w.written))
			w.written = rd.Persist[0].Token
			w.r.Step(w.now, confirmed(w.written))
			spare, _ = cl.c.Output(spare)
		}
	}
}
