package server

import "sync"

// recentRefusals keeps the last refusals, for who asks the admin server. Those that repeat the one before are counted.
type recentRefusals struct {
	mu    sync.Mutex
	list  []recentRefusal // the oldest first, from next on
	next  int             // where the next one goes, once the list is full
	total int64           // since the start
}

type recentRefusal struct {
	refusal
	nowMs int64 // of the last one
	count int64
}

// add keeps a refusal. Its texts are cut to what the log shows of them.
func (r *recentRefusals) add(nowMs int64, f refusal) {
	f.path, f.why, f.detail = printable(f.path), printable(f.why), printable(f.detail)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	if len(r.list) > 0 {
		last := &r.list[(r.next+len(r.list)-1)%len(r.list)]
		if last.repeats(&f) {
			last.refusal, last.nowMs = f, nowMs
			last.count++
			return
		}
	}
	entry := recentRefusal{refusal: f, nowMs: nowMs, count: 1}
	if len(r.list) < refusalsRecentMax {
		r.list = append(r.list, entry)
		return
	}
	r.list[r.next] = entry
	r.next = (r.next + 1) % len(r.list)
}

// repeats tells whether f is the same once more. The port changes with each attempt, and with it the text.
func (r *recentRefusal) repeats(f *refusal) bool {
	return r.kind == f.kind && r.remote.Addr() == f.remote.Addr() && r.session == f.session && r.op == f.op && r.path == f.path
}

// newest returns what is kept, the newest first, and how many refusals there were in all.
func (r *recentRefusals) newest() (list []recentRefusal, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.list) - 1; i >= 0; i-- {
		list = append(list, r.list[(r.next+i)%len(r.list)])
	}
	return list, r.total
}
