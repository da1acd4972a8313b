package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"zabra/server/replica"
	"zabra/wire/peer"
	"zabra/zab"
	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// member is what connects this server to the other members of its ensemble. What they say to each other is decided in
// package zab; here it is carried.
//
// There are two kinds of connections. Election links (link) join every pair of members at all times; only the newest
// notification counts on them. Quorum connections (quorumConn) join a leader with its learners for as long as the leader
// leads, and keep their order.
//
// The stepping goroutine calls carryOut after each step. Everything that happens outside comes back to it as an input.
type member struct {
	s      *Server
	id     zxid.ServerID
	config *ensemble.Config
	self   ensemble.Member
	auth   peer.Authenticator
	limits memberLimits

	ctx    context.Context // ends with the server
	cancel context.CancelFunc
	// linkCtx ends with the election links: before the server does, when it hands over.
	linkCtx context.Context
	unlink  context.CancelFunc

	election []electionListener
	links    map[zxid.ServerID]*link // fixed
	conns    quorumConns
	trouble  trouble
	joins    joins

	status  atomic.Pointer[zab.Status]
	changed changeSignal
	meter   memberMeter

	// The stepping goroutine's.
	endRole context.CancelFunc
	lostMs  int64 // monotonic: since when clients are not served
}

// memberLimits are the times that the configuration sets for what goes on between members.
type memberLimits struct {
	dial  time.Duration // to connect to an election port and be greeted there
	join  time.Duration // to connect to the leader, all attempts together; 0: as long as the core waits
	write time.Duration // in which a peer has to take some of what it is sent
	quiet time.Duration // after which a peer whose system does not answer is given up
}

