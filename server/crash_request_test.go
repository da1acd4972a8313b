package server_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"zabra/jute"
	"zabra/server/client"
	"zabra/wire"
	"zabra/znode"
)

// crashRequest is one request of a client of the crash test, kept until it is answered and longer.
type crashRequest struct {
	xid int32
	op  wire.Op
	// ops is what a write asks for: several operations for a multi, one otherwise.
	ops  []wire.MultiOp
	acl  []wire.ACL
	path []byte // of a read
}

// record returns the request as it goes over the wire.
func (r *crashRequest) record() wire.Record {
	switch r.op {
	case wire.OpMulti:
		return client.MultiRequest(r.ops...)
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		c := &r.ops[0].Create
		return &wire.CreateRequest{Path: c.Path, Data: c.Data, ACL: c.ACL, Flags: c.Flags}
	case wire.OpCreateTTL:
		return &r.ops[0].Create
	case wire.OpDelete:
		return &wire.PathVersionRequest{Path: r.ops[0].Path, Version: r.ops[0].Version}
	case wire.OpSetData:
		return &wire.SetDataRequest{Path: r.ops[0].Path, Data: r.ops[0].Data, Version: r.ops[0].Version}
	case wire.OpSetACL:
		return &wire.SetACLRequest{Path: r.ops[0].Path, ACL: r.acl, Version: r.ops[0].Version}
	case wire.OpGetData, wire.OpExists, wire.OpGetChildren2:
		return &wire.PathWatchRequest{Path: r.path}
	case wire.OpCloseSession, wire.OpPing:
		return nil
	default:
		panic("no request " + r.op.String())
	}
}

func (r *crashRequest) isRead() bool {
	return r.op == wire.OpGetData || r.op == wire.OpExists || r.op == wire.OpGetChildren2 || r.op == wire.OpPing
}

// randomPath returns a path out of few, often that of a node.
func randomPath(rng *rand.Rand, m *dataModel) []byte {
	top := []string{"/a", "/b", "/c"}[rng.IntN(3)]
	switch rng.IntN(10) {
	case 0, 1, 2:
		return []byte(top)
	case 3, 4, 5:
		return existingPath(rng, m)
	default:
		return []byte(top + []string{"/x", "/y", "/z", "/x/1", "/y/2"}[rng.IntN(5)])
	}
}

func existingPath(rng *rand.Rand, m *dataModel) []byte {
	paths := m.paths()
	return []byte(cmp.Or(paths[rng.IntN(len(paths))], "/"))
}

func randomData(rng *rand.Rand) []byte {
	size := rng.IntN(60)
	switch rng.IntN(30) {
	case 0:
		return nil
	case 1, 2:
		size = 4000 + rng.IntN(200) // about a page: the unit that a crash tears
	case 3, 4:
		size = rng.IntN(20000)
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte('a' + rng.IntN(26))
	}
	return data
}

func randomVersion(rng *rand.Rand) int32 { return []int32{-1, -1, -1, -1, 0, 1}[rng.IntN(6)] }

// randomOp returns an operation that may stand alone or in a multi. Of many nodes more are deleted than created.
func randomOp(rng *rand.Rand, m *dataModel) wire.MultiOp {
	const nodesMany = 40
	p := rng.IntN(10)
	if len(m.nodes) > nodesMany && rng.IntN(2) == 0 {
		p = 9
	}
	switch {
	case p < 5:
		c := wire.CreateTTLRequest{Path: randomPath(rng, m), Data: randomData(rng), ACL: wire.OpenACL, TTL: -1}
		switch rng.IntN(5) {
		case 0:
			c.Flags = wire.FlagEphemeral
		case 1:
			c.Flags, c.Path = wire.FlagSequential, append(c.Path, "-q"...)
		case 2:
			c.Flags, c.Path = wire.FlagEphemeralSequential, append(c.Path, "-e"...)
		}
		return wire.MultiOp{Op: []wire.Op{wire.OpCreate, wire.OpCreate2}[rng.IntN(2)], Create: c}
	case p < 8:
		return wire.MultiOp{Op: wire.OpSetData, Path: existingPath(rng, m), Data: randomData(rng), Version: randomVersion(rng)}
	default:
		return wire.MultiOp{Op: wire.OpDelete, Path: existingPath(rng, m), Version: randomVersion(rng)}
	}
}

