package replica

import (
	"zabra/wire"
	"zabra/zab"
)

// reaper deletes empty containers and outlived TTL nodes, at a bounded rate, each with a transaction of its own.
type reaper struct {
	nextScanMs   int64
	candidates   [][]byte
	nextDeleteMs int64
}

// nextReapMs is when reap wants to be called, 0 for never.
func (r *Replica) nextReapMs() int64 {
	p := &r.reaper
	if r.cfg.ContainerCheckMs <= 0 {
		return 0
	}
	if len(p.candidates) > 0 {
		return p.nextDeleteMs
	}
	return p.nextScanMs
}

func (r *Replica) reap() {
	if r.cfg.ContainerCheckMs <= 0 {
		return
	}
	p := &r.reaper
	if len(p.candidates) == 0 && r.now.MonoMs >= p.nextScanMs {
		p.nextScanMs = r.now.MonoMs + r.cfg.ContainerCheckMs
		p.nextDeleteMs = r.now.MonoMs
		enough := reapedPerScanMax
		if perMinute := r.cfg.ContainerMaxPerMinute; perMinute > 0 {
			enough = int(min(perMinute*r.cfg.ContainerCheckMs/60_000+1, reapedPerScanMax)) // what can go until the next scan
		}
		r.Tree().Expired(r.now.WallMs, r.cfg.ContainerNeverUsedMs, func(path []byte) bool {
			p.candidates = append(p.candidates, append([]byte(nil), path...))
			return len(p.candidates) < enough
		})
	}
	for len(p.candidates) > 0 && r.now.MonoMs >= p.nextDeleteMs {
		path := p.candidates[0]
		p.candidates = p.candidates[1:]
		if perMinute := r.cfg.ContainerMaxPerMinute; perMinute > 0 {
			p.nextDeleteMs += max(60_000/perMinute, 1)
		}
		if txn, code := r.prepDeleteContainer(path); code == wire.CodeOK {
			r.propose(0, 0, &txn, zab.Origin{})
		}
	}
	if len(p.candidates) == 0 {
		p.candidates = nil
	}
}
