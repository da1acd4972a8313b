package znode

import (
	"bytes"
	"encoding/binary"
	"io"
	"strconv"

	"zabra/wire"
	"zabra/zab/zxid"
)

// SnapshotInfo describes a snapshot that was read.
type SnapshotInfo struct {
	Sessions, Nodes int
	// DanglingACLs is the number of ACL ids that nodes refer to and that the snapshot does not define.
	DanglingACLs int
	// DigestZxid is the last transaction that had been applied when the snapshot was complete. If it is above the zxid in
	// the file's name, the snapshot may contain parts of the transactions between, and its digest is that of the tree after
	// the replay up to DigestZxid. HasDigest is false if there is no digest or one of a version that is not computed here.
	DigestZxid    zxid.Zxid
	Digest        uint64
	DigestVersion int32
	HasDigest     bool
	// HasDigestBlock tells whether the file has a place for a digest, be it empty as in a fresh server's first snapshot.
	HasDigestBlock bool
	// LastZxid is ZooKeeper's own note of the last transaction, with the meaning of DigestZxid.
	LastZxid    zxid.Zxid
	HasLastZxid bool
}

// snapshotReader builds a tree from a stream.
type snapshotReader struct {
	src  *snapshotSource
	t    *Tree
	info SnapshotInfo
	acls map[int64]uint32 // positions by the snapshot's ids

	path, last []byte // of this node and the one before
	// above are the ancestors of the last node, and itself: in a depth-first walk a parent is always among them.
	above []ancestor
}

type ancestor struct {
	id  Node
	end int // length of its path, which is the beginning of last
}

// ReadSnapshot reads a snapshot, uncompressed, and checks all of it: structure, parents, checksums. Which blocks stand at
// its end is decided by their size. z is the zxid in the file's name, which becomes the tree's last one: transactions
// after it are to be applied, also those that the snapshot already contains in part. The tree's quotas are counted, and
// the built-in nodes added if an old server lacked them. Not checked here, since the log may still repair it: the digest,
// ACL ids without a list (DanglingACLs), ephemerals without a session (Orphans). fieldBytesMax bounds one string or
// buffer (0: the default of jute). Damage gives ErrSnapshot with the offset.
func ReadSnapshot(r io.Reader, cfg Config, fieldBytesMax int, z zxid.Zxid) (*Tree, SnapshotInfo, error) {
	s := &snapshotReader{src: newSnapshotSource(r, fieldBytesMax), t: newEmptyTree(cfg), acls: make(map[int64]uint32)}
	s.readHeader()
	s.readSessions()
	s.readACLs()
	s.readNodes()
	s.src.seal()
	s.readTail()
	if s.src.err != nil {
		return nil, SnapshotInfo{}, s.src.err
	}
	t := s.t
	s.info.Sessions, s.info.Nodes, s.info.DanglingACLs = t.SessionCount(), t.NodeCount(), t.acls.dangling
	t.acls.purge()
	t.addBuiltin()
	t.loadQuotas()
	t.lastZxid = z
	return t, s.info, nil
}

// VerifySnapshot checks structure, parents and checksums of a snapshot as ReadSnapshot does, without building the tree:
// the memory that it takes does not grow with the number of nodes. Nodes that do not come depth-first, as every server
// writes them, are refused.
func VerifySnapshot(r io.Reader, fieldBytesMax int) error {
	s := &snapshotReader{src: newSnapshotSource(r, fieldBytesMax), t: newEmptyTree(Config{}), acls: make(map[int64]uint32)}
	s.readHeader()
	s.readSessions()
	s.readACLs()
	s.passNodes()
	s.src.seal()
	s.readTail()
	return s.src.err
}

// passNodes is readNodes without keeping them.
func (s *snapshotReader) passNodes() {
	for first := true; s.src.err == nil; first = false {
		path, ok := s.src.text(s.path[:0])
		s.path = path
		switch {
		case s.src.err != nil:
			return
		case !ok || first != (len(path) == 0):
			s.src.fail("node %q in the place of the root, null, or the root again", path)
			return
		case !first && len(path) == 1 && path[0] == '/':
			return
		}
		if !first {
			if parent, _ := s.parent(); parent == noNode {
				s.src.fail("node %q without a parent, or with a bad name", path)
				return
			}
		}
		s.readBody()
		s.above = append(s.above, ancestor{rootNode, len(path)})
		s.path, s.last = s.last, s.path
	}
}

func (s *snapshotReader) readHeader() {
	magic, version := s.src.int32(), s.src.int32()
	s.src.int64() // an id that nobody uses
	if s.src.err == nil && (magic != snapshotMagic || version != snapshotVersion) {
		s.src.fail("magic number %#x, version %d", uint32(magic), version)
	}
}

func (s *snapshotReader) readSessions() {
	for n := s.src.count("sessions"); n > 0 && s.src.err == nil; n-- {
		id := zxid.SessionID(s.src.int64())
		timeout := s.src.int32()
		if s.src.err == nil {
			s.t.sessions.set(id, timeout)
		}
	}
}

func (s *snapshotReader) readACLs() {
	for n := s.src.count("ACLs"); n > 0 && s.src.err == nil; n-- {
		id := s.src.int64()
		acl := []wire.ACL{} // not nil, which would be open
		for m := s.src.count("ACL entries"); m > 0 && s.src.err == nil; m-- {
			acl = append(acl, s.readACL())
		}
		if s.src.err != nil {
			return
		}
		if err := s.t.acls.load(id, acl, s.acls); err != nil {
			s.src.fail("%w", err)
		}
	}
}

