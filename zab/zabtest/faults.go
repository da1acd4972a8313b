package zabtest

import (
	"zabra/zab"
	"zabra/zab/zxid"
)

// Fault does one of the bad things that can happen, or undoes one. It is for Worlds that draw.
func (w *World) Fault() {
	a, b := w.any(), w.any()
	switch w.rng.IntN(17) {
	case 0:
		if a.Up {
			w.crash(a)
		}
	case 1, 2, 3:
		if !a.Up {
			w.Start(a.ID)
		}
	case 4:
		if a.Up {
			w.BreakConn(a.ID, b.ID)
		}
	case 5:
		if a != b && !w.Cut(a.ID, b.ID) {
			w.Part(a.ID, b.ID)
		}
	case 6, 7:
		if w.Cut(a.ID, b.ID) {
			w.Join(a.ID, b.ID)
		}
	case 8:
		a.Disk.Hung = !a.Disk.Hung
	case 9, 10:
		if a.Up && a.Node.Status().Serving && !a.lazy {
			a.Snapshot(w.rng.IntN(2) == 0)
		}
	case 11:
		w.Tick(w.rng.Int64N(SyncLimitMs))
	case 12, 13:
		w.muted[pair(a.ID, b.ID)] = a != b
	case 14:
		clear(w.muted)
	case 15:
		if a.Up && b.Up {
			w.BreakQuietly(a.ID, b.ID)
		}
	case 16:
		if l := w.Leader(); l != nil {
			w.isolate(l)
		}
	}
}

// isolate lets a leader alone that does not notice: its learners have given it up.
func (w *World) isolate(l *Server) {
	for _, s := range w.Servers {
		if s != l && s.Up {
			w.muted[pair(s.ID, l.ID)] = true
			w.BreakQuietly(s.ID, l.ID)
		}
	}
}

// mute reports whether nothing gets through between two servers at present, although nothing breaks.
func (w *World) mute(l *lane) bool { return l.from != l.to && w.muted[pair(l.from.ID, l.to.ID)] }

func (w *World) any() *Server { return w.Servers[w.rng.IntN(len(w.Servers))] }

// crash kills a server when its disk has done some of what it was given, and perhaps a part of an append.
func (w *World) crash(s *Server) {
	for _, l := range w.lanes {
		if l.kind != laneDisk || l.to != s {
			continue
		}
		done := w.rng.IntN(len(l.events) + 1)
		for i, e := range l.events {
			op := *e.Op
			if i == done && op.Kind == zab.PersistAppend {
				op.Entries = op.Entries[:w.rng.IntN(len(op.Entries))]
			} else if i >= done {
				break
			}
			w.judge.performs(w, s, &op)
		}
	}
	w.kill(s)
}

// Heal ends all faults and brings everybody up.
func (w *World) Heal() {
	clear(w.muted)
	for _, a := range w.Servers {
		a.Disk.Hung = false
		for _, b := range w.Servers {
			if a.ID < b.ID && w.Cut(a.ID, b.ID) {
				w.Join(a.ID, b.ID)
			}
		}
	}
	for _, s := range w.Servers {
		if !s.Up {
			w.start(s)
		}
	}
}

// Leader is the server that leads and serves, of several that think so the one of the highest epoch, or nil.
func (w *World) Leader() (leader *Server) {
	var epoch zxid.Epoch
	for _, s := range w.Servers {
		if !s.Up {
			continue
		}
		if st := s.Node.Status(); st.Role == zab.RoleLeading && st.Serving && st.Epoch >= epoch {
			leader, epoch = s, st.Epoch
		}
	}
	return leader
}

// Level reports whether everybody who is up serves, and has the same applied.
func (w *World) Level() bool {
	var last *Server
	for _, s := range w.Servers {
		if !s.Up {
			continue
		}
		if !s.Node.Status().Serving || s.Node.Busy() || s.lazy || last != nil && last.applied() != s.applied() {
			return false
		}
		last = s
	}
	return last != nil
}
