package sim

import (
	"zabra/zab"
	"zabra/zab/zxid"
)

// electionLink is the connection between two servers for the election. Either side may come to know of its end late.
type electionLink struct {
	n     *network
	ends  [2]*server
	lives [2]uint32
	// live tells that there is a connection, told that an end believes so.
	live    bool
	told    [2]bool
	pipes   [2]*pipe // pipes[i] leads from ends[i] to the other
	dialled bool
	dropAt  Micros
}

func newElectionLink(n *network, a, b *server) *electionLink {
	return &electionLink{n: n, ends: [2]*server{a, b}}
}

// planDial tries to connect after a while, and again until it works.
func (l *electionLink) planDial() {
	if l.dialled || l.live {
		return
	}
	l.dialled = true
	w := l.n.w
	w.after(w.netRnd.between(2*millisecond, 90*millisecond), func() {
		l.dialled = false
		a, b := l.ends[0], l.ends[1]
		if !a.running || !b.running {
			return // the one that comes up dials
		}
		if l.live {
			return
		}
		if !l.n.open(a.id, b.id) || !l.n.open(b.id, a.id) || a.pausedUntil > w.queue.now || b.pausedUntil > w.queue.now {
			l.planDial()
			return
		}
		l.connect()
	})
}

func (l *electionLink) connect() {
	l.live = true
	for i, s := range l.ends {
		other := l.ends[1-i]
		l.lives[i] = s.life
		l.pipes[i] = &pipe{n: l.n, from: s.id, to: other.id, toLife: other.life}
		l.pipes[i].deliver = func(x parcel) { l.deliver(i, x) }
	}
	for i := range l.ends {
		l.tell(i, true, l.n.latency())
	}
}

// tell reports the link as up or down to one end, after a while.
func (l *electionLink) tell(i int, up bool, d Micros) {
	s, peer := l.ends[i], l.ends[1-i]
	pipe := l.pipes[i]
	l.n.w.afterOn(s, d, func() {
		if up && l.pipes[i] != pipe || !up && (!l.told[i] || l.pipes[i] != pipe && l.live) {
			return // overtaken
		}
		l.told[i] = up
		kind := zab.InputLinkUp
		if !up {
			kind = zab.InputLinkDown
		}
		l.n.w.note(s.id, map[bool]string{true: "has a link to", false: "has lost the link to"}[up], int64(peer.id), 0)
		s.input(zab.Input{Kind: kind, Peer: peer.id})
	})
}

// send passes a notification on. If the one before has not left yet, it may be replaced.
func (l *electionLink) send(from *server, m *zab.Message) {
	i := 0
	if l.ends[1] == from {
		i = 1
	}
	if !l.live || !l.told[i] || l.lives[i] != from.life {
		return // the core says it again when the link is up
	}
	p := l.pipes[i]
	if n := len(p.queue); n > 1 && l.n.w.netRnd.chance(2) {
		p.queue[n-1].msg = m
		return
	}
	p.put(parcel{msg: m})
}

func (l *electionLink) deliver(from int, x parcel) {
	s := l.ends[1-from]
	if !l.told[1-from] && l.live {
		l.told[1-from] = true
		s.input(zab.Input{Kind: zab.InputLinkUp, Peer: l.ends[from].id})
	}
	m := *x.msg
	m.Conn = 0
	l.n.w.noteMessage(s.id, "hears from", m.From, &m)
	s.input(zab.Input{Kind: zab.InputMessage, Message: &m})
}

// drop ends the connection. An end that is alive comes to know of it after noticed.
func (l *electionLink) drop(noticed func() Micros) {
	l.dropFor(func(*server) Micros { return noticed() })
}

// dropFor is drop with a time for each end.
func (l *electionLink) dropFor(noticed func(*server) Micros) {
	if !l.live {
		return
	}
	l.live = false
	for i, s := range l.ends {
		l.pipes[i].lose()
		if s.running && s.life == l.lives[i] {
			l.tell(i, false, noticed(s))
		}
	}
	l.planDial()
}

// endDied cuts the link to a server that has crashed.
func (l *electionLink) endDied(s *server, loud bool) {
	for i, e := range l.ends {
		if e == s {
			l.told[i] = false
		}
	}
	l.drop(func() Micros { return l.noticed(loud) })
}

// noticed is when an end comes to know that the other is gone: soon if it is told, else by its keep-alive.
func (l *electionLink) noticed(loud bool) Micros {
	if loud {
		return l.n.latency()
	}
	return l.n.w.netRnd.between(300*millisecond, 1500*millisecond)
}

// unblocked lets held notifications go.
func (l *electionLink) unblocked(a, b zxid.ServerID) {
	for i, s := range l.ends {
		if s.id == a && l.ends[1-i].id == b && l.live {
			l.pipes[i].unstall()
		}
	}
}

// watch ends links whose way has been blocked for longer than a keep-alive tolerates.
func (l *electionLink) watch() {
	a, b := l.ends[0], l.ends[1]
	if !l.live || l.n.open(a.id, b.id) && l.n.open(b.id, a.id) {
		l.dropAt = 0
		return
	}
	now := l.n.w.queue.now
	switch {
	case l.dropAt == 0:
		l.dropAt = now + l.n.w.netRnd.between(300*millisecond, 1500*millisecond)
	case now >= l.dropAt:
		l.dropAt = 0
		l.drop(func() Micros { return l.n.w.netRnd.between(0, 300*millisecond) })
	}
}