func (s *snapshotReader) readACL() wire.ACL {
	a := wire.ACL{Perms: s.src.int32()}
	scheme, ok := s.src.text(nil)
	a.Scheme, a.NullScheme = string(scheme), !ok
	id, ok := s.src.text(nil)
	a.ID, a.NullID = string(id), !ok
	return a
}

// readNodes reads up to the path that ends the nodes.
func (s *snapshotReader) readNodes() {
	for first := true; s.src.err == nil; first = false {
		path, ok := s.src.text(s.path[:0])
		s.path = path
		if s.src.err != nil {
			return
		}
		switch {
		case !ok:
			s.src.fail("null path")
		case first != (len(path) == 0):
			s.src.fail("node %q in the place of the root, or the root again", path)
		case first:
			s.readRoot()
		case len(path) == 1 && path[0] == '/':
			return
		default:
			s.readNode()
		}
	}
}

// readBody reads what follows a node's path. The data are valid until the next read.
func (s *snapshotReader) readBody() (data []byte, acl uint32, st StoredStat) {
	n := s.src.length()
	if !s.src.need(max(n, 0) + 8 + storedStatBytes) {
		return nil, 0, st
	}
	b := s.src.buf[s.src.pos:]
	s.src.pos += max(n, 0) + 8 + storedStatBytes
	if n >= 0 {
		data, b = b[:n:n], b[n:]
	}
	id := int64(binary.BigEndian.Uint64(b))
	if id > aclIDMax {
		s.src.fail("ACL id %d is out of range", id)
		return nil, 0, st
	}
	b = b[8 : 8+storedStatBytes]
	st = StoredStat{
		Czxid: zx(int64(binary.BigEndian.Uint64(b))), Mzxid: zx(int64(binary.BigEndian.Uint64(b[8:]))),
		Ctime: int64(binary.BigEndian.Uint64(b[16:])), Mtime: int64(binary.BigEndian.Uint64(b[24:])),
		Version: int32(binary.BigEndian.Uint32(b[32:])), CVersion: int32(binary.BigEndian.Uint32(b[36:])),
		AVersion: int32(binary.BigEndian.Uint32(b[40:])), Owner: int64(binary.BigEndian.Uint64(b[44:])),
		Pzxid: zx(int64(binary.BigEndian.Uint64(b[52:]))),
	}
	return data, s.t.acls.loadNode(id, s.acls), st
}

func (s *snapshotReader) readRoot() {
	data, acl, st := s.readBody()
	if s.src.err != nil {
		return
	}
	if st.Owner != 0 {
		s.src.fail("the root has the owner %#x", uint64(st.Owner))
		return
	}
	t := s.t
	n := t.begin(rootNode, nil)
	t.replaceData(rootNode, nil, data)
	n.setStored(&st)
	n.acl = acl
	t.end(n, nil)
	s.above = append(s.above, ancestor{rootNode, 0})
}

func (s *snapshotReader) readNode() {
	parent, name := s.parent()
	if parent == noNode {
		s.src.fail("node %q without a parent, or with a bad name", s.path)
		return
	}
	hash := s.t.index.hash(parent, name)
	if s.t.childHashed(hash, parent, name) != noNode {
		s.src.fail("node %q occurs twice", s.path)
		return
	}
	data, acl, st := s.readBody()
	if s.src.err != nil {
		return
	}
	// Those cannot be deleted, so they must not be anybody's to delete.
	if st.Owner != 0 && ReservedPath(s.path) {
		s.src.fail("node %q has the owner %#x", s.path, uint64(st.Owner))
		return
	}
	id := s.t.insert(parent, hash, s.path, name, data, &st, acl)
	s.above = append(s.above, ancestor{id, len(s.path)})
	s.path, s.last = s.last, s.path
}

// parent returns the parent of the node at path and the node's name, 0 if there is none.
func (s *snapshotReader) parent() (Node, []byte) {
	slash := bytes.LastIndexByte(s.path, '/')
	if slash < 0 || slash == len(s.path)-1 {
		return noNode, nil
	}
	name := s.path[slash+1:]
	n := len(s.above)
	for n > 1 && s.above[n-1].end > slash {
		n--
	}
	s.above = s.above[:n]
	if top := s.above[n-1]; top.end == slash && bytes.Equal(s.last[:slash], s.path[:slash]) {
		return top.id, name
	}
	// Not depth-first, which no server writes, but nothing forbids.
	s.above = s.above[:1]
	id, ok := s.t.Find(s.path[:slash])
	if !ok {
		return noNode, nil
	}
	return id, name
}

// readTail reads the optional blocks: both, one or none.
func (s *snapshotReader) readTail() {
	left := s.src.rest(snapshotTailBytesMax)
	if left != 0 && left != snapshotZxidBytes {
		s.readDigest()
		left = s.src.rest(snapshotTailBytesMax)
	}
	if s.src.err == nil && left == snapshotZxidBytes {
		s.info.LastZxid, s.info.HasLastZxid = zx(s.src.int64()), true
		s.src.seal()
		left = s.src.rest(1)
	}
	if s.src.err == nil && left != 0 {
		s.src.fail("%d bytes or more behind the end", left)
	}
}

func (s *snapshotReader) readDigest() {
	s.info.DigestZxid = zx(s.src.int64())
	s.info.DigestVersion = s.src.int32()
	if s.info.DigestVersion < DigestVersion {
		text, ok := s.src.text(nil)
		if _, err := strconv.ParseUint(string(text), 16, 64); ok && err != nil && s.src.err == nil {
			s.src.fail("digest %q", text)
		}
	} else {
		s.info.Digest = uint64(s.src.int64())
	}
	s.src.seal()
	s.info.HasDigestBlock = true
	s.info.HasDigest = s.info.DigestVersion == DigestVersion && s.info.DigestZxid > 0
}
