package replica

import (
	"sync"

	"zabra/zab/zxid"
)

const (
	// digestInterval is how many zxids lie between two digests that are remembered, as in ZooKeeper, so that the lists of
	// servers can be compared line by line.
	digestInterval = 128
	// digestsMax is how many are remembered.
	digestsMax = 1024
)

// TreeDigest is the digest of the tree after a transaction.
type TreeDigest struct {
	Zxid   zxid.Zxid
	Digest uint64
}

// digestLog remembers digests of the past, the oldest first.
type digestLog struct {
	mu   sync.Mutex
	list []TreeDigest
}

func (l *digestLog) note(z zxid.Zxid, digest uint64) {
	if z%digestInterval != 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == digestsMax {
		l.list = append(l.list[:0], l.list[1:]...)
	}
	l.list = append(l.list, TreeDigest{Zxid: z, Digest: digest})
}

// Digests returns the remembered digests, the oldest first. Any goroutine may call it.
func (r *Replica) Digests() []TreeDigest {
	r.digests.mu.Lock()
	defer r.digests.mu.Unlock()
	return append([]TreeDigest(nil), r.digests.list...)
}
