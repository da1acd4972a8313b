package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
	"zabra/znode"
)

// NoFileError says that a snapshot is not there, in the words of ZooKeeper's snapshot tool.
type NoFileError struct{ File string }

func (e *NoFileError) Error() string { return fmt.Sprintf("File '%s' does not exist.", e.File) }

// snapshot is one that was read whole.
type snapshot struct {
	file string
	// named is the zxid in the file's name.
	named zxid.Zxid
	tree  *znode.Tree
	info  znode.SnapshotInfo
}

func readSnapshot(fsys vfs.FS, file string) (*snapshot, error) {
	r, z, err := storage.OpenSnapshotFile(fsys, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoFileError{File: file}
	}
	if err != nil {
		return nil, err
	}
	tree, info, err := znode.ReadSnapshot(r, znode.Config{}, fieldBytesMax, z)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", file, err)
	}
	if kind, _ := storage.KindOf(filepath.Base(file)); kind != storage.KindSnapshot && info.HasLastZxid && tree.Digest() == info.Digest {
		z = info.LastZxid // a backup, whose name tells nothing
	}
	return &snapshot{file: file, named: z, tree: tree, info: info}, nil
}

// children returns a node's children by name, as strings that stay.
func (s *snapshot) children(n znode.Node) []string {
	var names []string
	s.tree.VisitChildren(n, func(name []byte) bool {
		names = append(names, string(name))
		return true
	})
	slices.Sort(names)
	return names
}

// walk calls f for a node and all below it, parents first and siblings by name.
func (s *snapshot) walk(path string, f func(path string, n znode.Node, children []string)) {
	n, ok := s.tree.Find([]byte(path))
	if !ok {
		return
	}
	children := s.children(n)
	f(path, n, children)
	for _, name := range children {
		s.walk(strings.TrimSuffix(path, "/")+"/"+name, f)
	}
}

// DumpMode says what DumpSnapshot prints.
type DumpMode int

// DumpStats prints each node's stat, DumpData its data too; DumpNCDU is the document that the program ncdu opens.
const (
	DumpStats DumpMode = iota
	DumpData
	DumpNCDU
)

// DumpSnapshot prints every node of a snapshot and its sessions, as ZooKeeper's SnapshotFormatter does, siblings by name.
// A damaged snapshot gives an error and no output. nowMs is the moment noted in the document for ncdu.
func DumpSnapshot(o Output, file string, mode DumpMode, nowMs int64) (err error) {
	s, err := readSnapshot(vfs.OS{}, file)
	if err != nil {
		return err
	}
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	switch {
	case mode == DumpNCDU:
		p.printf("[1,0,{\"progname\":\"SnapshotFormatter.java\",\"progver\":\"0.01\",\"timestamp\":%d},", nowMs)
		ino := 1000
		s.ncdu(p, "/", &ino)
		p.printf("]")
	case o.JSON:
		s.dumpJSON(p)
	default:
		s.dumpText(p, mode == DumpData)
	}
	return nil
}

func (s *snapshot) dumpText(p *printer, data bool) {
	p.printf("ZNode Details (count=%d):\n", s.tree.NodeCount()+1) // ZooKeeper counts the root twice
	last := s.named
	s.walk("/", func(path string, n znode.Node, _ []string) {
		st := s.tree.Stored(n)
		last = max(last, st.Mzxid, st.Pzxid)
		p.printf("----\n%s\n", path)
		p.printf("  cZxid = 0x%014x\n  ctime = %s\n", uint64(st.Czxid), p.at(st.Ctime, layoutNode))
		p.printf("  mZxid = 0x%014x\n  mtime = %s\n", uint64(st.Mzxid), p.at(st.Mtime, layoutNode))
		p.printf("  pZxid = 0x%014x\n  cversion = %d\n  dataVersion = %d\n  aclVersion = %d\n", uint64(st.Pzxid), st.CVersion,
			st.Version, st.AVersion)
		p.printf("  ephemeralOwner = 0x%014x\n", uint64(st.Owner))
		if d := s.tree.Data(n); data {
			p.printf("  data = %s\n", base64Text(d))
		} else {
			p.printf("  dataLength = %d\n", len(d))
		}
	})
	p.printf("----\nSession Details (sid, timeout, ephemeralCount):\n")
	s.tree.VisitSessions(func(id zxid.SessionID, ms int32) bool {
		p.printf("0x%014x, %d, %d\n", uint64(id), ms, s.ephemerals(id))
		return true
	})
	p.printf("----\nLast zxid: 0x%x\n", uint64(last))
}

