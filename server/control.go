package server

import (
	"fmt"
	"sync/atomic"
	"time"

	"zabra/zab/zxid"
)

// Control puts the time and the sessions of a server into the hands of a test. It is passed in Options, and no
// configuration leads to it. A server that is started with the Control of an earlier one goes on from the time that was
// reached there. Its methods may be called from any goroutine.
type Control struct {
	aheadMs atomic.Int64
	server  atomic.Pointer[Server]
}

// Sessions returns all sessions that the server knows of, in order.
func (c *Control) Sessions() (ids []zxid.SessionID) {
	s := c.server.Load()
	if s == nil {
		return nil
	}
	for _, known := range (source{s}).globalSessions() {
		ids = append(ids, known.Session)
	}
	return ids
}

// Connected returns the sessions whose connections the server has, in order.
func (c *Control) Connected() (ids []zxid.SessionID) {
	c.onStep(func(s *Server) { ids = s.replica.Connected() })
	return ids
}

// Advance lets d pass at once, in whole milliseconds, for clients and data: the timeouts of sessions, the lives of containers
// and TTL nodes, the time of day. The limits of an ensemble are left out, whose members are to stay together. The sessions
// in alive count as heard all the time. What falls due is proposed when Advance returns. A server that does not run finds
// the new time when it is started.
func (c *Control) Advance(d time.Duration, alive []zxid.SessionID) {
	if c.onStep(func(s *Server) { c.advance(s, d, alive) }) {
		return
	}
	c.aheadMs.Add(d.Milliseconds())
}

// advance belongs to the stepping goroutine.
func (c *Control) advance(s *Server, d time.Duration, alive []zxid.SessionID) {
	c.aheadMs.Add(d.Milliseconds())
	s.replica.Jump(s.clock.now(), alive)
	s.stepInputs(nil)
	s.steps.armedMs = 0 // the timer was set before
}

// ExpireSession ends a session as its timeout would. The end is proposed when it returns. It fails on a server that does
// not lead, and for a session that does not exist.
func (c *Control) ExpireSession(id zxid.SessionID) error {
	err := ErrServerClosed
	c.onStep(func(s *Server) {
		s.stepInputs(nil) // for the time
		if err = nil; !s.replica.ExpireSession(id) {
			err = fmt.Errorf("session %v is not one that this server decides about", id)
		}
		s.stepInputs(nil)
	})
	return err
}

// Proposed returns the last transaction of the server's log, committed or not.
func (c *Control) Proposed() (last zxid.Zxid) {
	c.onStep(func(s *Server) { last = s.replica.LastProposed() })
	return last
}

// onStep runs f on the stepping goroutine of the server. It reports false if there is none.
func (c *Control) onStep(f func(*Server)) bool {
	s := c.server.Load()
	return s != nil && s.phase.Load() == phaseServing && s.onStep(func() { f(s) })
}
