package replica

import (
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// watch sets a one-shot watch. An outgoing connection gets none: nobody would take it away again.
func (rd *reader) watch(table znode.WatchTable, path []byte) {
	rd.c.watches.Add(rd.c.watcher, table, path, znode.WatchStandard)
}

func (rd *reader) addWatch() {
	var req wire.AddWatchRequest
	req.Decode(&rd.d)
	const modePersistent, modeRecursive = 0, 1
	if rd.d.Err() != nil || (req.Mode != modePersistent && req.Mode != modeRecursive) {
		rd.header(wire.CodeMarshalling)
		return
	}
	rd.c.watches.AddWatch(rd.c.watcher, req.Path, req.Mode == modeRecursive)
	reply := wire.ErrorReply{Err: wire.CodeOK}
	reply.Encode(rd.header(wire.CodeOK))
}

// watchType answers checkWatches, which only looks, and removeWatches.
func (rd *reader) watchType() {
	var req wire.WatchTypeRequest
	req.Decode(&rd.d)
	if rd.d.Err() != nil || req.Type < znode.WatchTypeChildren || req.Type > znode.WatchTypeRecursive {
		rd.header(wire.CodeMarshalling)
		return
	}
	w := rd.c.watches
	found := false
	if rd.op == wire.OpCheckWatches {
		found = w.Has(rd.c.watcher, req.Path, req.Type)
	} else {
		found = w.Remove(rd.c.watcher, req.Path, req.Type)
	}
	if !found {
		rd.header(wire.CodeNoWatcher)
		return
	}
	rd.header(wire.CodeOK)
}

// setWatches registers again what a client watched before it lost its connection, or tells at once what it missed. The
// lists are worked through in the order of the record. Nothing is checked against ACLs here, as in ZooKeeper.
func (rd *reader) setWatches() {
	var req wire.SetWatchesRequest
	if rd.op == wire.OpSetWatches {
		req.DecodeV1(&rd.d)
	} else {
		req.Decode(&rd.d)
	}
	if rd.d.Err() != nil {
		rd.header(wire.CodeMarshalling)
		return
	}
	for list, paths := range [...][][]byte{req.Data, req.Exist, req.Child, req.Persistent, req.Recursive} {
		ok := paths != nil
		for i := 0; ok && i < len(paths); i++ {
			ok = rd.setAgain(list, paths[i], req.RelativeZxid)
		}
		if !ok { // what stands before a null list or path has had its effect, as in ZooKeeper
			rd.header(wire.CodeMarshalling)
			return
		}
	}
	rd.header(wire.CodeOK)
}

// setAgain sets a watch of one of the lists of a setWatches request, which are numbered in the order of the record. It
// reports false for a null path where the node would have to be looked at.
func (rd *reader) setAgain(list int, path []byte, since zxid.Zxid) bool {
	const data, exist, child, recursive = 0, 1, 2, 4
	if path == nil && list <= child {
		return false
	}
	switch list {
	case data:
		rd.rearm(path, znode.TableData, wire.EventNodeDataChanged, since)
	case exist:
		if _, ok := rd.tree.Find(path); ok {
			rd.tell(wire.EventNodeCreated, path)
			break
		}
		rd.watch(znode.TableData, path)
	case child:
		rd.rearm(path, znode.TableChild, wire.EventNodeChildrenChanged, since)
	default:
		rd.c.watches.AddWatch(rd.c.watcher, path, list == recursive)
	}
	return true
}

// rearm sets a data or child watch, unless its event has happened since the zxid that the client has seen.
func (rd *reader) rearm(path []byte, table znode.WatchTable, changed wire.EventType, since zxid.Zxid) {
	n, ok := rd.tree.Find(path)
	if !ok {
		rd.tell(wire.EventNodeDeleted, path)
		return
	}
	st := rd.tree.Stat(n)
	last := st.Mzxid
	if table == znode.TableChild {
		last = st.Pzxid
	}
	if last > since {
		rd.tell(changed, path)
		return
	}
	rd.watch(table, path)
}

// tell sends an event of the past. It carries no zxid.
func (rd *reader) tell(t wire.EventType, path []byte) {
	rd.c.appendFrame(znode.NewEvent(t, path, -1, nil).Frame())
}
