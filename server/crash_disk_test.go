package server_test

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"zabra/internal/storage/vfs"
)

// errPowerCut is what the calls of a server get whose machine has lost its power.
var errPowerCut = errors.New("power cut")

// gatedDisk is a disk on which every change waits until the test lets it happen. So the test decides in which order the
// goroutines of a server get on, and knows at each moment what is under way.
type gatedDisk struct {
	*ledger
	mem *vfs.Mem
	mu  struct {
		sync.Mutex
		waiting []*gatedOp
		open    bool // nothing waits
		dead    bool // everything fails
		ops     int  // changes that happened
		// cutAfter is the operation behind which cut is called, before the server knows its result.
		cutAfter *gatedOp
		cut      func()
	}
}

type gatedOp struct {
	vfs.Op
	leave chan error
}

func newGatedDisk(mem *vfs.Mem) *gatedDisk {
	fault := vfs.NewFault(mem)
	d := &gatedDisk{mem: mem, ledger: newLedger(fault)}
	fault.Inject(d.before)
	fault.Observe(d.after)
	return d
}

func (d *gatedDisk) before(op vfs.Op) error {
	d.mu.Lock()
	if d.mu.dead || d.mu.open || !op.Kind.Changes() {
		defer d.mu.Unlock()
		if d.mu.dead {
			return errPowerCut
		}
		return nil
	}
	w := &gatedOp{Op: op, leave: make(chan error)}
	d.mu.waiting = append(d.mu.waiting, w)
	d.mu.Unlock()
	return <-w.leave
}

func (d *gatedDisk) after(op vfs.Op, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if op.Kind.Changes() && err == nil {
		d.mu.ops++
	}
	if d.mu.cutAfter != nil && d.mu.cutAfter.Index == op.Index {
		d.mu.cut()
		d.mu.cutAfter = nil
	}
}

// waiting returns the changes that wait, in an order that does not depend on that of their goroutines.
func (d *gatedDisk) waiting() []*gatedOp {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := slices.Clone(d.mu.waiting)
	slices.SortFunc(list, func(a, b *gatedOp) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Off, b.Off), cmp.Compare(a.Len, b.Len))
	})
	return list
}

// release lets a change happen.
func (d *gatedDisk) release(w *gatedOp) {
	d.mu.Lock()
	d.mu.waiting = slices.DeleteFunc(d.mu.waiting, func(other *gatedOp) bool { return other == w })
	d.mu.Unlock()
	w.leave <- nil
}

// releaseAndCut lets a change happen and calls cut before the server knows.
func (d *gatedDisk) releaseAndCut(w *gatedOp, cut func()) {
	d.mu.Lock()
	d.mu.cutAfter, d.mu.cut = w, cut
	d.mu.Unlock()
	d.release(w)
}

// openGate lets everything happen at once, until it is closed again.
func (d *gatedDisk) openGate(open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.open = open
}

// kill makes everything fail from now on.
func (d *gatedDisk) kill() {
	d.mu.Lock()
	d.mu.dead = true
	waiting := d.mu.waiting
	d.mu.waiting = nil
	d.mu.Unlock()
	for _, w := range waiting {
		w.leave <- errPowerCut
	}
}
