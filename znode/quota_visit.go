package znode

import "slices"

// Quota is one quota: a path with its limits and its usage, -1 for what there is not.
type Quota struct {
	// Path is what the quota holds for, with all that is below it.
	Path string
	// CountLimit and BytesLimit are the hard limits, or the soft ones where there are no hard ones.
	CountLimit, BytesLimit int64
	Count, Bytes           int64
}

// VisitQuotas calls f for each quota, in the order of the paths, until f returns false. The caller holds the read lock.
func (t *Tree) VisitQuotas(f func(Quota) bool) {
	prefixes := make([]string, 0, len(t.quotas.prefixes))
	for p := range t.quotas.prefixes {
		prefixes = append(prefixes, p)
	}
	slices.Sort(prefixes)
	var scratch []byte
	for _, p := range prefixes {
		var limits, stats Node
		limits, scratch = t.quotaNode(scratch, []byte(p), quotaLimitsName)
		stats, scratch = t.quotaNode(scratch, []byte(p), quotaStatsName)
		limit, usage := t.quotaTextOf(limits), t.quotaTextOf(stats)
		q := Quota{Path: p, CountLimit: limit.countHard, BytesLimit: limit.bytesHard, Count: usage.count, Bytes: usage.bytes}
		if q.CountLimit < 0 {
			q.CountLimit = limit.count
		}
		if q.BytesLimit < 0 {
			q.BytesLimit = limit.bytes
		}
		if !f(q) {
			return
		}
	}
}

// quotaTextOf reads one of the two nodes of a quota. One that is missing or spoilt says nothing.
func (t *Tree) quotaTextOf(id Node) quotaText {
	if id != noNode {
		if q, ok := parseQuota(t.Data(id)); ok {
			return q
		}
	}
	return quotaText{-1, -1, -1, -1}
}
