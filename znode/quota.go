package znode

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// A quota on /p lives in two ordinary nodes, /zookeeper/quota/p/zookeeper_limits and zookeeper_stats beside it. The first
// one's existence makes /p a prefix under which usage is kept; the usage is the data of the second, which the server
// rewrites with each change below /p. That is no transaction: no stat changes, no watch fires, and the digest does not
// cover it.

const (
	quotaLimitsName = "zookeeper_limits"
	quotaStatsName  = "zookeeper_stats"
)

// quotaIndex is the set of prefixes that have limits. It answers for a path by looking up the path and each of its
// ancestors, and at once while there is no quota at all.
type quotaIndex struct{ prefixes map[string]struct{} }

func (q *quotaIndex) init() { q.prefixes = make(map[string]struct{}) }

// deepest returns the longest prefix that is path or an ancestor of it. The root never is one.
func (q *quotaIndex) deepest(path []byte) []byte {
	if len(q.prefixes) == 0 {
		return nil
	}
	for len(path) > 1 {
		if _, ok := q.prefixes[string(path)]; ok {
			return path
		}
		path = path[:max(bytes.LastIndexByte(path, '/'), 0)]
	}
	return nil
}

// quotaPrefix returns the prefix whose quota the node at path belongs to, if the node's name is name; nil if it is no
// such node, or on the root, which has no quota.
func quotaPrefix(path []byte, name string) []byte {
	parent, last := SplitPath(path)
	if string(last) != name || !belowPath(parent, QuotaPath) {
		return nil
	}
	return parent[len(QuotaPath):]
}

// quotaCreated accounts for a node that was created.
func (t *Tree) quotaCreated(path []byte, dataBytes int) {
	t.quotaRegister(path)
	if prefix := t.quotas.deepest(path); prefix != nil {
		t.addUsage(prefix, 1, int64(dataBytes))
	}
}

// quotaRegister makes a quota of its nodes when one of them appears.
func (t *Tree) quotaRegister(path []byte) {
	if prefix := quotaPrefix(path, quotaLimitsName); prefix != nil {
		t.quotas.prefixes[string(prefix)] = struct{}{}
	}
	switch prefix := quotaPrefix(path, quotaStatsName); {
	case prefix != nil:
		t.countUsage(prefix)
	case string(path) == QuotaPath+"/"+quotaStatsName:
		t.countUsage(nil) // the whole tree, once: there is no quota on the root to keep it up to date
	}
}

// quotaDeleted accounts for a node that was deleted.
func (t *Tree) quotaDeleted(path []byte, dataBytes int) {
	if prefix := quotaPrefix(path, quotaLimitsName); prefix != nil {
		delete(t.quotas.prefixes, string(prefix))
	}
	if prefix := t.quotas.deepest(path); prefix != nil {
		t.addUsage(prefix, -1, -int64(dataBytes))
	}
}

// quotaChanged accounts for new data of a node.
func (t *Tree) quotaChanged(path []byte, bytesDelta int) {
	if prefix := t.quotas.deepest(path); prefix != nil {
		t.addUsage(prefix, 0, int64(bytesDelta))
	}
}

// quotaNode returns one of the two nodes of a prefix's quota, with its path in scratch memory.
func (t *Tree) quotaNode(scratch []byte, prefix []byte, name string) (Node, []byte) {
	path := append(append(append(append(scratch[:0], QuotaPath...), prefix...), '/'), name...)
	id, _ := t.Find(path)
	return id, path
}

// addUsage adds to a prefix's usage. A missing node, or one whose text a client has spoilt, is left alone.
func (t *Tree) addUsage(prefix []byte, count, dataBytes int64) {
	id, path := t.quotaNode(t.scratch, prefix, quotaStatsName)
	t.scratch = path
	if id == noNode {
		return
	}
	if usage, ok := parseQuota(t.Data(id)); ok {
		t.setUsage(id, path, usage.count+count, usage.bytes+dataBytes)
	}
}

// countUsage counts what is at and below a prefix. It visits all of it.
func (t *Tree) countUsage(prefix []byte) {
	var count, dataBytes int64
	if top, ok := t.Find(prefix); ok {
		for id := top; id != noNode; id = t.nextBelow(top, id) {
			count++
			dataBytes += int64(max(t.nodes.at(id).dataLen, 0))
		}
	}
	id, path := t.quotaNode(t.scratch, prefix, quotaStatsName)
	t.scratch = path
	if id != noNode {
		t.setUsage(id, path, count, dataBytes)
	}
}

// setUsage rewrites a usage node without any trace in its stat.
func (t *Tree) setUsage(id Node, path []byte, count, dataBytes int64) {
	b := append(t.text[:0], "count="...)
	b = strconv.AppendInt(b, count, 10)
	b = append(b, ",bytes="...)
	t.text = strconv.AppendInt(b, dataBytes, 10)
	t.nodes.mut(id)
	t.replaceData(id, path, t.text)
}