// randomWrite returns a write without its xid.
func randomWrite(rng *rand.Rand, m *dataModel) *crashRequest {
	switch rng.IntN(12) {
	case 0, 1, 2:
		r := &crashRequest{op: wire.OpMulti}
		for range 1 + rng.IntN(4) {
			op := randomOp(rng, m)
			if rng.IntN(6) == 0 {
				op = wire.MultiOp{Op: wire.OpCheck, Path: randomPath(rng, m), Version: randomVersion(rng)}
			}
			r.ops = append(r.ops, op)
		}
		return r
	case 3:
		acl := []wire.ACL{{Perms: []int32{wire.PermAll, wire.PermAll &^ wire.PermAdmin}[rng.IntN(2)], Scheme: "world", ID: "anyone"}}
		return &crashRequest{op: wire.OpSetACL, acl: acl, ops: []wire.MultiOp{{Op: wire.OpSetACL, Path: randomPath(rng, m), Version: randomVersion(rng)}}}
	case 4:
		c := wire.CreateTTLRequest{Path: randomPath(rng, m), Data: randomData(rng), ACL: wire.OpenACL, TTL: -1, Flags: wire.FlagContainer}
		op := wire.OpCreateContainer
		if rng.IntN(2) == 0 {
			op, c.Flags, c.TTL = wire.OpCreateTTL, wire.FlagTTL, 1+rng.Int64N(3000)
		}
		return &crashRequest{op: op, ops: []wire.MultiOp{{Op: op, Create: c}}}
	default:
		op := randomOp(rng, m)
		return &crashRequest{op: op.Op, ops: []wire.MultiOp{op}}
	}
}

func randomRead(rng *rand.Rand, m *dataModel) *crashRequest {
	op := []wire.Op{wire.OpGetData, wire.OpExists, wire.OpGetChildren2, wire.OpPing}[rng.IntN(4)]
	return &crashRequest{op: op, path: randomPath(rng, m)}
}

