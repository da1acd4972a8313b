package zabtest

import (
	"slices"

	"zabra/zab"
	"zabra/zab/zxid"
)

// drain does what a Node wants until it wants nothing more.
func (w *World) drain(s *Server) {
	for s.lazy = false; s.Up; {
		rd := s.Node.Ready()
		some := w.carryOut(s, &rd)
		for _, h := range rd.Hangup {
			w.hangup(s, h)
		}
		if !some {
			break
		}
	}
	if s.Up {
		w.changed(s)
		w.dial(s)
	}
}

// carryOut is the shell and the layer above. It reports whether there was anything to do.
func (w *World) carryOut(s *Server, rd *zab.Ready) bool {
	for _, op := range rd.Persist {
		w.enqueue(laneDisk, s, s, nil, Event{Op: &op, do: func() { w.perform(s, &op) }})
	}
	for _, m := range rd.Send {
		w.send(s, m)
	}
	for _, r := range rd.History {
		w.write("    %d reads its log after %s%s", s.ID, z(r.After), renderRequest(&r))
		w.enqueue(laneHistory, s, s, nil, Event{What: "history", do: func() {
			prefer := w.PreferSnapshots || w.rng != nil && w.rng.IntN(4) == 0
			h := s.Disk.answer(&r, w.ChunkEntries, prefer)
			w.step(s, zab.Input{Kind: zab.InputHistory, History: &h})
		}})
	}
	if rd.Restored != nil {
		w.restore(s, rd.Restored.Zxid)
	}
	w.apply(s, rd.Committed)
	for i := range rd.Delivered {
		w.deliver(s, &rd.Delivered[i])
	}
	for _, b := range rd.Barriers {
		w.proven(s, b)
	}
	some := len(rd.Persist)+len(rd.Send)+len(rd.History)+len(rd.Committed)+len(rd.Delivered)+len(rd.Barriers)+len(rd.Hangup) > 0
	return some || rd.Restored != nil
}

func (w *World) send(s *Server, m zab.Message) {
	w.judge.sends(w, s, &m)
	w.counts[m.Kind]++
	for _, e := range m.Entries {
		w.bytes[m.To] += len(e.Payload)
	}
	if m.Kind != zab.MessageNotification {
		w.transmit(s, m)
		return
	}
	to := w.Server(m.To)
	if to.Up && s.links[m.To] {
		w.supersede(s, to)
		w.enqueue(laneNotes, s, to, nil, Event{Message: &m, do: func() { w.step(to, zab.Input{Kind: zab.InputMessage, Message: &m}) }})
	}
}

// supersede drops a notification that is still under way when the next one goes out: the newest counts.
func (w *World) supersede(from, to *Server) {
	for i, l := range w.lanes {
		if l.kind == laneNotes && l.from == from && l.to == to && (w.rng == nil || w.rng.IntN(2) == 0) {
			w.lanes = slices.Delete(w.lanes, i, i+1)
			return
		}
	}
}

// perform does one operation on disk and confirms it, or leaves that for later if the World draws.
func (w *World) perform(s *Server, op *zab.PersistOp) {
	w.write("    %d disk: %s", s.ID, renderOp(op))
	w.judge.performs(w, s, op)
	if op.Kind == zab.PersistInstallSnapshot || op.Reload {
		state, _, _ := s.Disk.recover()
		s.reload = &state
	}
	confirm := func() { w.step(s, zab.Input{Kind: zab.InputPersisted, Token: op.Token}) }
	if w.rng != nil && w.rng.IntN(2) == 0 {
		w.enqueue(laneConfirm, s, s, nil, Event{What: "confirm", do: confirm})
		return
	}
	confirm()
}

func (w *World) restore(s *Server, at zxid.Zxid) {
	if s.reload == nil {
		w.failf("server %d is to take a state of %v that nobody has loaded", s.ID, at)
		return
	}
	s.State, s.reload = *s.reload, nil
	w.judge.checked[s] = 0
	if last := s.applied(); last != at {
		w.failf("server %d takes a state of %v for one of %v", s.ID, last, at)
	}
	w.write("    %d has the state of %s from disk", s.ID, z(at))
}

// applied is the last transaction of the state.
func (s *Server) applied() zxid.Zxid {
	if n := len(s.State); n > 0 {
		return s.State[n-1].Zxid
	}
	return 0
}

func (w *World) apply(s *Server, entries []zab.Entry) {
	if len(entries) == 0 {
		return
	}
	w.write("    %d applies %s", s.ID, renderEntries(entries))
	for _, e := range entries {
		s.State = append(s.State, zab.Entry{Zxid: e.Zxid, Payload: e.Payload})
		if e.Origin.Server == s.ID {
			s.Done[e.Origin.Seq] = e.Zxid
		}
	}
	w.judge.applies(w, s)
}

