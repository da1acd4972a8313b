package server

import (
	"sync/atomic"

	"zabra/server/admin"
	"zabra/server/replica"
	"zabra/zab"
)

// memberMeter counts what concerns the ensemble.
type memberMeter struct {
	looking           atomic.Int64
	proposalsReceived atomic.Int64
	commitsReceived   atomic.Int64
	diffs, snaps      atomic.Int64
	election          summary // ms
	unavailable       summary // ms
	leaderUnavailable summary // ms
	// servingMs is since when clients are served, by the monotonic clock; 0: they are not.
	servingMs atomic.Int64
}

// reset is srst.
func (m *memberMeter) reset() {
	for _, n := range []*atomic.Int64{&m.looking, &m.proposalsReceived, &m.commitsReceived, &m.diffs, &m.snaps} {
		n.Store(0)
	}
	for _, s := range []*summary{&m.election, &m.unavailable, &m.leaderUnavailable} {
		s.reset()
	}
}

// count counts what a learner receives.
func (m *memberMeter) count(msg *zab.Message) {
	switch msg.Kind {
	case zab.MessageProposal, zab.MessageInform:
		m.proposalsReceived.Add(int64(len(msg.Entries)))
	case zab.MessageCommit:
		m.commitsReceived.Add(1)
	}
}

// measure counts what a leader sends.
func (m *member) measure(rd *replica.Ready) {
	if rd.Status.Role != zab.RoleLeading {
		return
	}
	for i := range rd.Send {
		switch rd.Send[i].Kind {
		case zab.MessageDiff, zab.MessageTrunc:
			m.meter.diffs.Add(1)
		case zab.MessageSnap:
			m.meter.snaps.Add(1)
		}
	}
}

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

// memberGauges are those of every member, leaderGauges those of a leader only.
var memberGauges = []metric{
	{"quorum_size", "Members of the ensemble that have a vote", count(func(m *moment) int64 { return int64(len(m.s.member.config.Voters())) })},
}

var leaderGauges = []metric{
	{"followers", "Learners connected to this leader; the name that old dashboards know", count(func(m *moment) int64 { return int64(m.status.Learners) })},
	{"last_proposal_size", "Size of the last proposal, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.LastProposalBytes) })},
	{"leader_uptime", "Time since this server began to serve as the leader, ms", count(func(m *moment) int64 { return m.uptimeMs })},
	{"learners", "Learners connected to this leader", count(func(m *moment) int64 { return int64(m.status.Learners) })},
	{"max_proposal_size", "Size of the largest proposal, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.MaxProposalBytes) })},
	{"min_proposal_size", "Size of the smallest proposal, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.MinProposalBytes) })},
	{"pending_syncs", "Requests of clients that wait for the proof of leadership", count(func(m *moment) int64 { return int64(m.stats.PendingSyncs) })},
	{"synced_followers", "Followers that are level with this leader", count(func(m *moment) int64 { return int64(m.status.SyncedFollowers) })},
	{"synced_non_voting_followers", "Followers without a vote that are level with this leader", count(func(*moment) int64 { return 0 })},
	{"synced_observers", "Observers that are level with this leader", count(func(m *moment) int64 { return int64(m.status.SyncedObservers) })},
}

var memberCounters = []metric{
	{"diff_count", "Learners brought up to date by a part of the log", count(func(m *moment) int64 { return m.s.member.meter.diffs.Load() })},
	{"learner_commit_received_count", "Commits that this learner has received", count(func(m *moment) int64 { return m.s.member.meter.commitsReceived.Load() })},
	{"learner_proposal_received_count", "Proposals that this learner has received", count(func(m *moment) int64 { return m.s.member.meter.proposalsReceived.Load() })},
	{"looking_count", "Times that this server looked for a leader", count(func(m *moment) int64 { return m.s.member.meter.looking.Load() })},
	{"snap_count", "Learners brought up to date by a snapshot", count(func(m *moment) int64 { return m.s.member.meter.snaps.Load() })},
}

// memberSummaries are the series of samples that concern the ensemble.
var memberSummaries = []struct {
	name, help string
	get        func(m *memberMeter) summed
}{
	{"election_time", "Time of an election, ms", func(m *memberMeter) summed { return m.election.get() }},
	{"leader_unavailable_time", "Time without service until this server served as the leader, ms", func(m *memberMeter) summed { return m.leaderUnavailable.get() }},
	{"unavailable_time", "Time without service, ms", func(m *memberMeter) summed { return m.unavailable.get() }},
}

// addMember adds what only members of an ensemble have.
func (m *moment) addMember(out *admin.Metrics) {
	out.PeerState = peerState(&m.status)
	out.Gauges = append(out.Gauges, samples(m, memberGauges)...)
	if m.status.Role == zab.RoleLeading {
		out.Gauges = append(out.Gauges, samples(m, leaderGauges)...)
	}
	out.Counters = append(out.Counters, samples(m, memberCounters)...)
	for _, row := range memberSummaries {
		v := row.get(&m.s.member.meter)
		out.Summaries = append(out.Summaries, admin.Summary{Name: row.name, Help: row.help, Count: v.count, Sum: v.sum, Min: v.min, Max: v.max})
	}
}
