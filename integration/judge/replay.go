//go:build linux

package judge

import (
	"fmt"
	"sort"

	"zabra/integration/harness"
)

// request names one request of one session for good: workers never use an xid twice in a session.
type request struct {
	session int64
	xid     int32
}

// Merge puts the logs of all servers together and returns every transaction once, in zxid order. What two servers
// logged under one zxid must be the same, byte for byte, and within an epoch no zxid may be missing.
func Merge(logs [][]Txn) ([]Txn, error) {
	seen := map[int64]Txn{}
	for server, log := range logs {
		for i, t := range log {
			if i > 0 && t.Zxid <= log[i-1].Zxid {
				return nil, fmt.Errorf("server %d: %#x is logged behind %#x", server+1, uint64(t.Zxid), uint64(log[i-1].Zxid))
			}
			if other, known := seen[t.Zxid]; known && other.identity != t.identity {
				return nil, fmt.Errorf("server %d: %#x is another transaction than on a server before it:\n%q\n%q", server+1, uint64(t.Zxid), t.identity, other.identity)
			}
			seen[t.Zxid] = t
		}
	}
	all := make([]Txn, 0, len(seen))
	for _, t := range seen {
		all = append(all, t)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Zxid < all[j].Zxid })
	for i, t := range all {
		previous := int64(0)
		if i > 0 {
			previous = all[i-1].Zxid
		}
		if first := t.Zxid>>32<<32 + 1; t.Zxid != previous+1 && t.Zxid != first {
			return nil, fmt.Errorf("between %#x and %#x transactions are missing", uint64(previous), uint64(t.Zxid))
		}
	}
	return all, nil
}

// version is what a path was from a zxid on.
type version struct {
	zxid int64
	node harness.Stat
	data string
	gone bool
}

// Replay is the history of all paths that the transactions give.
type Replay struct {
	txns  map[request]*Txn
	paths map[string][]version // ascending
}