// changed looks at what the last step has made of a server.
func (w *World) changed(s *Server) {
	st := s.Node.Status()
	w.judge.status(w, s, st)
	if st.Role != s.last.Role || st.Phase != s.last.Phase || st.Serving != s.last.Serving || st.Generation != s.last.Generation {
		w.write("    %s", renderStatus(s.ID, st))
	}
	if st.Serving && (!s.last.Serving || st.Generation != s.last.Generation) {
		w.judge.serves(w, s, st)
	}
	if st.Generation != s.last.Generation {
		s.barriers = map[uint64]barrierOrigin{}
	}
	s.last = st
}

// Write gives a client's write to a server, which proposes it or passes it on to its leader. The number returned is that
// under which Done tells its end; 0 if the server does not serve.
func (w *World) Write(id zxid.ServerID, payload string) uint64 {
	s := w.Server(id)
	if !s.Up || !s.Node.Status().Serving {
		return 0
	}
	s.nextID++
	origin := zab.Origin{Server: id, Conn: 1, Seq: s.nextID}
	if s.Node.Status().Role == zab.RoleLeading {
		w.step(s, w.proposal(s, payload, origin))
	} else {
		w.step(s, zab.Input{Kind: zab.InputSend, Message: &zab.Message{Kind: zab.MessageRequest, Requests: []zab.Request{{Origin: origin, Body: []byte(payload)}}}})
	}
	return origin.Seq
}

func (w *World) proposal(s *Server, payload string, o zab.Origin) zab.Input {
	e := w.Proposed(s.ID, s.Node.NextZxid(), payload)
	e.Origin = o
	return zab.Input{Kind: zab.InputPropose, Entries: []zab.Entry{e}}
}

// Proposed is a transaction that a server is about to propose.
func (w *World) Proposed(id zxid.ServerID, z zxid.Zxid, payload string) zab.Entry {
	e := zab.Entry{Zxid: z, Payload: []byte(payload)}
	w.judge.proposes(w, w.Server(id), e)
	return e
}

// Sync asks a server for a sync. The number returned is that under which Synced tells its end; 0 if the server does not
// serve.
func (w *World) Sync(id zxid.ServerID) uint64 {
	s := w.Server(id)
	st := s.Node.Status()
	if !s.Up || !st.Serving {
		return 0
	}
	s.nextID++
	n := s.nextID
	s.barriers[n] = barrierOrigin{own: true, id: n, must: w.judge.last()}
	if st.Role == zab.RoleLeading {
		w.step(s, zab.Input{Kind: zab.InputBarrier, ID: n})
	} else {
		w.step(s, zab.Input{Kind: zab.InputSend, Message: &zab.Message{Kind: zab.MessageSync, ID: n}})
	}
	return n
}

// answer feeds what the layer above answers at once; what follows from that comes out of the next Ready.
func (w *World) answer(s *Server, in zab.Input) {
	in.NowMs = w.NowMs
	s.Node.Step(in)
}

// deliver is the layer above.
func (w *World) deliver(s *Server, m *zab.Message) {
	s.Delivered = append(s.Delivered, *m)
	leads := s.Node.Status().Serving && s.Node.Status().Role == zab.RoleLeading
	switch {
	case m.Kind == zab.MessagePing:
		pong := zab.Message{Kind: zab.MessagePong, Conn: m.Conn, ID: m.ID, Touches: []zab.Touch{{Session: 1, TimeoutMs: 1000}}}
		w.answer(s, zab.Input{Kind: zab.InputSend, Message: &pong})
	case m.Kind == zab.MessageRequest && leads:
		for _, q := range m.Requests {
			w.answer(s, w.proposal(s, string(q.Body), q.Origin))
		}
	case m.Kind == zab.MessageSync && leads:
		s.nextID++
		s.barriers[s.nextID] = barrierOrigin{conn: m.Conn, id: m.ID}
		w.answer(s, zab.Input{Kind: zab.InputBarrier, ID: s.nextID})
	case m.Kind == zab.MessageSynced:
		w.synced(s, m.ID, m.Zxid)
	}
}

// proven is told of a sync that the leader may answer.
func (w *World) proven(s *Server, b zab.Barrier) {
	s.Proven = append(s.Proven, b)
	o, ok := s.barriers[b.ID]
	switch {
	case !ok:
		// of a role that has ended
	case o.own:
		w.synced(s, b.ID, b.Zxid)
	default:
		delete(s.barriers, b.ID)
		w.answer(s, zab.Input{Kind: zab.InputSend, Message: &zab.Message{Kind: zab.MessageSynced, Conn: o.conn, ID: o.id, Zxid: b.Zxid}})
	}
}

// synced ends a sync: whoever asked must have all that was committed anywhere when it asked.
func (w *World) synced(s *Server, id uint64, at zxid.Zxid) {
	o, ok := s.barriers[id]
	if !ok || !o.own {
		return
	}
	delete(s.barriers, id)
	w.write("    sync %d of %d is answered: everything up to %s", id, s.ID, z(at))
	if at < o.must {
		w.failf("server %d answers a sync with %v, but %v was committed when it was asked for", s.ID, at, o.must)
	}
	s.Synced[id] = at
}
