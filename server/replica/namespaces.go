package replica

import (
	"bytes"
	"sync"
	"sync/atomic"

	"zabra/internal/histogram"
)

// Namespace is what is counted for one namespace: a node below the root with all that is below it.
type Namespace struct {
	name string // empty for all those together that found no room
	// Read and Write are how many bytes each read and write moved: path and data, for a read 68 for the stat, too.
	Read, Write histogram.Histogram
	// QuotaExceeded counts the writes that a quota has refused.
	QuotaExceeded atomic.Int64
}

// OtherNamespaces is the name under which everything is counted beyond the first namespaces: a client may make as many
// nodes below the root as it likes, and each that is counted takes 4 KB.
const OtherNamespaces = "_other_"

// Name is the name of the node, or OtherNamespaces.
func (n *Namespace) Name() string {
	if n.name == "" {
		return OtherNamespaces
	}
	return n.name
}

// Namespaces finds the counts of a namespace: without a lock once they are there, so that it may be done for each request.
// The zero value is empty.
type Namespaces struct {
	slots  [namespaceSlots]atomic.Pointer[Namespace]
	adding sync.Mutex
	count  atomic.Int32
	others Namespace
}

// of returns the namespace of a path, nil for the root. last remembers it for the next request, which mostly is for the same.
func (t *Namespaces) of(path []byte, last **Namespace) *Namespace {
	if n := *last; n != nil && n.holds(path) {
		return n
	}
	n := t.find(path)
	*last = n
	return n
}

// holds reports whether a path is that of the namespace or below it.
func (n *Namespace) holds(path []byte) bool {
	end := 1 + len(n.name)
	return len(path) >= end && path[0] == '/' && string(path[1:end]) == n.name && (len(path) == end || path[end] == '/')
}

func (t *Namespaces) find(path []byte) *Namespace {
	if len(path) < 2 || path[0] != '/' {
		return nil
	}
	name := path[1:]
	if i := bytes.IndexByte(name, '/'); i >= 0 {
		name = name[:i]
	}
	if len(name) == 0 {
		return nil
	}
	if len(name) > namespaceBytesMax {
		return &t.others
	}
	if n, _ := t.lookUp(name); n != nil {
		return n
	}
	if t.count.Load() >= NamespacesMax {
		return &t.others
	}
	return t.add(name)
}

// lookUp returns a namespace, or nil and the slot that is free for it. There are more slots than namespaces.
func (t *Namespaces) lookUp(name []byte) (n *Namespace, free uint32) {
	for slot := namespaceHash(name); ; slot = (slot + 1) % namespaceSlots {
		if n := t.slots[slot].Load(); n == nil || n.name == string(name) {
			return n, slot
		}
	}
}

// add makes room for a namespace that was not found, if there is any.
func (t *Namespaces) add(name []byte) *Namespace {
	t.adding.Lock()
	defer t.adding.Unlock()
	n, slot := t.lookUp(name)
	switch {
	case n != nil: // somebody was faster
		return n
	case t.count.Load() >= NamespacesMax:
		return &t.others
	}
	n = &Namespace{name: string(name)}
	t.slots[slot].Store(n)
	t.count.Add(1)
	return n
}

// List returns the namespaces that were counted, in no order that means anything; last those that found no room, if there
// are any.
func (t *Namespaces) List() []*Namespace {
	var list []*Namespace
	for i := range t.slots {
		if n := t.slots[i].Load(); n != nil {
			list = append(list, n)
		}
	}
	if o := &t.others; o.Read.Total().Count+o.Write.Total().Count > 0 || o.QuotaExceeded.Load() > 0 {
		list = append(list, o)
	}
	return list
}

// namespaceHash is FNV-1a.
func namespaceHash(name []byte) uint32 {
	h := uint32(2166136261)
	for _, b := range name {
		h = (h ^ uint32(b)) * 16777619
	}
	return h % namespaceSlots
}
