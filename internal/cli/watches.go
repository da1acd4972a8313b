package cli

import (
	"slices"
	"sync"

	"zabra/wire"
	"zabra/zab/zxid"
)

// watchKind is what a watch of this client looks at. The first three end with their first event.
type watchKind int

const (
	watchData watchKind = iota
	watchExist
	watchChild
	watchPersistent
	watchRecursive
	watchKinds
)

// watchSet knows which watches the session has, by the paths that the server sees. A server forgets them with the
// connection, so that they have to be set again on the next one.
type watchSet struct {
	mu    sync.Mutex
	paths [watchKinds]map[string]bool
}

// add enters a watch and reports whether it is new.
func (w *watchSet) add(kind watchKind, path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paths[kind] == nil {
		w.paths[kind] = map[string]bool{}
	}
	if w.paths[kind][path] {
		return false
	}
	w.paths[kind][path] = true
	return true
}

func (w *watchSet) remove(kind watchKind, path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := w.paths[kind][path]
	delete(w.paths[kind], path)
	return had
}

func (w *watchSet) has(kind watchKind, path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paths[kind][path]
}

// fired takes away what an event has used up.
func (w *watchSet) fired(event wire.EventType, path string) {
	switch event {
	case wire.EventNodeChildrenChanged:
		w.remove(watchChild, path)
	case wire.EventNodeDeleted:
		w.remove(watchChild, path)
		w.remove(watchData, path)
		w.remove(watchExist, path)
	case wire.EventNodeCreated, wire.EventNodeDataChanged:
		w.remove(watchData, path)
		w.remove(watchExist, path)
	}
}

// request is what sets all watches again, nil if there are none.
func (w *watchSet) request(seen zxid.Zxid) *wire.SetWatchesRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lists [watchKinds][][]byte
	some := false
	for kind, paths := range w.paths {
		lists[kind] = [][]byte{}
		for path := range paths {
			lists[kind] = append(lists[kind], []byte(path))
			some = true
		}
		slices.SortFunc(lists[kind], slices.Compare)
	}
	if !some {
		return nil
	}
	return &wire.SetWatchesRequest{
		RelativeZxid: seen, Data: lists[watchData], Exist: lists[watchExist], Child: lists[watchChild],
		Persistent: lists[watchPersistent], Recursive: lists[watchRecursive],
	}
}

// removal is a kind of watches that removewatches can name.
type removal struct {
	wireType int32
	kinds    []watchKind
}

var removals = map[string]removal{
	"a": {wire.WatchTypeAny, []watchKind{watchChild, watchData, watchExist, watchPersistent, watchRecursive}},
	"c": {wire.WatchTypeChildren, []watchKind{watchChild}},
	"d": {wire.WatchTypeData, []watchKind{watchData, watchExist}},
	"p": {wire.WatchTypePersistent, []watchKind{watchPersistent}},
	"r": {wire.WatchTypePersistentRecursive, []watchKind{watchRecursive}},
}

// removedEvents are what clients tell themselves when a watch of the kind is gone.
var removedEvents = [watchKinds]string{
	"DataWatchRemoved", "DataWatchRemoved", "ChildWatchRemoved", "PersistentWatchRemoved", "PersistentWatchRemoved",
}