// matches tells whether a transaction is what became of the request: all of it, or an error.
func (r *crashRequest) matches(a *applied) error {
	switch {
	case a.txn.Type == wire.OpError:
		return nil
	case a.txn.Type != r.op:
		return fmt.Errorf("a transaction of type %v", a.txn.Type)
	case r.op == wire.OpCloseSession:
		return nil
	case r.op != wire.OpMulti:
		return r.matchesOp(&r.ops[0], &a.txn, a.sequences[0])
	case len(a.txn.Multi) != len(r.ops):
		return fmt.Errorf("%d operations instead of %d", len(a.txn.Multi), len(r.ops))
	}
	for i := range a.stats { // none if one of them failed
		if err := r.matchesOp(&r.ops[i], &a.txn.Multi[i], a.sequences[i]); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return nil
}

func (r *crashRequest) matchesOp(op *wire.MultiOp, t *znode.Txn, sequence int32) error {
	path, data := string(op.Target()), op.Data
	version := op.Version == -1 || t.Version == op.Version+1
	switch op.Op {
	case wire.OpDelete:
		version = true // the record has none
	case wire.OpSetACL:
		version = version && slices.Equal(t.ACL, r.acl)
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		c := &op.Create
		data = c.Data
		if c.Flags == wire.FlagSequential || c.Flags == wire.FlagEphemeralSequential {
			path = fmt.Sprintf("%s%010d", path, sequence)
		}
		ephemeral := c.Flags == wire.FlagEphemeral || c.Flags == wire.FlagEphemeralSequential
		version = t.Ephemeral == ephemeral && slices.Equal(t.ACL, c.ACL)
	}
	if t.Type != op.Op || string(t.Path) != path || !bytes.Equal(t.Data, data) || (t.Data == nil) != (data == nil) || !version {
		return fmt.Errorf("%+.200v became %+.200v", *op, *t)
	}
	return nil
}

// checkWrite compares the reply of a write with what its transaction did.
func (r *crashRequest) checkWrite(a *applied, code wire.Code, body []byte) error {
	var want jute.Encoder
	wantCode := wire.CodeOK
	switch {
	case a.txn.Type == wire.OpError:
		wantCode = a.txn.Err
	case r.op == wire.OpMulti:
		wire.AppendMultiResults(&want, multiResultsOf(a))
	case r.op == wire.OpCreate:
		want.UString(a.txn.Path)
	case r.op == wire.OpCreate2, r.op == wire.OpCreateContainer, r.op == wire.OpCreateTTL:
		want.UString(a.txn.Path)
		a.stats[0].Encode(&want)
	case r.op == wire.OpSetData, r.op == wire.OpSetACL:
		a.stats[0].Encode(&want)
	}
	if code != wantCode || !bytes.Equal(body, want.Bytes()) {
		return fmt.Errorf("%v %.200q, expected %v %.200q", code, body, wantCode, want.Bytes())
	}
	return nil
}

// multiResultsOf is what clients are told of a multi: a result each, or an error each.
func multiResultsOf(a *applied) (results []wire.MultiResult) {
	failed, after := len(a.stats) == 0 && len(a.txn.Multi) > 0, wire.CodeOK
	for i := range a.txn.Multi {
		t := &a.txn.Multi[i]
		switch {
		case failed && t.Type == wire.OpError:
			after = wire.CodeRuntimeInconsistency
			results = append(results, wire.MultiResult{Op: wire.OpError, Err: t.Err})
		case failed:
			results = append(results, wire.MultiResult{Op: wire.OpError, Err: after})
		default:
			results = append(results, wire.MultiResult{Op: t.Type, Path: t.Path, Stat: a.stats[i]})
		}
	}
	return results
}

// checkRead compares the reply of a read with the state at its zxid.
func (r *crashRequest) checkRead(m *dataModel, code wire.Code, body []byte) error {
	var want jute.Encoder
	wantCode := wire.CodeOK
	path := string(bytes.TrimSuffix(r.path, []byte("/")))
	switch node := m.nodes[path]; {
	case r.op == wire.OpPing:
	case node == nil:
		wantCode = wire.CodeNoNode
	case r.op == wire.OpGetData:
		reply := wire.DataReply{Data: node.data, Stat: m.stat(path)}
		reply.Encode(&want)
	case r.op == wire.OpExists:
		st := m.stat(path)
		st.Encode(&want)
	case r.op == wire.OpGetChildren2:
		var err error
		if body, err = sortChildren(body); err != nil {
			return err
		}
		reply := wire.Children2Reply{Stat: m.stat(path), Children: [][]byte{}}
		for _, name := range m.children(path) {
			reply.Children = append(reply.Children, []byte(name))
		}
		reply.Encode(&want)
	}
	if code != wantCode || !bytes.Equal(body, want.Bytes()) {
		return fmt.Errorf("%v %.200q, expected %v %.200q", code, body, wantCode, want.Bytes())
	}
	return nil
}

// sortChildren puts the names in a getChildren2 reply in order.
func sortChildren(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return body, nil
	}
	d := jute.NewDecoder(body, jute.FieldBytesMaxDefault)
	var reply wire.Children2Reply
	reply.Decode(&d)
	slices.SortFunc(reply.Children, bytes.Compare)
	var e jute.Encoder
	reply.Encode(&e)
	return e.Bytes(), d.Err()
}
