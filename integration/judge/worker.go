//go:build linux

package judge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"zabra/integration/harness"
)

const (
	callLimit    = 2 * time.Second // one answer; a server that is suspended gives none
	connectLimit = time.Minute     // no ensemble is without a leader for that long between two faults
	sessionMs    = 8000            // short enough to expire now and then
	moveEvery    = 40              // operations, on average, between two changes of the server
)

// worker is one client of a key group.
type worker struct {
	id, group int
	client    *harness.Client
	rnd       *rand.Rand
	period    time.Duration // between two operations
	began     time.Time     // of the run

	notes   Notes
	all     []*Op // unknown outcomes included
	known   [groupKeys]harness.Stat
	values  int
	pause   time.Duration // the longest time without an answer
	answers int
}

func newWorker(id, group int, addrs []string, seed uint64, period time.Duration, began time.Time) *worker {
	w := &worker{id: id, group: group, period: period, began: began, notes: Notes{Worker: id}, rnd: rand.New(rand.NewPCG(seed, uint64(id)))}
	w.client = &harness.Client{Addrs: addrs, TimeoutMs: sessionMs, At: w.rnd.IntN(len(addrs))}
	w.client.OnEvent = func(path string, zxid int64) {
		w.notes.Steps = append(w.notes.Steps, Step{Kind: StepEvent, Path: path, Zxid: zxid})
	}
	return w
}

func (w *worker) now() int64 { return time.Since(w.began).Nanoseconds() }

// run works until told to stop.
func (w *worker) run(stop *atomic.Bool) error {
	defer w.client.End(callLimit)
	last := time.Now()
	for !stop.Load() {
		started := time.Now()
		if err := w.connect(); err != nil {
			return err
		}
		err := w.operate()
		if err == nil {
			w.pause, last = max(w.pause, time.Since(last)), time.Now()
			w.answers++
		} else if errors.Is(err, errProtocol) {
			return fmt.Errorf("worker %d: %w", w.id, err)
		}
		time.Sleep(time.Until(started.Add(between(w.rnd, w.period/2, w.period*3/2)))) // the rate of the load
	}
	return nil
}

// connect makes sure of a connection, now and then a new one to another server.
func (w *worker) connect() error {
	if w.client.Connected() && w.rnd.IntN(moveEvery) == 0 {
		w.client.Drop()
		w.client.At = w.rnd.IntN(len(w.client.Addrs))
	}
	if w.client.Connected() {
		return nil
	}
	w.notes.Steps = append(w.notes.Steps, Step{Kind: StepConnected})
	return w.client.Connect(connectLimit)
}

// errProtocol marks answers that no server may give.
var errProtocol = errors.New("an answer that is not allowed")

func (w *worker) operate() error {
	switch p := w.rnd.IntN(100); {
	case p < 30:
		return w.read(true, false)
	case p < 45:
		return w.read(false, w.rnd.IntN(2) == 0)
	case p < 58:
		return w.write(Sub{Verb: Set, Key: w.key(), Value: w.value(), Version: harness.AnyVersion})
	case p < 72:
		key := w.key()
		return w.write(Sub{Verb: Set, Key: key, Value: w.value(), Version: w.known[key].Version})
	case p < 80:
		return w.write(Sub{Verb: Create, Key: w.key(), Value: w.value()})
	case p < 86:
		key := w.key()
		return w.write(Sub{Verb: Delete, Key: key, Version: w.either(key)})
	default:
		return w.multi()
	}
}

func (w *worker) key() int { return w.rnd.IntN(groupKeys) }

func (w *worker) value() string {
	w.values++
	return fmt.Sprintf("%d.%d", w.id, w.values)
}

// either returns the version last seen, or any.
func (w *worker) either(key int) int32 {
	if w.rnd.IntN(2) == 0 {
		return harness.AnyVersion
	}
	return w.known[key].Version
}

func (w *worker) multi() error {
	a := w.key()
	b := (a + 1 + w.rnd.IntN(groupKeys-1)) % groupKeys
	switch w.rnd.IntN(4) {
	case 0: // both or none
		return w.write(Sub{Verb: Set, Key: a, Value: w.value(), Version: harness.AnyVersion}, Sub{Verb: Set, Key: b, Value: w.value(), Version: harness.AnyVersion})
	case 1: // one guards the other
		return w.write(Sub{Verb: Check, Key: a, Version: w.known[a].Version}, Sub{Verb: Set, Key: b, Value: w.value(), Version: harness.AnyVersion})
	case 2: // a move
		return w.write(Sub{Verb: Delete, Key: a, Version: w.either(a)}, Sub{Verb: Create, Key: b, Value: w.value()})
	default: // steps that see each other
		return w.write(Sub{Verb: Delete, Key: a, Version: harness.AnyVersion}, Sub{Verb: Create, Key: a, Value: w.value()},
			Sub{Verb: Set, Key: a, Value: w.value(), Version: 0})
	}
}

