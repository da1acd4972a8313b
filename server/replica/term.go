package replica

import (
	"zabra/session"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// term is a time during which clients are served in one role. When it ends, every connection ends with it: what was
// asked for and not answered has an unknown outcome, and the sessions are taken up again wherever the clients go.
type term struct {
	serving bool
	// leading tells that transactions are made here: by the leader, or by a standalone server.
	leading bool
	// generation is that of the core's role.
	generation uint32
	leader     zxid.ServerID
}

// followRole ends the term when the core's role has ended, and begins one when the core says that clients may be served.
func (r *Replica) followRole() (changed bool) {
	generation, serving := r.core.Serves()
	if r.term.serving && (!serving || generation != r.term.generation) {
		r.endTerm()
		changed = true
	}
	if serving && !r.term.serving {
		st := r.core.Status()
		r.beginTerm(&st)
		changed = true
	}
	return changed
}

// beginTerm makes ready for clients.
func (r *Replica) beginTerm(st *zab.Status) {
	r.term = term{serving: true, generation: st.Generation, leader: st.Leader}
	if st.Role == zab.RoleLeading || st.Role == zab.RoleStandalone {
		r.lead(st)
	} else {
		r.heard = &session.Heard{}
		r.heard.Advance(r.now.MonoMs)
	}
	if ens := r.cfg.Ensemble; ens != nil {
		text := ens.Ensemble.Text()
		r.Tree().Lock()
		r.Tree().SetConfig([]byte(text), zxid.Zxid(ens.Ensemble.Version()), r.now.WallMs)
		r.Tree().Unlock()
	}
	r.conns.mu.Lock()
	r.conns.serving = true
	r.conns.mu.Unlock()
}

// lead makes ready for transactions. Every session gets its full timeout from now on; which connection it is bound to
// is unknown until its first request. Everything in the log is applied by now.
func (r *Replica) lead(st *zab.Status) {
	if last := r.Tree().LastZxid(); last != st.LastProposed {
		panic("replica: becoming the leader with a log up to " + st.LastProposed.String() + ", but a state of " + last.String())
	}
	r.term.leading = true
	r.pending = newPendingView(r.Tree(), r.cfg.Tree.NoDigest)
	r.orphans = r.Tree().Orphans()
	r.tracker = session.NewTracker(r.cfg.TickMs)
	r.Tree().VisitSessions(func(s zxid.SessionID, timeoutMs int32) bool {
		r.tracker.Add(s, timeoutMs, r.now.MonoMs)
		return true
	})
	r.reaper = reaper{nextScanMs: r.now.MonoMs + r.cfg.ContainerCheckMs}
}

// endTerm cuts all clients off and forgets what belonged to the role.
func (r *Replica) endTerm() {
	r.term = term{}
	if r.audit.on {
		r.auditEnd()
	}
	r.conns.mu.Lock()
	r.conns.serving = false
	r.conns.mu.Unlock()
	for _, c := range r.snapshotConns() {
		r.cutOff(c)
	}
	r.proposed.Store(0)
	r.proposedBytes.Store(0)
	r.tracker, r.heard, r.pending = nil, nil, nil
	r.orphans, r.reaper = nil, reaper{}
	r.again, r.parked, r.forwardedBytes = nil, nil, 0
	r.hint, r.hints, r.hintsTaken = znode.Hint{}, nil, 0
	r.requests, r.requestBytes, r.lastIDs = nil, 0, receivedIDs{}
	r.syncs = syncs{}
	r.reattach = reattachments{}
	clear(r.bySession)
	clear(r.toldExpired)
}

// cutOff ends a connection because its server does not serve any more. What is in its outbox may still be written.
func (r *Replica) cutOff(c *Conn) {
	c.cut = true
	c.unwatch()
	c.finish()
	r.drop(c)
	r.markDirty(c)
}

// unwatch forgets all watches of a connection, and lets it set none any more.
func (c *Conn) unwatch() {
	if c.watches != nil {
		c.watches.Detach(c.watcher)
	}
}

// drop throws away everything that waits on a connection, and wakes its reader.
func (r *Replica) drop(c *Conn) {
	c.takeIn()
	c.dropRest()
	c.resume()
}

// Restore replaces the state by one that was loaded anew, because the leader's snapshot was installed or the log was
// truncated. It belongs to the stepping goroutine and comes before the step that confirms the operation which made it
// necessary. Nobody is served meanwhile.
func (r *Replica) Restore(rec *Recovered) {
	if r.term.serving {
		panic("replica: the state is replaced while clients are served")
	}
	r.trees.Store(rec.Tree)
	r.ids.Raise(rec.SessionFloor)
	r.digests.mu.Lock()
	r.digests.list = nil
	r.digests.mu.Unlock()
}

// Serving tells, from any goroutine, whether clients are served: a connection that is opened meanwhile ends at once.
func (r *Replica) Serving() bool {
	r.conns.mu.Lock()
	defer r.conns.mu.Unlock()
	return r.conns.serving
}

// nextID numbers questions to the leader and barriers. Numbers are never used again, so that a late answer finds nobody.
func (r *Replica) nextID() uint64 {
	r.lastID++
	return r.lastID
}