func (s *snapshot) ephemerals(id zxid.SessionID) (n int) {
	s.tree.VisitEphemerals(id, func([]byte) bool {
		n++
		return true
	})
	return n
}

// jsonNode is a node of a snapshot in JSON.
type jsonNode struct {
	Path     string    `json:"path"`
	Kind     string    `json:"kind"`
	Czxid    string    `json:"czxid"`
	Mzxid    string    `json:"mzxid"`
	Pzxid    string    `json:"pzxid"`
	Ctime    string    `json:"ctime"`
	Mtime    string    `json:"mtime"`
	CVersion int32     `json:"cversion"`
	Version  int32     `json:"dataVersion"`
	AVersion int32     `json:"aclVersion"`
	Owner    string    `json:"ephemeralOwner"`
	TTL      int64     `json:"ttlMs,omitempty"`
	Children int       `json:"children"`
	ACL      []jsonACL `json:"acl"`
	Data     []byte    `json:"data"`
}

// jsonSession is a session of a snapshot in JSON.
type jsonSession struct {
	Session    string `json:"session"`
	TimeoutMs  int32  `json:"timeoutMs"`
	Ephemerals int    `json:"ephemerals"`
}

// jsonSnapshot is the first line of a dump in JSON, and a line of a check.
type jsonSnapshot struct {
	File       string `json:"file"`
	State      string `json:"state,omitempty"`
	Zxid       string `json:"zxid"`
	Nodes      int    `json:"nodes"`
	Sessions   int    `json:"sessions"`
	Digest     string `json:"digest,omitempty"`
	DigestZxid string `json:"digestZxid,omitempty"`
	Note       string `json:"note,omitempty"`
	Why        string `json:"why,omitempty"`
}

func (s *snapshot) summary() jsonSnapshot {
	j := jsonSnapshot{File: s.file, Zxid: s.named.String(), Nodes: s.info.Nodes, Sessions: s.info.Sessions}
	if s.info.HasDigest {
		j.Digest, j.DigestZxid = fmt.Sprint(s.info.Digest), s.info.DigestZxid.String()
	}
	return j
}

var kindNames = map[znode.Kind]string{
	znode.KindPersistent: "persistent", znode.KindEphemeral: "ephemeral", znode.KindContainer: "container", znode.KindTTL: "ttl",
}

func (s *snapshot) dumpJSON(p *printer) {
	p.object(s.summary())
	s.walk("/", func(path string, n znode.Node, children []string) {
		st := s.tree.Stored(n)
		j := jsonNode{Path: path, Kind: kindNames[s.tree.Kind(n)], Czxid: st.Czxid.String(), Mzxid: st.Mzxid.String(),
			Pzxid: st.Pzxid.String(),
			Ctime: p.iso(st.Ctime), Mtime: p.iso(st.Mtime), CVersion: st.CVersion, Version: st.Version, AVersion: st.AVersion,
			Owner: fmt.Sprintf("0x%x", uint64(st.Owner)), Children: len(children), Data: s.tree.Data(n)}
		if s.tree.Kind(n) == znode.KindTTL {
			j.TTL = st.TTL()
		}
		if acl := s.tree.ACL(n); acl != nil {
			j.ACL = jsonACLs(acl.Entries())
		}
		p.object(j)
	})
	s.tree.VisitSessions(func(id zxid.SessionID, ms int32) bool {
		p.object(jsonSession{Session: id.String(), TimeoutMs: ms, Ephemerals: s.ephemerals(id)})
		return true
	})
}

// ncdu prints a subtree as the program ncdu wants it: a node with children is a list that begins with itself.
func (s *snapshot) ncdu(p *printer, path string, ino *int) {
	n, ok := s.tree.Find([]byte(path))
	if !ok {
		return
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if path == "/" {
		name = "/"
	}
	children := s.children(n)
	if len(children) > 0 {
		p.printf("[")
	}
	*ino++
	size := len(s.tree.Data(n))
	p.printf("{\"name\":%s,\"asize\":%d,\"dsize\":%d,\"dev\":0,\"ino\":%d}", quoted(name), size, size, *ino)
	for _, child := range children {
		p.printf(",")
		s.ncdu(p, strings.TrimSuffix(path, "/")+"/"+child, ino)
	}
	if len(children) > 0 {
		p.printf("]")
	}
}
