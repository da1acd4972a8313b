package sim

import (
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// maybeWipe empties the disk of a server that is down, as when a machine is replaced, if that takes nothing from anyone.
//
// A server with an empty disk has forgotten what it has acknowledged and which epochs it has promised, so that in general
// a minority of emptied disks loses committed transactions. It is sound when everything that the server ever promised is
// promised by all other voters too: its whole history is durable on each of them, and each of them has accepted and made
// current an epoch at least as high. Then every quorum, which has another voter in it, knows all that this server could
// have told it; nothing that is counted on the strength of its acknowledgements depends on its disk; and no leader of an
// older epoch can win it over and get anywhere, because that takes another voter who refuses. Messages of its last life
// say nothing that the others do not know, and its connections are gone.
//
// One thing is lost all the same: which session ids it has made that have come and gone. A new disk is no harm there as
// long as the wall clock, from which new ids come, is not behind; so it is set right with the new disk.
func (s *server) maybeWipe() {
	wipe := s.orders.wipe
	s.orders.wipe = false
	d := &s.durable
	if !wipe || s.member.Observer || len(d.history) == 0 {
		return
	}
	for _, id := range s.w.ensemble.Voters() {
		o := s.w.server(id)
		if o == s {
			continue
		}
		if !o.durable.has(d.last()) || len(d.written) > 0 && !o.durable.has(d.written[len(d.written)-1]) ||
			o.durable.accepted < d.accepted || o.durable.current < d.epoch() || d.limbo != nil {
			return
		}
	}
	s.w.count.Wiped++
	s.w.note(s.id, "has an empty disk", 0, 0)
	s.mem, s.durable = vfs.NewMem(), durable{}
	s.ackEpochs = map[zxid.Epoch]bool{}
	s.wallOffMs = max(s.wallOffMs, s.wallOffMaxMs)
}