// NewReplay replays transactions in zxid order. That one request has more than one is an error.
func NewReplay(txns []Txn) (*Replay, error) {
	r := &Replay{txns: map[request]*Txn{}, paths: map[string][]version{}}
	for i := range txns {
		t := &txns[i]
		if len(t.Changes) > 0 || t.Code != 0 {
			key := request{t.Session, t.Cxid}
			if other := r.txns[key]; other != nil && t.Session != 0 {
				return nil, fmt.Errorf("session %#x xid %d was carried out twice, at %#x and %#x", uint64(t.Session), t.Cxid, uint64(other.Zxid), uint64(t.Zxid))
			}
			r.txns[key] = t
		}
		if err := r.apply(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Replay) apply(t *Txn) error {
	for _, c := range t.Changes {
		if c.Type == txnError {
			return nil // of a multi that failed: nothing of it happens
		}
	}
	for _, c := range t.Changes {
		now, exists := r.at(c.Path, t.Zxid)
		if exists == (c.Type == TxnCreate) {
			return fmt.Errorf("%#x: type %d of %s, which exists: %v", uint64(t.Zxid), c.Type, c.Path, exists)
		}
		next := version{zxid: t.Zxid, data: c.Value, node: harness.Stat{Czxid: now.node.Czxid, Mzxid: t.Zxid, Version: c.Version}}
		switch c.Type {
		case TxnCreate:
			next.node.Czxid = t.Zxid
		case TxnSet:
			if c.Version != now.node.Version+1 {
				return fmt.Errorf("%#x: %s goes from version %d to %d", uint64(t.Zxid), c.Path, now.node.Version, c.Version)
			}
		case TxnDelete:
			next = version{zxid: t.Zxid, gone: true}
		default:
			continue
		}
		r.paths[c.Path] = append(r.paths[c.Path], next)
	}
	return nil
}

// at returns what a path was once everything up to zxid was applied.
func (r *Replay) at(path string, zxid int64) (v version, exists bool) {
	all := r.paths[path]
	i := sort.Search(len(all), func(i int) bool { return all[i].zxid > zxid })
	if i == 0 {
		return version{}, false
	}
	return all[i-1], !all[i-1].gone
}

// changedAfter returns the zxid of the first change of a path behind zxid, or false.
func (r *Replay) changedAfter(path string, zxid int64) (int64, bool) {
	all := r.paths[path]
	i := sort.Search(len(all), func(i int) bool { return all[i].zxid > zxid })
	if i == len(all) {
		return 0, false
	}
	return all[i].zxid, true
}

// Check compares everything that a worker was told with the replay.
func (r *Replay) Check(n Notes) (broken []error) {
	watched := map[string]int64{} // the zxid of the answer that set the watch
	for i, step := range n.Steps {
		var err error
		switch step.Kind {
		case StepConnected:
			clear(watched)
		case StepEvent:
			err = r.checkEvent(step, watched)
			delete(watched, step.Path)
		case StepAnswer:
			err = r.checkAnswer(step.Op)
			if err == nil {
				err = r.checkWatches(step.Op, watched)
			}
			if op := step.Op; op.Watch && op.Codes[0] == harness.CodeOK {
				watched[Path(op.Group, op.Key)] = op.Zxid
			}
		}
		if err != nil {
			broken = append(broken, fmt.Errorf("worker %d, step %d: %w", n.Worker, i, err))
		}
	}
	return broken
}

// checkWatches reports an answer that is as new as the change of a watched path whose event has not come.
func (r *Replay) checkWatches(op *Op, watched map[string]int64) error {
	for path, since := range watched {
		if changed, ok := r.changedAfter(path, since); ok && changed <= op.Zxid {
			delete(watched, path)
			return fmt.Errorf("%s, watched at %#x, changed at %#x, and no event came before %v", path, uint64(since), uint64(changed), op)
		}
	}
	return nil
}

func (r *Replay) checkEvent(step Step, watched map[string]int64) error {
	since, set := watched[step.Path]
	if !set {
		return nil // CheckPromises reports it
	}
	changed, ok := r.changedAfter(step.Path, since)
	if !ok || step.Zxid > 0 && step.Zxid != changed {
		return fmt.Errorf("an event of %#x for %s, watched at %#x, which changed at %#x (%v)", uint64(step.Zxid), step.Path, uint64(since), uint64(changed), ok)
	}
	return nil
}

func (r *Replay) checkAnswer(op *Op) error {
	if len(op.Write) == 0 {
		return r.checkRead(op)
	}
	t := r.txns[request{op.Session, op.Xid}]
	if t == nil {
		return fmt.Errorf("an acknowledged write is in no log: %v", op)
	}
	if t.Zxid != op.Zxid {
		return fmt.Errorf("logged at %#x: %v", uint64(t.Zxid), op)
	}
	if !op.Multi {
		if t.Code != op.Codes[0] {
			return fmt.Errorf("logged with code %d: %v", t.Code, op)
		}
		if t.Code != 0 {
			return nil
		}
	}
	if len(t.Changes) != len(op.Write) {
		return fmt.Errorf("logged with %d changes: %v", len(t.Changes), op)
	}
	for i, c := range t.Changes {
		if err := checkChange(op, i, c); err != nil {
			return err
		}
	}
	return nil
}

func checkChange(op *Op, i int, c Change) error {
	sub := op.Write[i]
	kind := map[Verb]int32{Create: TxnCreate, Set: TxnSet, Delete: TxnDelete, Check: TxnCheck}[sub.Verb]
	wrong := c.Code != op.Codes[i]
	if c.Type != txnError {
		wrong = wrong || c.Type != kind || c.Path != Path(op.Group, sub.Key) || c.Value != sub.Value
	}
	if sub.Verb == Set && succeeded(op.Codes) {
		wrong = wrong || op.Stats[i].Version != c.Version
	}
	if wrong {
		return fmt.Errorf("change %d was logged as %+v: %v", i, c, op)
	}
	return nil
}

func (r *Replay) checkRead(op *Op) error {
	v, exists := r.at(Path(op.Group, op.Key), op.Zxid)
	if found := op.Codes[0] == harness.CodeOK; found != exists || found && (op.Value != v.data || op.Stats[0] != v.node) {
		return fmt.Errorf("at that zxid the log gives %q, %+v, exists %v: %v", v.data, v.node, exists, op)
	}
	return nil
}

// Final returns what a path is behind the last transaction.
func (r *Replay) Final(path string) (data string, stat harness.Stat, exists bool) {
	v, exists := r.at(path, 1<<62)
	return v.data, v.node, exists
}
