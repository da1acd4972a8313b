package server

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"zabra/wire/peer"
	"zabra/zab/zxid"
)

// lead listens for learners while this server leads. The port may still be held by an earlier role of this process, or
// by an earlier process; it is tried again until it can be bound or the role ends.
func (m *member) lead(ctx context.Context, generation uint32) {
	for _, addr := range quorumAddresses(m.self) {
		m.s.spawn(func() { m.leadOn(ctx, addr, generation) })
		if m.s.cfg.QuorumListenOnAllIPs {
			return // one port for all addresses
		}
	}
}

func (m *member) leadOn(ctx context.Context, addr string, generation uint32) {
	l := m.bindQuorum(ctx, addr)
	if l == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	m.accept(ctx, l, func(nc net.Conn) func() {
		nc, hello, err := m.answer(nc, peer.PurposeQuorum, m.checkHello)
		if err != nil {
			return nil
		}
		c := m.conns.add(m, nc, hello.From, generation)
		if c == nil {
			nc.Close()
			return nil
		}
		return c.serve
	})
}

// bindQuorum returns nil when the role ends before the port can be bound.
func (m *member) bindQuorum(ctx context.Context, addr string) net.Listener {
	for pause := bindBackoffMin; ; pause = min(2*pause, bindBackoffMax) {
		l, err := m.bind(ctx, addr)
		if err == nil {
			m.trouble.over(troubleKey{"bind " + addr, 0})
			m.s.log.Info("listening for learners on " + l.Addr().String())
			return l
		}
		if ctx.Err() != nil {
			return nil
		}
		if pause > joinBackoffMax { // not only the rest of an earlier role
			m.trouble.note(m, "bind "+addr, 0, "this server leads, but cannot listen on its quorum address; see to it that the address is this machine's and that no other process uses the port",
				zap.String("address", addr), zap.Error(err))
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// join connects to the leader and serves that connection. The leader may be on its way to open its port, so that the
// attempts follow one another quickly. It is for the core to give up on a leader that does not come, unless
// connectToLearnerMasterLimit is shorter than its patience.
func (m *member) join(ctx context.Context, generation uint32, leader zxid.ServerID) {
	target, ok := m.config.Member(leader)
	if !ok {
		m.s.log.Error("the elected leader is not in this server's configuration; compare the server lines of all members", zap.Int64("leader", int64(leader)))
		return
	}
	if !sleep(ctx, m.joins.begin()) {
		return
	}
	began := time.Now()
	for pause := joinBackoffMin; ctx.Err() == nil; pause = min(2*pause, joinBackoffMax) {
		nc, err := m.dial(ctx, quorumAddresses(target), leader, peer.PurposeQuorum)
		if err == nil {
			m.reached(leader, "quorum address")
			if c := m.conns.add(m, nc, leader, generation); c != nil {
				c.serve()
				m.joins.end()
			} else {
				nc.Close()
			}
			return
		}
		if time.Since(began) > linkBackoffMax && ctx.Err() == nil {
			m.unreachable(leader, "quorum address", quorumAddresses(target), err)
		}
		if limit := m.limits.join; limit > 0 && time.Since(began) > limit {
			m.s.log.Warn("cannot connect to the leader within connectToLearnerMasterLimit; looking for another one. See whether its quorum port can be reached from here",
				zap.Int64("leader", int64(leader)), zap.String("address", strings.Join(quorumAddresses(target), ", ")), zap.Error(err))
			// To the core this is a leader that is not there, whatever its election link says.
			if l := m.links[leader]; l != nil {
				l.blink()
			}
			return
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// joins keeps a learner from trying again and again in a tight loop when its connections to leaders come to nothing.
type joins struct {
	mu   sync.Mutex
	next time.Duration
	// served is set when the last connection has led to clients being served.
	served bool
}

// begin returns how long to wait before the next connection.
func (j *joins) begin() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.served = false
	return j.next
}

// succeed notes that the connection was worth it.
func (j *joins) succeed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.served, j.next = true, 0
}

// end notes that the connection has ended.
func (j *joins) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.served {
		j.next = min(max(2*j.next, joinBackoffMin), joinPauseMax)
	}
}
