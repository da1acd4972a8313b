package sim

import (
	"zabra/zab"
	"zabra/zab/zxid"
)

// send passes a message of the core on to the network, after a look at what it promises.
func (s *server) send(in *zab.Message) {
	m := new(zab.Message)
	*m = *in
	w := s.w
	w.noteMessage(s.id, "sends to", m.To, m)
	if m.Conn == 0 {
		s.checkVote(m)
		if m.To >= 1 && int(m.To) <= len(w.servers) && m.To != s.id {
			w.net.link(s.id, m.To).send(s, m)
		}
		w.trigger(s, pointOfMessage(m.Kind))
		return
	}
	e := s.conns[m.Conn]
	if e == nil {
		return
	}
	if m.Kind == zab.MessageAckEpoch {
		m.Resume = s.store.Resume()
	}
	e.checkSent(m)
	e.send(m)
	w.trigger(s, pointOfMessage(m.Kind))
}

// link returns the election link between two servers.
func (n *network) link(a, b zxid.ServerID) *electionLink {
	for _, l := range n.links {
		if l.ends[0].id == a && l.ends[1].id == b || l.ends[0].id == b && l.ends[1].id == a {
			return l
		}
	}
	return nil
}