// newMember prepares the member and binds its election port. Nothing runs yet.
func newMember(s *Server) (*member, error) {
	cfg := s.cfg
	self, _ := cfg.Ensemble.Member(cfg.MyID) // it is one, or the configuration would not have been valid
	tick := time.Duration(cfg.TickTimeMs) * time.Millisecond
	m := &member{s: s, id: cfg.MyID, config: cfg.Ensemble, self: self, auth: peerAuth(s), links: make(map[zxid.ServerID]*link)}
	m.limits = memberLimits{
		dial: time.Duration(cfg.CnxTimeoutMs) * time.Millisecond,
		// A learner that loads a snapshot may take that long to come back to reading.
		write: time.Duration(max(cfg.InitLimitTicks, cfg.SyncLimitTicks)) * tick,
		quiet: time.Duration(cfg.SyncLimitTicks) * tick,
	}
	if cfg.ConnectToLearnerMasterLimitTicks < cfg.InitLimitTicks {
		m.limits.join = time.Duration(cfg.ConnectToLearnerMasterLimitTicks) * tick
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.linkCtx, m.unlink = context.WithCancel(m.ctx)
	m.conns.init()
	m.trouble.init()
	m.status.Store(&zab.Status{Role: zab.RoleLooking})
	for _, other := range m.config.Members() {
		if other.ID != m.id && (!other.Observer || !self.Observer) {
			m.links[other.ID] = newLink(m, other)
		}
	}
	if err := m.bindElection(); err != nil {
		m.cancel()
		return nil, &StartError{Stage: StageElectionPort, Err: err}
	}
	return m, nil
}

func memberIDs(c *ensemble.Config) (ids []zxid.ServerID) {
	for _, m := range c.Members() {
		ids = append(ids, m.ID)
	}
	return ids
}

// announce comes before the first step.
func (m *member) announce() {
	m.lostMs = m.s.clock.now().MonoMs
	m.meter.looking.Add(1)
	m.s.log.Info("LOOKING", zap.Int64("myid", int64(m.id)), zap.Int("voters", len(m.config.Voters())))
}

// start begins to talk to the others.
func (m *member) start() {
	for i := range m.election {
		m.s.spawn(m.election[i].acceptLoop)
	}
	for _, l := range m.links {
		m.s.spawn(l.run)
	}
}

// close ends all connections at once.
func (m *member) close() {
	m.cancel()
	m.leaveElections()
	m.conns.closeAll()
}

// leaveElections ends the election links: from now on nobody waits for this server's vote.
func (m *member) leaveElections() {
	m.unlink()
	for i := range m.election {
		m.election[i].close()
	}
}

// input hands on what has happened.
func (m *member) input(in zab.Input) { m.s.steps.input(in) }

// carryOut does what a step wants of the network. It belongs to the stepping goroutine and never waits.
func (m *member) carryOut(rd *replica.Ready) {
	for i := range rd.Send {
		msg := &rd.Send[i]
		if msg.Kind != zab.MessageNotification {
			if c := m.conns.send(msg); c != nil && !slices.Contains(m.s.steps.peers, c) {
				m.s.steps.peers = append(m.s.steps.peers, c)
			}
		} else if l := m.links[msg.To]; l != nil {
			l.send(msg)
		}
	}
	for _, h := range rd.Hangup {
		m.conns.hangUp(h, rd.Status.Why)
	}
	for _, req := range rd.History {
		m.s.spawn(func() { m.history(req) })
	}
	m.measure(rd)
	m.follow(&rd.Status)
}

// follow acts on a change of what this server is to the ensemble.
func (m *member) follow(st *zab.Status) {
	old := m.status.Load()
	if *st == *old {
		return
	}
	now := *st
	m.status.Store(&now)
	if now.Generation != old.Generation || now.Role != old.Role || now.Leader != old.Leader || now.HasLeader != old.HasLeader {
		m.changeRole(old, &now)
	}
	if now.Phase != old.Phase && now.Role != zab.RoleLooking {
		m.s.log.Info("Peer state changed: " + peerState(&now))
	}
	if now.Serving != old.Serving {
		m.changeServing(&now)
	}
	m.changed.tell()
}

// changeRole ends what the last role had going, and begins what the new one needs: a leader listens for its learners, a
// learner connects to its leader.
func (m *member) changeRole(old, now *zab.Status) {
	if m.endRole != nil {
		m.endRole()
		m.endRole = nil
	}
	m.conns.beginRole(now.Generation)
	m.logRole(old, now)
	if m.ctx.Err() != nil || now.Role == zab.RoleLooking {
		return
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.endRole = cancel
	generation, leader := now.Generation, now.Leader
	if now.Role == zab.RoleLeading {
		m.s.spawn(func() { m.lead(ctx, generation) })
	} else {
		m.s.spawn(func() { m.join(ctx, generation, leader) })
	}
}

// logRole tells of a role in the words that alert rules look for.
func (m *member) logRole(old, now *zab.Status) {
	if now.Role == zab.RoleLooking {
		if old.Role != zab.RoleLooking {
			m.meter.looking.Add(1)
			text := "LOOKING"
			if m.s.phase.Load() != phaseServing {
				text = "no longer a member's role" // this server is being shut down
			}
			m.s.log.Info(text, zap.String("because", now.Why))
		}
		return
	}
	m.meter.election.add(now.ElectionMs)
	fields := []zap.Field{zap.Stringer("zxid", now.LastDurable)}
	if now.Role != zab.RoleLeading {
		fields = append(fields, zap.Int64("leader", int64(now.Leader)))
	}
	m.s.log.Info(fmt.Sprintf("%v - LEADER ELECTION TOOK - %d MS", now.Role, now.ElectionMs), fields...)
}

// changeServing notes since when clients are served, or are not.
func (m *member) changeServing(now *zab.Status) {
	nowMs := m.s.clock.now().MonoMs
	if !now.Serving {
		m.lostMs = nowMs
		m.meter.servingMs.Store(0)
		return
	}
	m.meter.servingMs.Store(nowMs)
	m.joins.succeed()
	m.meter.unavailable.add(nowMs - m.lostMs)
	if now.Role == zab.RoleLeading {
		m.meter.leaderUnavailable.add(nowMs - m.lostMs)
	}
	m.s.log.Info("serving clients", zap.Stringer("role", now.Role), zap.Uint64("epoch", uint64(now.Epoch)), zap.Int64("unavailableMs", nowMs-m.lostMs))
}

// isServing reports whether clients are to be served: there is a quorum that this server belongs to and is level with.
func (m *member) isServing() bool { return m.status.Load().Serving }

// await waits until the status meets cond. It reports false if ctx ends before.
func (m *member) await(ctx context.Context, cond func(*zab.Status) bool) bool {
	for {
		ch := m.changed.wait()
		if cond(m.status.Load()) {
			return true
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return false
		}
	}
}

// changeSignal wakes whoever waits for the next change.
type changeSignal struct {
	mu sync.Mutex
	ch chan struct{} // nil while nobody waits
}

func (c *changeSignal) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ch == nil {
		c.ch = make(chan struct{})
	}
	return c.ch
}

func (c *changeSignal) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ch != nil {
		close(c.ch)
		c.ch = nil
	}
}

// peerState names role and phase as mntr does.
func peerState(st *zab.Status) string {
	var role string
	switch st.Role {
	case zab.RoleLeading:
		role = "leading"
	case zab.RoleFollowing:
		role = "following"
	case zab.RoleObserving:
		role = "observing"
	default:
		return "looking"
	}
	return role + " - " + st.Phase.String()
}
