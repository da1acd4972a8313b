package sim

import (
	"zabra/zab"
	"zabra/zab/zxid"
)

// network is what lies between the servers: which ways are blocked, how long messages take, the election links and the
// connections between learners and leaders.
type network struct {
	w *world
	// blocked counts the partitions that stop what goes from one server to another.
	blocked [][]int
	// slowUntil makes everything take long.
	slowUntil Micros
	healed    bool
	links     []*electionLink // by pair
	conns     []*quorumConn   // open at one end at least
}

func (n *network) init(w *world) {
	n.w = w
	size := len(w.servers) + 1
	n.blocked = make([][]int, size)
	for i := range n.blocked {
		n.blocked[i] = make([]int, size)
	}
	for i, a := range w.servers {
		for _, b := range w.servers[i+1:] {
			n.links = append(n.links, newElectionLink(n, a, b))
		}
	}
}

// open reports whether what a sends can reach b.
func (n *network) open(a, b zxid.ServerID) bool { return n.blocked[a][b] == 0 }

// latency is how long something takes to the other side.
func (n *network) latency() Micros {
	if n.slowUntil > n.w.queue.now {
		return n.w.netRnd.between(20*millisecond, 300*millisecond)
	}
	return n.w.netRnd.longTail(80, 25*millisecond)
}

// block stops what goes from a to b, or lets it go again.
func (n *network) block(a, b zxid.ServerID, on bool) {
	if n.healed {
		return
	}
	if on {
		n.blocked[a][b]++
		return
	}
	if n.blocked[a][b]--; n.blocked[a][b] > 0 {
		return
	}
	for _, l := range n.links {
		l.unblocked(a, b)
	}
	for _, c := range n.conns {
		c.unblocked(a, b)
	}
}

// serverUp tells the network of a server that has started.
func (n *network) serverUp(s *server) {
	for _, l := range n.links {
		if l.ends[0] == s || l.ends[1] == s {
			l.planDial()
		}
	}
}

// serverDown cuts everything that leads to a server. With loud, the peers are told.
func (n *network) serverDown(s *server, loud bool) {
	for _, l := range n.links {
		if l.ends[0] == s || l.ends[1] == s {
			l.endDied(s, loud)
		}
	}
	for _, c := range append([]*quorumConn(nil), n.conns...) {
		if c.ends[0].srv == s || c.ends[1].srv == s {
			c.endDied(s, loud)
		}
	}
}

// parcel is one thing on its way through a pipe: a message, a piece of a snapshot, or the end of the connection.
type parcel struct {
	at    Micros
	msg   *zab.Message
	chunk *chunk
	eof   bool
}

// pipe is one direction of a connection: first in, first out.
type pipe struct {
	n        *network
	from, to zxid.ServerID
	toLife   uint32 // what is sent to a server that has died since is lost
	queue    []parcel
	lastAt   Micros
	planned  bool
	stalled  bool // the way is blocked
	shut     bool // takes nothing more
	deliver  func(parcel)
}

// put sends something on its way.
func (p *pipe) put(x parcel) {
	if p.shut {
		return
	}
	x.at = max(p.lastAt, p.n.w.queue.now+p.n.latency())
	p.lastAt = x.at
	p.queue = append(p.queue, x)
	p.plan()
}

// plan arranges for the delivery of the oldest parcel.
func (p *pipe) plan() {
	if p.planned || p.stalled || len(p.queue) == 0 {
		return
	}
	p.planned = true
	w := p.n.w
	s := w.server(p.to)
	d := max(p.queue[0].at-w.queue.now, 0)
	w.queue.add(event{at: w.queue.now + d, srv: s, life: p.toLife, run: p.arrive})
}

// arrive delivers everything that is due.
func (p *pipe) arrive() {
	p.planned = false
	for len(p.queue) > 0 && p.queue[0].at <= p.n.w.queue.now {
		if !p.n.open(p.from, p.to) {
			p.stalled = true
			return
		}
		x := p.queue[0]
		p.queue[0] = parcel{}
		p.queue = p.queue[1:]
		p.deliver(x)
	}
	p.plan()
}

// unstall goes on when the way is free again: what was held back comes after one more latency.
func (p *pipe) unstall() {
	if !p.stalled {
		return
	}
	p.stalled = false
	at := p.n.w.queue.now + p.n.latency()
	for i := range p.queue {
		p.queue[i].at = max(p.queue[i].at, at)
	}
	p.lastAt = max(p.lastAt, at)
	p.plan()
}

// lose drops some of what is under way, from a random place on, and lets nothing more in.
func (p *pipe) lose() {
	if n := len(p.queue); n > 0 {
		p.queue = p.queue[:p.n.w.netRnd.IntN(n+1)]
	}
	p.shut = true
}
