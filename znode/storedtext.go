package znode

import (
	"strings"
	"unicode/utf8"

	"zabra/jute"
	"zabra/wire"
)

// ZooKeeper writes a character above U+FFFF as two sequences of three bytes, one for each of its UTF-16 surrogates, and
// takes those for malformed when it reads them: an id of an ACL that has such a character is not the same after a
// restart, and nobody has the identity any more that it names. What is stored is therefore read with the pairs put
// together again. (Requests are not: there they are malformed. Paths cannot have such characters.)

// storedText is the text of a string in a log or snapshot, as UTF-8. It returns b itself if nothing has to be done.
func storedText(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	joined := make([]byte, 0, len(b))
	for len(b) > 0 {
		if r, ok := surrogatePair(b); ok {
			joined = utf8.AppendRune(joined, r)
			b = b[surrogatePairBytes:]
			continue
		}
		joined = append(joined, b[0])
		b = b[1:]
	}
	return decodeText(joined)
}

const surrogatePairBytes = 6

// surrogatePair returns the character that b begins with in the form of two surrogates.
func surrogatePair(b []byte) (rune, bool) {
	const lead, continuation, continuationMask = 0xed, 0x80, 0xc0
	if len(b) < surrogatePairBytes || b[0] != lead || b[3] != lead ||
		b[1]&0xf0 != 0xa0 || b[4]&0xf0 != 0xb0 || b[2]&continuationMask != continuation || b[5]&continuationMask != continuation {
		return 0, false
	}
	high, low := rune(b[1]&0x0f)<<6|rune(b[2]&0x3f), rune(b[4]&0x0f)<<6|rune(b[5]&0x3f)
	return 0x10000 + high<<10 + low, true
}

// decodeStoredACLs reads a list of a transaction. The usual way is that of requests; it is read a second time if
// something malformed was replaced on that.
func decodeStoredACLs(d *jute.Decoder) []wire.ACL {
	again := *d
	acls := wire.DecodeACLs(d)
	if !anyReplaced(acls) {
		return acls
	}
	_, _ = again.Vector(aclBytesMin)
	for i := range acls {
		again.Int32()
		acls[i].Scheme, acls[i].ID = string(storedText(again.Buffer())), string(storedText(again.Buffer()))
	}
	return acls
}

// aclBytesMin is an entry with two null or empty strings.
const aclBytesMin = 12

func anyReplaced(acls []wire.ACL) bool {
	for i := range acls {
		if strings.ContainsRune(acls[i].Scheme, utf8.RuneError) || strings.ContainsRune(acls[i].ID, utf8.RuneError) {
			return true
		}
	}
	return false
}
