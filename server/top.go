package server

import (
	"encoding/binary"
	"net/http"
	"net/netip"
	"strconv"
	"sync"

	"zabra/server/admin"
	"zabra/wire"
)

// top knows which clients and paths are asked for most. Of the requests of each connection one in topSampleEvery is looked
// at, so that the others pay a counter of their connection and a branch.
type top struct {
	surveying sync.Mutex // held while the nodes are looked through for somebody

	mu sync.Mutex
	topCounts
}

type topCounts struct {
	sinceMs                int64 // monotonic; 0: since the start
	samples                int64
	clients, reads, writes sketch
	ready                  bool
}

func (t *topCounts) clear(nowMs int64) {
	*t = topCounts{sinceMs: nowMs, ready: true}
	for _, k := range []*sketch{&t.clients, &t.reads, &t.writes} {
		k.init(topKeysMax)
	}
}

// note counts a request that was chosen. It may be anything a client can send.
func (t *top) note(client netip.Addr, frame []byte) {
	write, path, ok := requestPath(frame)
	if !ok {
		return
	}
	var text [64]byte
	key := client.AppendTo(text[:0])
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ready {
		t.clear(0)
	}
	t.samples++
	t.clients.add(key)
	switch {
	case len(path) == 0:
	case write:
		t.writes.add(path)
	default:
		t.reads.add(path)
	}
}

// Where the path of a request is in its frame: behind xid and opcode, in a multi behind the header of its first operation.
const (
	requestOpAt    = 4
	requestBodyAt  = 8
	multiBodyAt    = requestBodyAt + 4 + 1 + 4
	pathLengthSize = 4
)

// requestPath tells whether a request is a write, and its path, or that of the first operation of a multi; an empty one if
// it has none. It is not ok for what is no request of a client's own: a ping, or what the server refuses.
func requestPath(frame []byte) (write bool, path []byte, ok bool) {
	if len(frame) < requestBodyAt {
		return false, nil, false
	}
	op := wire.Op(int32(binary.BigEndian.Uint32(frame[requestOpAt:])))
	switch op.Info().Class {
	case wire.ClassWrite:
		write = true
	case wire.ClassRead, wire.ClassSync:
	default:
		return false, nil, false
	}
	at := requestBodyAt
	if op == wire.OpMulti || op == wire.OpMultiRead {
		at = multiBodyAt
	}
	if len(frame) < at+pathLengthSize {
		return write, nil, true
	}
	n := int64(int32(binary.BigEndian.Uint32(frame[at:])))
	rest := frame[at+pathLengthSize:]
	if n <= 0 || n > int64(len(rest)) || rest[0] != '/' {
		return write, nil, true
	}
	return write, rest[:min(n, topPathBytesMax)], true
}

// runTop answers the command top.
func (s *Server) runTop(r *admin.Request) *admin.Response {
	n := topListDefault
	if text := r.Query.Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > topListMax {
			return refusedAction(http.StatusBadRequest, "n is a number from 1 to "+strconv.Itoa(topListMax))
		}
	}
	reset, ok := flag(r, "reset", false)
	if !ok {
		return refusedAction(http.StatusBadRequest, "reset is true or false")
	}
	if !s.actions.top.surveying.TryLock() {
		return refusedAction(http.StatusConflict, "somebody else is looking through the nodes; one at a time")
	}
	defer s.actions.top.surveying.Unlock()
	fields := s.actions.top.show(n, reset, s.startMs, s.clock.now().MonoMs)
	return &admin.Response{Fields: append(fields, s.survey(n)...)}
}

// show lists what was counted, and begins anew if reset.
func (t *top) show(n int, reset bool, startMs, nowMs int64) admin.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ready {
		t.clear(0)
	}
	since := startMs
	if t.sinceMs > 0 {
		since = t.sinceMs
	}
	fields := admin.Object{
		{Name: "window_ms", Value: nowMs - since},
		{Name: "sampled_one_in", Value: int64(topSampleEvery)},
		{Name: "samples", Value: t.samples},
		{Name: "busiest_clients", Value: t.clients.objects("client", n)},
		{Name: "most_read_paths", Value: t.reads.objects("path", n)},
		{Name: "most_written_paths", Value: t.writes.objects("path", n)},
	}
	if reset {
		t.clear(nowMs)
	}
	return fields
}

// objects renders the largest counts as numbers of requests.
func (k *sketch) objects(name string, n int) []admin.Object {
	list := []admin.Object{}
	for _, p := range k.largest(n) {
		list = append(list, admin.Object{
			{Name: name, Value: p.key},
			{Name: "requests", Value: p.count * topSampleEvery},
			{Name: "too_many_by_at_most", Value: p.over * topSampleEvery},
		})
	}
	return list
}
