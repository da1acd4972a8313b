package bench

import (
	"time"

	"zabra/wire"
)

// result is what is known.
func (r *run) result() *Result {
	res := &Result{
		Workload: r.Workload, Servers: r.Servers, Sessions: r.Sessions, Outstanding: r.Outstanding, DataBytes: r.DataBytes,
		Nodes: r.Nodes, RatePerSecond: r.Rate, Seed: r.Seed,
	}
	if r.usage == nil {
		return res
	}
	res.BeganUnixMs = r.began.Add(time.Duration(r.from)).UnixMilli()
	length := max(0, min(r.until, r.ended)-r.from)
	res.DurationSeconds = seconds(length)
	sum := newRecorder(r.Timeline)
	sum.from = r.from
	for _, t := range r.threads {
		sum.merge(t.recorder)
	}
	res.Operations, res.Errors, res.Timeline = sum.operations, sum.errors, sum.timeline
	if length > 0 {
		res.OperationsPerSecond = float64(sum.operations) / seconds(length)
	}
	res.Latency = quantiles(sum.all())
	if r.Workload == Mixed {
		res.ReadPercent = r.ReadPercent
		read, write := quantiles(sum.latencies[reads]), quantiles(sum.latencies[writes])
		res.Reads, res.Writes = &read, &write
	}
	res.ErrorCodes = names(sum.codes)
	r.usage.into(res)
	if r.fanout != nil {
		res.Fanout = r.fanout.result(r.Sessions * r.Watches)
	}
	return res
}

// names turns codes into what ZooKeeper's documentation calls them.
func names(codes map[wire.Code]int64) map[string]int64 {
	if len(codes) == 0 {
		return nil
	}
	named := map[string]int64{}
	for code, n := range codes {
		named[code.String()] += n
	}
	return named
}
