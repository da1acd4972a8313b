//go:build linux

package judge

import (
	"fmt"

	"zabra/integration/harness"
)

// CheckPromises looks at what one worker saw, without knowing what others did, and returns what must not be.
func CheckPromises(n Notes) (broken []error) {
	s := sight{watches: map[string]int64{}, written: map[string]int64{}}
	for i, step := range n.Steps {
		if err := s.see(step); err != nil {
			broken = append(broken, fmt.Errorf("worker %d, step %d: %w", n.Worker, i, err))
		}
	}
	return broken
}

// sight is what a session knows.
type sight struct {
	zxid      int64            // the highest of all answers
	writeZxid int64            // of its last write
	watches   map[string]int64 // set on this connection and not fired: mzxid of the node then
	written   map[string]int64 // the zxid of its last successful change of a path
}

func (s *sight) see(step Step) error {
	switch step.Kind {
	case StepConnected:
		clear(s.watches)
		return nil
	case StepEvent:
		if _, set := s.watches[step.Path]; !set {
			return fmt.Errorf("an event for %s, which is not watched", step.Path)
		}
		delete(s.watches, step.Path)
		return nil
	default:
		return s.answer(step.Op)
	}
}

func (s *sight) answer(op *Op) error {
	if op.Zxid < s.zxid {
		return fmt.Errorf("the zxid went back from %#x: %v", uint64(s.zxid), op)
	}
	s.zxid = op.Zxid
	if len(op.Write) == 0 {
		return s.read(op)
	}
	if op.Zxid <= s.writeZxid {
		return fmt.Errorf("a write after %#x was given no later zxid: %v", uint64(s.writeZxid), op)
	}
	s.writeZxid = op.Zxid
	if !succeeded(op.Codes) {
		return nil
	}
	for i, sub := range op.Write {
		if sub.Verb != Check {
			s.written[Path(op.Group, sub.Key)] = op.Zxid
		}
		if sub.Verb == Set && op.Stats[i].Mzxid != op.Zxid {
			return fmt.Errorf("a set answers with mzxid %#x: %v", uint64(op.Stats[i].Mzxid), op)
		}
	}
	return nil
}

func (s *sight) read(op *Op) error {
	path := Path(op.Group, op.Key)
	mzxid, found := int64(-1), op.Codes[0] == harness.CodeOK
	if found {
		mzxid = op.Stats[0].Mzxid
	}
	if was, set := s.watches[path]; set && mzxid != was {
		delete(s.watches, path)
		return fmt.Errorf("%s was watched at mzxid %#x and is shown changed before the event: %v", path, uint64(was), op)
	}
	if mzxid > op.Zxid {
		return fmt.Errorf("a read shows a later mzxid than its own zxid: %v", op)
	}
	if found && mzxid < s.written[path] {
		return fmt.Errorf("the session wrote %s at %#x and does not see it: %v", path, uint64(s.written[path]), op)
	}
	if found && op.Watch {
		s.watches[path] = mzxid
	}
	return nil
}
