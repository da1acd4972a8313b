package replica

import (
	"zabra/zab"
	"zabra/zab/zxid"
)

// broadcast is what the replica needs of the core, which is a zab.Node; tests may put something simpler in its place.
type broadcast interface {
	Step(in zab.Input)
	Ready() zab.Ready
	Status() zab.Status
	Serves() (generation uint32, serving bool)
	NextZxid() zxid.Zxid
	Busy() bool
	WakeAtMs() int64
}

var _ broadcast = (*zab.Node)(nil)

// newCore makes the core of a recovered state.
func newCore(cfg *Config, rec *Recovered, now Now) broadcast {
	if cfg.Ensemble == nil {
		return zab.NewFixedEpoch(zab.Config{LastZxid: rec.LastZxid})
	}
	core := *cfg.Ensemble
	core.LastZxid, core.NowMs = rec.LastZxid, now.MonoMs-now.AheadMs
	return zab.New(core)
}

// feed steps the core with something that happens now.
func (r *Replica) feed(in zab.Input) {
	in.NowMs = r.now.MonoMs - r.now.AheadMs
	r.core.Step(in)
}

// send hands a message to the core, which drops it if the role or the connection does not allow it any more.
func (r *Replica) send(m zab.Message) {
	r.sendRequests()
	m.From = r.id
	r.feed(zab.Input{Kind: zab.InputSend, Message: &m, Conn: m.Conn, Peer: m.To})
}

// collect carries out what the core has come to: what is committed is applied, a role that has ended or begun is
// followed, messages and barriers are answered. What is left for the shell is gathered in r.out.
func (r *Replica) collect() {
	for {
		rd := r.core.Ready()
		r.out.Persist = append(r.out.Persist, rd.Persist...)
		r.out.Send = append(r.out.Send, rd.Send...)
		r.out.Hangup = append(r.out.Hangup, rd.Hangup...)
		r.out.History = append(r.out.History, rd.History...)
		if rd.Restored != nil && r.Tree().LastZxid() != rd.Restored.Zxid {
			panic("replica: the state is that of " + r.Tree().LastZxid().String() + ", and not the restored one of " + rd.Restored.Zxid.String())
		}
		r.apply(rd.Committed)
		changed := r.followRole()
		r.proven(rd.Barriers)
		for i := range rd.Delivered {
			r.receive(&rd.Delivered[i])
		}
		r.releaseWaiters()
		if len(rd.Committed) == 0 && len(rd.Barriers) == 0 && len(rd.Delivered) == 0 && !changed {
			return
		}
	}
}

// receive takes a message from another server.
func (r *Replica) receive(m *zab.Message) {
	switch {
	case m.Kind == zab.MessagePing:
		r.answerPing(m)
	case !r.term.serving:
	case r.term.leading:
		r.receiveAsLeader(m)
	default:
		r.receiveAsLearner(m)
	}
}
