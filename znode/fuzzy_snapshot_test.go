package znode

import (
	"encoding/binary"
	"hash/adler32"
	"sort"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

// fuzzySnapshot encodes a snapshot from its parts, independently of the code under test.
func fuzzySnapshot(sessions []session, acls map[int64][]wire.ACL, nodes []fuzzyNode, z zxid.Zxid, digest uint64) []byte {
	var e jute.Encoder
	e.Raw([]byte("ZKSN"))
	e.Int32(2)
	e.Int64(-1)
	e.Count(len(sessions))
	for _, s := range sessions {
		e.Int64(int64(s.id))
		e.Int32(s.timeoutMs)
	}
	delete(acls, aclOpenID)
	var ids []int64
	for id := range acls {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] > ids[j] })
	e.Count(len(ids))
	for _, id := range ids {
		e.Int64(id)
		wire.AppendACLs(&e, acls[id])
	}
	for _, n := range nodes {
		e.String(n.path)
		e.Buffer(n.node.data)
		e.Int64(n.acl)
		st := n.node.st
		for _, v := range []int64{int64(st.Czxid), int64(st.Mzxid), st.Ctime, st.Mtime} {
			e.Int64(v)
		}
		for _, v := range []int32{st.Version, st.CVersion, st.AVersion} {
			e.Int32(v)
		}
		e.Int64(st.Owner)
		e.Int64(int64(st.Pzxid))
	}
	e.String("/")
	b := fuzzySeal(e.Bytes())
	b = binary.BigEndian.AppendUint64(b, uint64(z))
	b = binary.BigEndian.AppendUint32(b, 2)
	b = binary.BigEndian.AppendUint64(b, digest)
	return fuzzySeal(b)
}

func fuzzySeal(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(adler32.Checksum(b)))
	return append(b, 0, 0, 0, 1, '/')
}
