//go:build linux

package judge

import (
	"fmt"

	"zabra/integration/harness"
)

// groupKeys is the number of nodes in a key group. Multis stay within one group, so that groups can be judged one by one.
const groupKeys = 3

// Verb is one change or check of one node.
type Verb uint8

// The verbs.
const (
	Create Verb = iota + 1
	Set
	Delete
	Check
)

// Sub is one step of a write.
type Sub struct {
	Verb    Verb
	Key     int    // within the group
	Value   string // of Create and Set; no two are equal in a run
	Version int32  // of Set, Delete and Check; harness.AnyVersion fits all
}

// Op is one operation of a worker, with what was answered.
type Op struct {
	Worker, Group int
	Session       int64
	Xid           int32
	Call, Return  int64 // ns since the run began

	Write []Sub // more than one: a multi. Empty: a read
	Multi bool

	Key    int // of a read
	Synced bool
	Watch  bool

	// Known says that an answer arrived. Without one a write may have happened, may happen later, or never.
	Known bool
	Zxid  int64   // of the answer's header
	Codes []int32 // of each Sub, or of the read
	Stats []harness.Stat
	Value string // of a read that found the node; its stat is in Stats
}

func (o *Op) String() string {
	what := fmt.Sprintf("write %+v", o.Write)
	if len(o.Write) == 0 {
		what = fmt.Sprintf("read key %d (synced %v) -> %q", o.Key, o.Synced, o.Value)
	}
	return fmt.Sprintf("worker %d session %#x xid %d group %d: %s codes %v stats %+v zxid %#x known %v", o.Worker, uint64(o.Session), o.Xid, o.Group,
		what, o.Codes, o.Stats, uint64(o.Zxid), o.Known)
}

// Path returns the path of a key.
func Path(group, key int) string { return fmt.Sprintf("/judge-%d/k%d", group, key) }

// StepKind says what a worker noted.
type StepKind uint8

// The kinds of steps.
const (
	StepConnected StepKind = iota + 1 // a new connection: watches are gone
	StepAnswer                        // of Op
	StepEvent                         // a watch's event for Path
)

// Step is one entry of a worker's notes, which are in the order in which things arrived.
type Step struct {
	Kind StepKind
	Op   *Op
	Path string
	Zxid int64 // of an event: its cause, or -1
}

// Notes are what one worker saw.
type Notes struct {
	Worker int
	Steps  []Step
}

// Node is the state of one key.
type Node struct {
	Exists  bool
	Value   string
	Version int32
}

// Group is the state of a key group.
type Group [groupKeys]Node

const codeRuntimeInconsistency = -2 // of the steps of a multi behind the one that failed

// Apply carries out a write and returns the new state with the code and, where there is one, the version of each step.
func (g Group) Apply(write []Sub) (next Group, codes, versions []int32) {
	next = g
	codes, versions = make([]int32, len(write)), make([]int32, len(write))
	for i, sub := range write {
		if codes[i] = next.step(sub); codes[i] == harness.CodeOK {
			versions[i] = next[sub.Key].Version
			continue
		}
		for j := i + 1; j < len(write); j++ {
			codes[j] = codeRuntimeInconsistency
		}
		return g, codes, make([]int32, len(write))
	}
	return next, codes, versions
}

func (g *Group) step(s Sub) (code int32) {
	n := &g[s.Key]
	if s.Verb == Create {
		if n.Exists {
			return harness.CodeNodeExists
		}
		*n = Node{Exists: true, Value: s.Value}
		return harness.CodeOK
	}
	if !n.Exists {
		return harness.CodeNoNode
	}
	if s.Version != harness.AnyVersion && s.Version != n.Version {
		return harness.CodeBadVersion
	}
	switch s.Verb {
	case Set:
		n.Value, n.Version = s.Value, n.Version+1
	case Delete:
		*n = Node{}
	}
	return harness.CodeOK
}

// Explains says whether the answer of op is right when it is carried out in this state, and returns the state after it.
func (g Group) Explains(op *Op) (bool, Group) {
	if len(op.Write) == 0 {
		n := g[op.Key]
		if !n.Exists {
			return op.Codes[0] == harness.CodeNoNode, g
		}
		return op.Codes[0] == harness.CodeOK && op.Value == n.Value && op.Stats[0].Version == n.Version, g
	}
	next, codes, versions := g.Apply(op.Write)
	if !op.Known {
		return true, next
	}
	for i, sub := range op.Write {
		if op.Codes[i] != codes[i] || codes[i] == harness.CodeOK && sub.Verb == Set && succeeded(codes) && op.Stats[i].Version != versions[i] {
			return false, g
		}
	}
	return true, next
}

func succeeded(codes []int32) bool {
	for _, c := range codes {
		if c != harness.CodeOK {
			return false
		}
	}
	return true
}
