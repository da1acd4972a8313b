package admin

import "strconv"

// The numbers that conf shows for a member with and without a vote.
const (
	peerTypeParticipant = 0
	peerTypeObserver    = 1
)

// appendText appends what conf shows of an ensemble behind the lines that every server has. It ends without a line break.
func (e *EnsembleConfiguration) appendText(b []byte) []byte {
	peerType := int64(peerTypeParticipant)
	if e.Observer {
		peerType = peerTypeObserver
	}
	b = appendIntLine(b, "initLimit=", int64(e.InitLimitTicks))
	b = appendIntLine(b, "syncLimit=", int64(e.SyncLimitTicks))
	b = appendIntLine(b, "electionAlg=", int64(e.ElectionAlg))
	b = appendPorts(b, "electionPort=", e.ElectionPorts)
	b = appendPorts(b, "quorumPort=", e.QuorumPorts)
	b = appendIntLine(b, "peerType=", peerType)
	b = append(b, "membership: \n"...)
	return append(b, e.Membership...)
}

// appendPorts appends the ports of one purpose, one for each address.
func appendPorts(b []byte, label string, ports []int) []byte {
	b = append(b, label...)
	for i, port := range ports {
		if i > 0 {
			b = append(b, '|')
		}
		b = strconv.AppendInt(b, int64(port), 10)
	}
	return append(b, '\n')
}

// appendGlobal lists the sessions of a learner.
func (d Dump) appendGlobal(b []byte) []byte {
	b = appendField(b, "Global Sessions(", int64(len(d.Global)))
	b = append(b, "):\n"...)
	for _, s := range d.Global {
		b = append(b, s.Session.String()...)
		b = appendField(b, "\t", int64(s.TimeoutMs))
		b = append(b, "ms\n"...)
	}
	return b
}
