package bench

import (
	"math/rand/v2"

	"zabra/jute"
	"zabra/wire"
)

// Nodes of the workloads, below the root.
const (
	nodesDir = "/nodes" // nodes/000123, what is read and set
	fillDir  = "/fill"  // fill/000123/000456, what fill creates and leaves
)

// maker appends one request of a session, that is due or sent at that time. The ordinal counts the requests of the run
// where each has to be another.
type maker func(b []byte, s *session, at, ordinal int64) []byte

// take is session.take, counted.
func (t *thread) take(s *session, at int64, write bool) int32 {
	t.flying++
	return s.take(at, write)
}

// maker returns that of the workload.
func (t *thread) maker() maker {
	r := t.run
	node := []byte(r.Root + nodesDir + "/" + number)
	get := newTemplate(wire.OpGetData, &wire.PathWatchRequest{Path: node})
	set := newTemplate(wire.OpSetData, &wire.SetDataRequest{Path: node, Data: r.data, Version: -1})
	switch r.Workload {
	case Get:
		return t.numbered(get, r.Nodes)
	case Set:
		return t.numbered(set, r.Nodes)
	case Exists:
		return t.numbered(newTemplate(wire.OpExists, &wire.PathWatchRequest{Path: node}), r.Nodes)
	case Children:
		folder := []byte(r.dir() + "/" + number)
		return t.numbered(newTemplate(wire.OpGetChildren, &wire.PathWatchRequest{Path: folder}), r.folders())
	case Mixed:
		gets, sets := t.numbered(get, r.Nodes), t.numbered(set, r.Nodes)
		return func(b []byte, s *session, at, ordinal int64) []byte {
			if int(t.below(100)) < r.ReadPercent {
				return gets(b, s, at, ordinal)
			}
			return sets(b, s, at, ordinal)
		}
	case Multi:
		ops := make([]wire.MultiOp, r.Ops)
		for i := range ops {
			ops[i] = wire.MultiOp{Op: wire.OpSetData, Path: node, Data: r.data, Version: -1}
		}
		return t.numbered(newTemplate(wire.OpMulti, &multiRequest{ops}), r.Nodes)
	case Create:
		return t.creates()
	default:
		return t.fills()
	}
}

// numbered makes requests each of whose numbers is drawn.
func (t *thread) numbered(tm *template, numbers int) maker {
	return func(b []byte, s *session, at, _ int64) []byte {
		b, start := tm.append(b, t.take(s, at, tm.write))
		for place := range tm.at {
			tm.put(b, start, place, t.below(numbers))
		}
		return b
	}
}

// creates makes nodes below the session's own parent, each with the next number.
func (t *thread) creates() maker {
	path := t.run.dir() + "/" + number + "/n-" + number + number
	tm := newTemplate(wire.OpCreate, &wire.CreateRequest{Path: []byte(path), Data: t.run.data, ACL: wire.OpenACL})
	return func(b []byte, s *session, at, _ int64) []byte {
		b, start := tm.append(b, t.take(s, at, true))
		tm.put(b, start, 0, uint32(s.index))
		tm.put(b, start, 1, s.serial/numbersMax)
		tm.put(b, start, 2, s.serial%numbersMax)
		s.serial++
		return b
	}
}

// fills makes each node of the tree once.
func (t *thread) fills() maker {
	path := t.run.Root + fillDir + "/" + number + "/" + number
	tm := newTemplate(wire.OpCreate, &wire.CreateRequest{Path: []byte(path), Data: t.run.data, ACL: wire.OpenACL})
	return func(b []byte, s *session, at, ordinal int64) []byte {
		b, start := tm.append(b, t.take(s, at, true))
		tm.put(b, start, 0, uint32(ordinal/foldersNodes))
		tm.put(b, start, 1, uint32(ordinal%foldersNodes))
		return b
	}
}

// folders is how many folders Children lists.
func (r *run) folders() int { return (r.Nodes + r.ChildrenPerNode - 1) / r.ChildrenPerNode }

// dir is a node of this run alone.
func (r *run) dir() string { return r.Root + "/" + r.Workload + "-" + r.id }

// randomData makes the data of all nodes: letters in no order, so that it does not compress well.
func randomData(n int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + random.IntN(26))
	}
	return b
}

// multiRequest is the record of a multi.
type multiRequest struct{ ops []wire.MultiOp }

func (m *multiRequest) Encode(e *jute.Encoder) { wire.AppendMulti(e, m.ops) }

func (m *multiRequest) Decode(d *jute.Decoder) {
	var err error
	m.ops, err = wire.DecodeMulti(d, nil)
	d.Fail(err)
}
