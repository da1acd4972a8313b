package znode

import (
	"encoding/binary"
	"errors"
	"hash"

	"zabra/internal/adler"
	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

// A snapshot is ZooKeeper's:
//
//	header     magic "ZKSN", version 2, -1                            4+4+8 bytes
//	sessions   count, then id and timeout in ms                       4, 8+4 each
//	ACLs       count, then id and list                                4, 8+... each
//	nodes      path, data, ACL id, stat; parents first, root as ""
//	           path "/", which ends them
//	seal       Adler-32 of everything before, "/"                     8+5
//	digest     zxid, version 2, digest, then a seal; optional         8+4+8, 8+5
//	last zxid  zxid, then a seal; optional                            8, 8+5
const (
	snapshotMagic   = 0x5a4b534e
	snapshotVersion = 2
	snapshotDBID    = -1

	snapshotSealBytes   = 8 + 5
	snapshotZxidBytes   = 8 + snapshotSealBytes
	snapshotDigestBytes = 8 + 4 + 8 + snapshotSealBytes
	storedStatBytes     = 60
	// storedBodyBytes is what follows a node's data: the ACL id and the stat.
	storedBodyBytes = 8 + storedStatBytes
)

// ErrSnapshotOpen says that a snapshot is open already.
var ErrSnapshotOpen = errors.New("znode: a snapshot is open already")

// SnapshotOptions chooses the optional blocks at a snapshot's end. Apache servers must be configured alike to read it.
type SnapshotOptions struct {
	// Digest writes the tree's digest.
	Digest bool
	// LastZxid writes the last applied zxid, as ZooKeeper does since 3.9.
	LastZxid bool
}

// Snapshot writes the tree as it was at OpenSnapshot while transactions go on being applied. It belongs to one goroutine,
// which need not be the one that changes the tree.
//
// ZooKeeper's own snapshots are fuzzy: they contain parts of later transactions, which is why a replay has to cope with
// them. This one is not: the name's zxid, that of the digest block and the content agree, so a reader can compare the
// digest at once. Three things make it so. The sessions and the table of ACLs are copied when it is opened; pages of
// nodes are copied before their first change (nodeStore); and blobs that it may still read are not freed (dropBlob).
type Snapshot struct {
	t      *Tree
	opt    SnapshotOptions
	zxid   zxid.Zxid
	digest uint64

	sessions []session
	acls     []aclEntry // by position; for those of nodes and to be written
	aclCount int

	stage    snapshotStage
	sent     int // sessions or ACLs written in this stage
	node     Node
	path     []byte
	checksum hash.Hash32
}

type snapshotStage uint8

const (
	stageHeader snapshotStage = iota
	stageSessions
	stageACLs
	stageNodes
	stageTail
	stageDone
)

// OpenSnapshot begins a snapshot of the tree as it is now. It is called by the goroutine that changes the tree, between
// changes and without the lock. Its cost depends on the sessions and ACLs; from now on the first change of each page of
// nodes copies it, and memory for names and data is not used again, until Close. Only one can be open.
func (t *Tree) OpenSnapshot(opt SnapshotOptions) (*Snapshot, error) {
	t.Lock()
	defer t.Unlock()
	if t.snapshot != nil {
		return nil, ErrSnapshotOpen
	}
	s := &Snapshot{
		t: t, opt: opt, zxid: t.lastZxid, digest: t.digest,
		sessions: append([]session(nil), t.sessions.list...),
		acls:     append([]aclEntry(nil), t.acls.entries...),
		aclCount: len(t.acls.entries) - 1 - len(t.acls.unused) - t.acls.dangling,
		node:     rootNode, checksum: adler.New(),
	}
	t.nodes.openCopies()
	t.snapshot = s
	return s, nil
}

// Zxid returns the last transaction that the snapshot contains. It belongs into the file's name.
func (s *Snapshot) Zxid() zxid.Zxid { return s.zxid }

// Digest returns the digest of the tree that the snapshot shows.
func (s *Snapshot) Digest() uint64 { return s.digest }

// Close ends the snapshot, whether or not it was read to its end, and lets the tree use its memory again. The caller
// does not hold the tree's lock. Further calls do nothing.
func (s *Snapshot) Close() {
	t := s.t
	t.Lock()
	defer t.Unlock()
	if t.snapshot != s {
		return
	}
	t.snapshot = nil
	t.nodes.closeCopies()
	if len(t.reclaim) == 0 {
		t.reclaim, t.deferred = t.deferred, nil
	} else {
		t.reclaim = append(t.reclaim, t.deferred...)
		t.deferred = nil
	}
	s.stage = stageDone
}

// Next appends about budget bytes of the snapshot to b (at least something, at most about 1 MiB, and as much more as one
// node has data) and reports whether that was the end. It takes the tree's read lock by itself, for short stretches. It
// fails after Close.
func (s *Snapshot) Next(b []byte, budget int) ([]byte, bool, error) {
	if s.stage == stageDone {
		return b, true, errors.New("znode: snapshot is closed or at its end")
	}
	start, summed := len(b), len(b)
	end := start + min(max(budget, 1), snapshotStepBytesMax)
	for s.stage < stageTail && len(b) < end {
		b = s.step(b, end)
	}
	if s.stage == stageTail && len(b) < end {
		b, summed = s.appendTail(b, summed)
		s.stage = stageDone
	}
	s.checksum.Write(b[summed:])
	return b, s.stage == stageDone, nil
}

// step appends some of the current stage, up to a length of about end.
func (s *Snapshot) step(b []byte, end int) []byte {
	var e jute.Encoder
	e.Reset(b)
	switch s.stage {
	case stageHeader:
		e.Int32(snapshotMagic)
		e.Int32(snapshotVersion)
		e.Int64(snapshotDBID)
		// ZooKeeper writes them in any order; sorted, equal states give equal files.
		sortSessions(s.sessions)
		e.Count(len(s.sessions))
		s.stage = stageSessions
	case stageSessions:
		for ; s.sent < len(s.sessions) && e.Len() < end; s.sent++ {
			e.Int64(int64(s.sessions[s.sent].id))
			e.Int32(s.sessions[s.sent].timeoutMs)
		}
		if s.sent == len(s.sessions) {
			e.Count(s.aclCount)
			s.stage, s.sent, s.sessions = stageACLs, 1, nil
		}
	case stageACLs:
		for ; s.sent < len(s.acls) && e.Len() < end; s.sent++ {
			if a := &s.acls[s.sent]; a.key != "" {
				e.Int64(a.id)
				wire.AppendACLs(&e, a.list.Entries())
			}
		}
		if s.sent == len(s.acls) {
			s.stage = stageNodes
		}
	case stageNodes:
		s.appendNodes(&e, min(end, e.Len()+snapshotHoldBytes))
	}
	return e.Bytes()
}

// appendNodes writes nodes up to a length of about end under the read lock.
func (s *Snapshot) appendNodes(e *jute.Encoder, end int) {
	const shard = 0
	s.t.RLock(shard)
	defer s.t.RUnlock(shard)
	for e.Len() < end && s.stage == stageNodes {
		n := s.t.nodes.before(s.node)
		s.appendNode(e, n)
		s.advance(n)
	}
	if s.stage != stageNodes {
		e.String(RootPath)
	}
}

// appendNode writes one node. The id of its ACL comes from the copy of the table: by now, the position may belong to
// another list.
func (s *Snapshot) appendNode(e *jute.Encoder, n *node) {
	blob := s.t.blobs.get(n.blob, n.blobLen())
	if s.path == nil {
		e.String("") // the root
	} else {
		e.UString(s.path)
	}
	if n.dataLen < 0 {
		e.Buffer(nil)
	} else {
		e.Buffer(blob[n.nameLen:])
	}
	e.Int64(s.acls[n.acl].id)
	e.Int64(n.czxid)
	e.Int64(n.mzxid)
	e.Int64(n.ctime)
	e.Int64(n.mtime)
	e.Int32(n.version)
	e.Int32(n.cversion)
	e.Int32(n.aversion)
	e.Int64(n.owner)
	e.Int64(n.pzxid)
}

// advance goes from a node to the next one, parents before children, in the tree of OpenSnapshot.
func (s *Snapshot) advance(n *node) {
	nodes := &s.t.nodes
	next := n.firstChild
	for next == noNode {
		if s.node == rootNode {
			s.stage = stageTail
			return
		}
		next = n.next
		s.path = s.path[:len(s.path)-1-int(n.nameLen)]
		if next == noNode {
			s.node = n.parent
			n = nodes.before(s.node)
		}
	}
	s.node = next
	n = nodes.before(next)
	s.path = append(append(s.path, '/'), s.t.name(n)...)
}

// appendTail writes what follows the nodes. Bytes from summed on are not in the checksum yet.
func (s *Snapshot) appendTail(b []byte, summed int) ([]byte, int) {
	seal := func() {
		s.checksum.Write(b[summed:])
		summed = len(b)
		b = binary.BigEndian.AppendUint64(b, uint64(s.checksum.Sum32()))
		b = binary.BigEndian.AppendUint32(b, uint32(len(RootPath)))
		b = append(b, RootPath...)
	}
	seal()
	if s.opt.Digest {
		z, digest := s.zxid, s.digest
		if z <= 0 {
			z, digest = 0, 0 // before the first transaction ZooKeeper writes that it has none
		}
		b = binary.BigEndian.AppendUint64(b, uint64(z))
		b = binary.BigEndian.AppendUint32(b, DigestVersion)
		b = binary.BigEndian.AppendUint64(b, digest)
		seal()
	}
	if s.opt.LastZxid {
		b = binary.BigEndian.AppendUint64(b, uint64(s.zxid))
		seal()
	}
	return b, summed
}
