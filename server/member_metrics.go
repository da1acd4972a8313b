package server

import "zabra/server/admin"

// configuration is what conf shows of the ensemble.
func (m *member) configuration() *admin.EnsembleConfiguration {
	c := &admin.EnsembleConfiguration{
		InitLimitTicks: m.s.cfg.InitLimitTicks, SyncLimitTicks: m.s.cfg.SyncLimitTicks, ElectionAlg: m.s.cfg.ElectionAlg,
		Observer: m.self.Observer, Membership: m.config.Text(),
	}
	for _, a := range m.self.Addresses {
		c.ElectionPorts, c.QuorumPorts = append(c.ElectionPorts, a.ElectionPort), append(c.QuorumPorts, a.QuorumPort)
	}
	return c
}

// proposals is what srvr shows of a leader; nil for any other server.
func (m *moment) proposals() *admin.ProposalSizes {
	if m.s.mode() != admin.ModeLeader {
		return nil
	}
	return &admin.ProposalSizes{Last: int64(m.stats.LastProposalBytes), Min: int64(m.stats.MinProposalBytes), Max: int64(m.stats.MaxProposalBytes)}
}
