package sim

import (
	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

// watchKind says what a watch waits for.
type watchKind uint8

const (
	watchData  watchKind = iota // of a node that is there: its data or its end
	watchExist                  // of a node that is not there: its creation
	watchChild                  // its children or its end
)

// watch is a promise: the client is told of the first change after setAt before it sees anything of it.
type watch struct {
	path  string
	kind  watchKind
	setAt zxid.Zxid
}

func (w *watch) waitsFor() changeKind {
	switch w.kind {
	case watchExist:
		return changeCreated
	case watchChild:
		return changeChildren | changeDeleted
	}
	return changeData | changeDeleted
}

// noteWatch takes note of a watch that a reply has confirmed.
func (c *client) noteWatch(path string, kind watchKind, at zxid.Zxid) {
	for _, w := range c.watches {
		if w.path == path && w.kind == kind {
			return
		}
	}
	c.watches = append(c.watches, &watch{path: path, kind: kind, setAt: at})
}

// receiveEvent is WATCH for events: an event has a watch behind it, and a change of its own kind.
func (c *client) receiveEvent(d *jute.Decoder) {
	var ev wire.WatcherEvent
	ev.Decode(d)
	path := string(ev.Path)
	c.w.noteText(0, "client", "%d gets %v %s", c.index, ev.Type, path)
	c.w.count.WatchesFired++
	kept, found, changed := c.watches[:0], false, false
	for _, w := range c.watches {
		if w.path != path || !w.firesOn(ev.Type) {
			kept = append(kept, w)
			continue
		}
		found = true
		if _, ok := c.w.ghost.firstAfter(path, w.setAt, changesOf(ev.Type)); ok {
			changed = true
		}
	}
	c.watches = kept
	if !found || !changed {
		c.w.fail("WATCH", "client %d is told %v of %s; it watches: %t, it has changed: %t", c.index, ev.Type, path, found, changed)
	}
}

// changesOf says which changes an event can tell of. A client that comes back after a node was deleted and created again
// is told that its data, or its children, have changed.
func changesOf(t wire.EventType) changeKind {
	switch t {
	case wire.EventNodeCreated:
		return changeCreated
	case wire.EventNodeDeleted:
		return changeDeleted
	case wire.EventNodeDataChanged:
		return changeData | changeCreated
	}
	return changeChildren | changeCreated
}

func (w *watch) firesOn(t wire.EventType) bool {
	switch t {
	case wire.EventNodeDeleted:
		return true
	case wire.EventNodeChildrenChanged:
		return w.kind == watchChild
	}
	return w.kind != watchChild
}

// checkWatches is the watch promise: when the client sees the state of z, it has been told of all it watches.
func (c *client) checkWatches(z zxid.Zxid) {
	for _, w := range c.watches {
		if ch, ok := c.w.ghost.firstAfter(w.path, w.setAt, w.waitsFor()); ok && ch.z <= z {
			c.w.fail("WATCH", "client %d sees the state of %v, and was not told that %s has changed at %v, which it watches since %v", c.index, z,
				w.path, ch.z, w.setAt)
		}
	}
}

// setWatches names all watches to a server that the client has come to.
func (c *client) setWatches() {
	req := &wire.SetWatchesRequest{RelativeZxid: c.lastSeen, Data: [][]byte{}, Exist: [][]byte{}, Child: [][]byte{}}
	for _, w := range c.watches {
		switch path := []byte(w.path); w.kind {
		case watchData:
			req.Data = append(req.Data, path)
		case watchExist:
			req.Exist = append(req.Exist, path)
		case watchChild:
			req.Child = append(req.Child, path)
		}
	}
	c.request(&request{op: wire.OpSetWatches, xid: wire.XidSetWatches, watches: req})
}

// watchesSet takes the answer to setWatches. A node that came and went while the client was away is not told of, as in
// ZooKeeper: an exists watch goes on from here.
func (c *client) watchesSet(z zxid.Zxid) {
	for _, w := range c.watches {
		if w.kind == watchExist && !c.w.ghost.at(w.path, z).exists {
			w.setAt = max(w.setAt, z)
		}
	}
}
