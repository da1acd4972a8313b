package znode

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"zabra/wire"
	"zabra/zab/zxid"
)

// ErrSnapshot says that a snapshot is damaged, or not one. Read errors of the source are passed on beside it.
var ErrSnapshot = errors.New("znode: bad snapshot")

// snapshotError is damage at an offset of a snapshot.
func snapshotError(offset int64, format string, args ...any) error {
	return fmt.Errorf("%w: offset %d: %w", ErrSnapshot, offset, fmt.Errorf(format, args...))
}

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

// ReadSnapshot reads a snapshot, uncompressed, and checks all of it: structure, parents, checksums. Which blocks stand at
// its end is decided by their size. z is the zxid in the file's name, which becomes the tree's last one: transactions
// after it are to be applied, also those that the snapshot already contains in part. The tree's quotas are counted, and
// the built-in nodes added if an old server lacked them. Not checked here, since the log may still repair it: the digest,
// ACL ids without a list (DanglingACLs), ephemerals without a session (Orphans). fieldBytesMax bounds one string or
// buffer (0: the default of jute). Damage gives ErrSnapshot with the offset.
//
// The work has two halves: a parser takes the bytes apart and computes the checksums, a loader puts the nodes into the
// tree. With cfg.Ahead the first runs ahead of the second; r is then read on another goroutine, which has ended when
// ReadSnapshot returns. The tree is the same, and so is the error. If r has a method Size() int64, that is taken for a hint
// at how many bytes there are.
func ReadSnapshot(r io.Reader, cfg Config, fieldBytesMax int, z zxid.Zxid) (*Tree, SnapshotInfo, error) {
	p := newSnapshotParser(r, fieldBytesMax)
	p.sums, p.digest = true, !cfg.NoDigest
	l := &snapshotLoader{t: newEmptyTree(cfg), acls: make(map[int64]uint32)}
	if sized, ok := r.(interface{ Size() int64 }); ok {
		l.size = sized.Size()
	}
	p.readHeader()
	p.readSessions(l.t.sessions.set)
	p.readACLs(func(id int64, acl []wire.ACL) error { return l.t.acls.load(id, acl, l.acls) })
	if err := l.loadNodes(p, cfg.Ahead); err != nil {
		return nil, SnapshotInfo{}, err
	}
	t := l.t
	p.info.Sessions, p.info.Nodes, p.info.DanglingACLs = t.SessionCount(), t.NodeCount(), t.acls.dangling
	t.acls.purge()
	t.addBuiltin()
	t.loadQuotas()
	t.lastZxid = z
	return t, p.info, nil
}

// VerifySnapshot checks structure, parents and checksums of a snapshot as ReadSnapshot does, without building the tree:
// the memory that it takes does not grow with the number of nodes. Nodes that do not come depth-first, as every server
// writes them, are refused.
func VerifySnapshot(r io.Reader, fieldBytesMax int) error {
	_, err := InspectSnapshot(r, fieldBytesMax)
	return err
}

// InspectSnapshot is VerifySnapshot that also tells what the blocks at the snapshot's end say. Sessions and nodes are not
// counted.
func InspectSnapshot(r io.Reader, fieldBytesMax int) (SnapshotInfo, error) {
	p := newSnapshotParser(r, fieldBytesMax)
	acls, byID := new(aclTable), make(map[int64]uint32)
	acls.init()
	p.readHeader()
	p.readSessions(func(zxid.SessionID, int32) {})
	p.readACLs(func(id int64, acl []wire.ACL) error { return acls.load(id, acl, byID) })
	for p.fill(0) {
		for i := range p.batches[0].nodes {
			if n := &p.batches[0].nodes[i]; n.parent == parentElsewhere {
				return SnapshotInfo{}, n.orphan()
			}
		}
	}
	return p.info, p.src.err
}

func (p *snapshotParser) readHeader() {
	magic, version := p.src.int32(), p.src.int32()
	p.src.int64() // an id that nobody uses
	if p.src.err == nil && (magic != snapshotMagic || version != snapshotVersion) {
		p.src.fail("magic number %#x, version %d", uint32(magic), version)
	}
}

func (p *snapshotParser) readSessions(set func(id zxid.SessionID, timeoutMs int32)) {
	for n := p.src.count("sessions"); n > 0 && p.src.err == nil; n-- {
		id := zxid.SessionID(p.src.int64())
		timeout := p.src.int32()
		if p.src.err == nil {
			set(id, timeout)
		}
	}
}

func (p *snapshotParser) readACLs(load func(id int64, acl []wire.ACL) error) {
	for n := p.src.count("ACLs"); n > 0 && p.src.err == nil; n-- {
		id := p.src.int64()
		acl := []wire.ACL{} // not nil, which would be open
		for m := p.src.count("ACL entries"); m > 0 && p.src.err == nil; m-- {
			acl = append(acl, p.readACL())
		}
		if p.src.err != nil {
			return
		}
		if err := load(id, acl); err != nil {
			p.src.fail("%w", err)
		}
	}
}

func (p *snapshotParser) readACL() wire.ACL {
	a := wire.ACL{Perms: p.src.int32()}
	scheme, ok := p.src.text()
	a.Scheme, a.NullScheme = string(scheme), !ok
	id, ok := p.src.text()
	a.ID, a.NullID = string(id), !ok
	return a
}

// readTail reads the optional blocks: both, one or none.
func (p *snapshotParser) readTail() {
	left := p.src.rest(snapshotTailBytesMax)
	if left != 0 && left != snapshotZxidBytes {
		p.readDigest()
		left = p.src.rest(snapshotTailBytesMax)
	}
	if p.src.err == nil && left == snapshotZxidBytes {
		p.info.LastZxid, p.info.HasLastZxid = zx(p.src.int64()), true
		p.src.seal()
		left = p.src.rest(1)
	}
	if p.src.err == nil && left != 0 {
		p.src.fail("%d bytes or more behind the end", left)
	}
}

func (p *snapshotParser) readDigest() {
	p.info.DigestZxid = zx(p.src.int64())
	p.info.DigestVersion = p.src.int32()
	if p.info.DigestVersion < DigestVersion {
		text, ok := p.src.text()
		if _, err := strconv.ParseUint(string(text), 16, 64); ok && err != nil && p.src.err == nil {
			p.src.fail("digest %q", text)
		}
	} else {
		p.info.Digest = uint64(p.src.int64())
	}
	p.src.seal()
	p.info.HasDigestBlock = true
	p.info.HasDigest = p.info.DigestVersion == DigestVersion && p.info.DigestZxid > 0
}