func (w *worker) begin(op *Op) *Op {
	op.Worker, op.Group, op.Session, op.Xid, op.Call = w.id, w.group, w.client.SessionID, w.client.NextXid(), w.now()
	return op
}

func (w *worker) write(subs ...Sub) error {
	op := w.begin(&Op{Write: subs, Multi: len(subs) > 1})
	w.all = append(w.all, op)
	reply, err := w.client.Do(op.Xid, w.frame(op), callLimit)
	op.Return = w.now()
	if err != nil {
		return err
	}
	if err := op.answered(reply); err != nil {
		return err
	}
	w.notes.Steps = append(w.notes.Steps, Step{Kind: StepAnswer, Op: op})
	for i, sub := range subs {
		if sub.Verb == Set && succeeded(op.Codes) {
			w.known[sub.Key] = op.Stats[i]
		}
	}
	return nil
}

func (w *worker) frame(op *Op) []byte {
	if op.Multi {
		subs := make([]harness.SubOp, len(op.Write))
		for i, s := range op.Write {
			code := map[Verb]int32{Create: harness.OpCreate, Set: harness.OpSetData, Delete: harness.OpDelete, Check: harness.OpCheck}[s.Verb]
			subs[i] = harness.SubOp{Op: code, Path: Path(op.Group, s.Key), Data: []byte(s.Value), Version: s.Version}
		}
		return harness.AppendMulti(nil, op.Xid, subs)
	}
	s := op.Write[0]
	path := Path(op.Group, s.Key)
	switch s.Verb {
	case Create:
		return harness.AppendCreate(nil, op.Xid, path, []byte(s.Value), 0)
	case Set:
		return harness.AppendSetVersion(nil, op.Xid, path, []byte(s.Value), s.Version)
	default:
		return harness.AppendDelete(nil, op.Xid, path, s.Version)
	}
}

// answered reads the answer of a write.
func (o *Op) answered(reply harness.Reply) error {
	o.Known, o.Zxid = true, reply.Zxid
	o.Codes, o.Stats = make([]int32, len(o.Write)), make([]harness.Stat, len(o.Write))
	if !o.Multi {
		if o.Codes[0] = reply.Code; !expected(reply.Code) {
			return fmt.Errorf("%w: %v", errProtocol, o)
		}
		var err error
		if o.Write[0].Verb == Set && reply.Code == harness.CodeOK {
			o.Stats[0], err = harness.ParseStat(reply.Body)
		}
		return err
	}
	results, err := harness.ParseMulti(reply.Body)
	if err != nil || len(results) != len(o.Write) {
		return fmt.Errorf("%w: a multi with code %d and %d results (%w): %v", errProtocol, reply.Code, len(results), err, o)
	}
	for i, r := range results {
		o.Codes[i], o.Stats[i] = r.Code, r.Stat
		if !expected(r.Code) && r.Code != codeRuntimeInconsistency {
			return fmt.Errorf("%w: %v", errProtocol, o)
		}
	}
	return nil
}

func expected(code int32) bool {
	switch code {
	case harness.CodeOK, harness.CodeNoNode, harness.CodeBadVersion, harness.CodeNodeExists:
		return true
	}
	return false
}

// read reads one key, behind a sync if it is to be as good as a write.
func (w *worker) read(synced, watch bool) error {
	key := w.key()
	call := w.now()
	if synced {
		xid := w.client.NextXid()
		reply, err := w.client.Do(xid, harness.AppendSync(nil, xid, Path(w.group, key)), callLimit)
		if err != nil {
			return err
		}
		if reply.Code != harness.CodeOK {
			return fmt.Errorf("%w: sync: code %d", errProtocol, reply.Code)
		}
	}
	op := w.begin(&Op{Key: key, Synced: synced, Watch: watch})
	op.Call = call
	reply, err := w.client.Do(op.Xid, harness.AppendGetWatch(nil, op.Xid, Path(w.group, key), watch), callLimit)
	op.Return = w.now()
	if err != nil {
		return err // a read without an answer has done nothing
	}
	op.Known, op.Zxid, op.Codes = true, reply.Zxid, []int32{reply.Code}
	switch reply.Code {
	case harness.CodeNoNode:
	case harness.CodeOK:
		data, stat, err := harness.ParseGet(reply.Body)
		if err != nil {
			return fmt.Errorf("%w: %w", errProtocol, err)
		}
		op.Value, op.Stats = string(data), []harness.Stat{stat}
		w.known[key] = stat
	default:
		return fmt.Errorf("%w: %v", errProtocol, op)
	}
	w.all = append(w.all, op)
	w.notes.Steps = append(w.notes.Steps, Step{Kind: StepAnswer, Op: op})
	return nil
}
