package znode

import (
	"bytes"
	"hash/crc32"
	"math/bits"
)

// The digest of a node is a CRC-32 over its path, its data, and 60 bytes of its stat; that of the tree is the sum over
// all nodes modulo 2^64, so that it can be kept up to date by subtracting a node's old value and adding the new one.
// ACLs are not covered. The subtree below /zookeeper does not count, since servers write parts of it by themselves.

// zookeeperPrefix is what the paths of nodes outside the digest begin with. /zookeeper itself is inside.
const zookeeperPrefix = ZookeeperPath + "/"

func digestExempt(path []byte) bool {
	return len(path) >= len(zookeeperPrefix) && string(path[:len(zookeeperPrefix)]) == zookeeperPrefix
}

// PathDataCRC returns the CRC-32 of path and data, the beginning of a node's digest. The root's path is empty; "/" is
// taken for it.
func PathDataCRC(path, data []byte) uint32 {
	if len(path) == 1 {
		path = nil
	}
	return crc32.Update(crc32.ChecksumIEEE(path), crc32.IEEETable, data)
}

// NodeDigest returns a node's part of the tree's digest: pathDataCRC continued over the stat, and 0 for nodes below
// /zookeeper.
func NodeDigest(path []byte, pathDataCRC uint32, st *StoredStat) uint64 {
	if digestExempt(path) {
		return 0
	}
	crc := ^pathDataCRC
	crc = crcWord(crc, uint64(st.Czxid))
	crc = crcWord(crc, uint64(st.Mzxid))
	crc = crcWord(crc, uint64(st.Pzxid))
	crc = crcWord(crc, uint64(st.Ctime))
	crc = crcWord(crc, uint64(st.Mtime))
	crc = crcWord(crc, uint64(uint32(st.Version))<<32|uint64(uint32(st.CVersion)))
	crc = crcWord(crc, uint64(uint32(st.AVersion))<<32|uint64(st.Owner)>>32)
	crc = crcHalf(crc, uint32(st.Owner))
	return uint64(^crc)
}

// crcTables are those of the method known as slicing-by-8. The standard library's function would do, but its argument
// escapes, so each call would allocate the 60 bytes.
var crcTables = func() (t [8]crc32.Table) {
	t[0] = *crc32.IEEETable
	for i := range t[0] {
		crc := t[0][i]
		for k := 1; k < len(t); k++ {
			crc = t[0][crc&0xff] ^ crc>>8
			t[k][i] = crc
		}
	}
	return t
}()

// crcWord continues a CRC over the 8 bytes of v, most significant first.
func crcWord(crc uint32, v uint64) uint32 {
	crc ^= bits.ReverseBytes32(uint32(v >> 32))
	return crcTables[0][byte(v)] ^ crcTables[1][byte(v>>8)] ^ crcTables[2][byte(v>>16)] ^ crcTables[3][byte(v>>24)] ^
		crcTables[4][crc>>24] ^ crcTables[5][crc>>16&0xff] ^ crcTables[6][crc>>8&0xff] ^ crcTables[7][crc&0xff]
}

// crcHalf continues a CRC over the 4 bytes of v, most significant first.
func crcHalf(crc, v uint32) uint32 {
	crc ^= bits.ReverseBytes32(v)
	return crcTables[3][crc&0xff] ^ crcTables[2][crc>>8&0xff] ^ crcTables[1][crc>>16&0xff] ^ crcTables[0][crc>>24]
}

// Digest returns the tree's digest, 0 if none is kept.
func (t *Tree) Digest() uint64 { return t.digest }

// PathDataCRC returns the CRC-32 of a node's path and data, which is kept with the node: a change of its stat alone costs
// the CRC of 60 bytes.
func (t *Tree) PathDataCRC(n Node) uint32 { return t.nodes.at(n).crc }

// begin takes a node out of the digest and returns it for writing; end puts it back. path is the node's.
func (t *Tree) begin(id Node, path []byte) *node {
	n := t.nodes.mut(id)
	t.digest -= t.nodeDigest(n, path)
	return n
}

func (t *Tree) end(n *node, path []byte) { t.digest += t.nodeDigest(n, path) }

func (t *Tree) nodeDigest(n *node, path []byte) uint64 {
	if t.cfg.NoDigest {
		return 0
	}
	st := n.stored()
	return NodeDigest(path, n.crc, &st)
}

// belowPath reports whether path lies below the path above, which is not the root's.
func belowPath(path []byte, above string) bool {
	return len(path) > len(above) && path[len(above)] == '/' && bytes.HasPrefix(path, []byte(above))
}