// loadQuotas finds the quotas of a tree that was just read and counts their usage.
func (t *Tree) loadQuotas() {
	top, ok := t.Find([]byte(QuotaPath))
	if !ok {
		return
	}
	var path []byte
	for id := top; id != noNode; id = t.nextBelow(top, id) {
		if t.nodes.at(id).numChildren == 0 {
			path = t.AppendPath(path[:0], id)
			t.quotaRegister(path)
		}
	}
}

// QuotaBreach is a limit that a change would go beyond.
type QuotaBreach struct {
	// Prefix is where the quota is, as the text of a path.
	Prefix string
	// Bytes tells that the limit is one on bytes of data; otherwise it is one on nodes.
	Bytes bool
	// Hard tells that the limit is there to refuse what goes beyond it.
	Hard bool
	// After is what there would be after the change, Limit what there may be.
	After, Limit int64
}

// String is the text that alert rules look for.
func (b *QuotaBreach) String() string {
	what, name, kind := "count", "CountLimit", "soft"
	if b.Bytes {
		what, name = "bytes", "BytesLimit"
	}
	if b.Hard {
		kind = "hard"
	}
	return fmt.Sprintf("Quota exceeded: %s [current %s=%d, %s%s=%d]", b.Prefix, what, b.After, kind, name, b.Limit)
}

// CheckQuota reports whether a change at path, of so many nodes and bytes of data, would go beyond a limit of the deepest
// prefix with a quota, and which: a hard one if there is one. Where there is a hard limit the soft one does not count, as in
// ZooKeeper. Only what changes is checked. Usage is that of the applied tree. Without a quota, its two nodes, or an
// understandable text in them there is no limit. It allocates only for a breach.
func (t *Tree) CheckQuota(path []byte, countDelta, bytesDelta int64) (breach QuotaBreach, ok bool) {
	prefix := t.quotas.deepest(path)
	if prefix == nil {
		return breach, false
	}
	var buf [256]byte
	limitsNode, scratch := t.quotaNode(buf[:0], prefix, quotaLimitsName)
	statsNode, _ := t.quotaNode(scratch, prefix, quotaStatsName)
	if limitsNode == noNode || statsNode == noNode {
		return breach, false
	}
	limits, ok := parseQuota(t.Data(limitsNode))
	usage, ok2 := parseQuota(t.Data(statsNode))
	if !ok || !ok2 {
		return breach, false
	}
	count, overCount := beyond(limits.count, limits.countHard, usage.count, countDelta)
	size, overBytes := beyond(limits.bytes, limits.bytesHard, usage.bytes, bytesDelta)
	switch {
	case overBytes && (size.Hard || !overCount):
		breach, breach.Bytes = size, true
	case overCount:
		breach = count
	default:
		return breach, false
	}
	breach.Prefix = string(prefix)
	return breach, true
}

// beyond compares what there would be with the limit that counts.
func beyond(soft, hard, usage, delta int64) (b QuotaBreach, over bool) {
	b = QuotaBreach{Hard: hard >= 0, After: usage + delta, Limit: soft}
	if b.Hard {
		b.Limit = hard
	}
	return b, delta != 0 && b.Limit >= 0 && b.After > b.Limit
}

// quotaText is what the text of a limits or stats node says; -1 for what it does not.
type quotaText struct{ count, bytes, countHard, bytesHard int64 }

// parseQuota reads items "key=number" that are separated by runs of ',' and ';'. A missing number is -1, and so is one
// cut off by a second '=', which newer clients put in front of the hard limits so that older servers stumble. Unknown
// keys are ignored. It does not allocate.
func parseQuota(text []byte) (quotaText, bool) {
	q := quotaText{-1, -1, -1, -1}
	for len(text) > 0 {
		item := text
		if i := bytes.IndexAny(text, ",;"); i >= 0 {
			item, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if len(item) == 0 {
			continue
		}
		key, value, ok := bytes.Cut(item, []byte{'='})
		if !ok {
			return q, false
		}
		value, _, _ = bytes.Cut(value, []byte{'='})
		number, ok := parseQuotaNumber(value)
		if !ok {
			return q, false
		}
		switch string(key) {
		case "count":
			q.count = number
		case "bytes":
			q.bytes = number
		case "countHardLimit":
			q.countHard = number
		case "byteHardLimit":
			q.bytesHard = number
		}
	}
	return q, true
}

func parseQuotaNumber(b []byte) (int64, bool) {
	if len(b) == 0 {
		return -1, true
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var v int64 // counted down, since the lowest number has no positive counterpart
	for _, c := range b {
		digit := int64(c - '0')
		if c < '0' || c > '9' || v < (math.MinInt64+digit)/10 {
			return 0, false
		}
		v = 10*v - digit
	}
	if negative {
		return v, true
	}
	return -v, v != math.MinInt64
}
