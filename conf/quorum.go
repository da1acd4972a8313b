package conf

import "math"

// Quorum are the finer settings of an ensemble. This version parses them and makes no use of them; where that could be
// missed, a warning or a fault says so.
type Quorum struct {
	// ObserverMasterPort is the port on which followers serve observers too; Unset is off.
	ObserverMasterPort int
	// ObserverMasterBytesMax bounds what a follower keeps in memory for its observers.
	ObserverMasterBytesMax int
	// ObserversSync says that observers write a log and snapshots.
	ObserversSync bool
	// LocalSessions gives clients sessions that only their server knows; LocalSessionsUpgrading makes them global when they
	// create an ephemeral node.
	LocalSessions, LocalSessionsUpgrading bool
	// OraclePath is the file that lets the survivor of two servers lead when it holds a 1; "" asks nobody.
	OraclePath string
	// ReachabilityCheck tries the addresses of a server with several before one is used, for at most
	// ReachabilityCheckTimeoutMs.
	ReachabilityCheck          bool
	ReachabilityCheckTimeoutMs int
	// CnxnReadTimeoutMs bounds the silence on an election connection; -1 is syncLimit ticks.
	CnxnReadTimeoutMs int
	// TCPKeepAlive switches keep-alive on for election connections.
	TCPKeepAlive bool
	// NotificationMinMs and NotificationMaxMs are the bounds between which an election waits for more votes.
	NotificationMinMs, NotificationMaxMs int
	// LeaderServes says that the leader serves clients too. Switched off by leaderServes=no only.
	LeaderServes bool
	// SnapSyncsMax and DiffSyncsMax bound the learners that a leader brings up to date at a time, by snapshot and by log.
	SnapSyncsMax, DiffSyncsMax int
	// EpochWaitMaxMs bounds the time in which a leader waits for a quorum to agree on its epoch; -1 is initLimit ticks.
	EpochWaitMaxMs int
	// AckLogging takes one acknowledgement in so many as a sample of the latency.
	AckLogging int
	// SnapshotSyncOnly brings every learner up to date by a snapshot.
	SnapshotSyncOnly bool
	// ConnectRetryDelayMs is the pause of a learner before it tries to reach its leader again.
	ConnectRetryDelayMs int
	// ReconnectDelayMs and ObserverElectionDelayMs are the pauses of an observer that has lost its leader.
	ReconnectDelayMs, ObserverElectionDelayMs int
	// EmptyVotes says that a member without data votes like any other (db.autocreate).
	EmptyVotes bool
}

func quorumDefaults() Quorum {
	return Quorum{
		ObserverMasterPort:         Unset,
		ObserverMasterBytesMax:     32 << 20,
		ObserversSync:              true,
		ReachabilityCheck:          true,
		ReachabilityCheckTimeoutMs: 1000,
		CnxnReadTimeoutMs:          -1,
		NotificationMinMs:          200,
		NotificationMaxMs:          60000,
		LeaderServes:               true,
		SnapSyncsMax:               10,
		DiffSyncsMax:               100,
		EpochWaitMaxMs:             -1,
		AckLogging:                 1000,
		ConnectRetryDelayMs:        100,
		ObserverElectionDelayMs:    200,
		EmptyVotes:                 true,
	}
}

// ensembleKeys are those of a member of an ensemble.
var ensembleKeys = append([]key{
	strictInt("initLimit", func(c *Config) *int { return &c.InitLimitTicks }),
	strictInt("syncLimit", func(c *Config) *int { return &c.SyncLimitTicks }),
	strictInt("connectToLearnerMasterLimit", func(c *Config) *int { return &c.ConnectToLearnerMasterLimitTicks }),
	propInt("cnxTimeout", property, 1, math.MaxInt32, func(c *Config) *int { return &c.CnxTimeoutMs }),
	propInt("electionPortBindRetry", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.ElectionPortBindRetry }),
	strictBool("quorumListenOnAllIPs", func(c *Config) *bool { return &c.QuorumListenOnAllIPs }),
	strictInt("electionAlg", func(c *Config) *int { return &c.ElectionAlg }),
	{name: "peerType", reach: direct, set: setPeerType, show: showText(func(c *Config) *string { return &c.PeerType })},
	strictBool("reconfigEnabled", func(c *Config) *bool { return &c.ReconfigEnabled }),
	strictBool("standaloneEnabled", func(c *Config) *bool { return &c.StandaloneEnabled }),
	eitherBool("multiAddress.enabled", func(c *Config) *bool { return &c.MultiAddressEnabled }),
	text("dynamicConfigFile", direct, func(c *Config) *string { return &c.DynamicConfigFile }),
}, unused(
	port("observerMasterPort", func(c *Config) *int { return &c.Quorum.ObserverMasterPort }),
	propInt("observerMaster.sizeLimit", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Quorum.ObserverMasterBytesMax }),
	strictBool("syncEnabled", func(c *Config) *bool { return &c.Quorum.ObserversSync }),
	strictBool("localSessionsEnabled", func(c *Config) *bool { return &c.Quorum.LocalSessions }),
	strictBool("localSessionsUpgradingEnabled", func(c *Config) *bool { return &c.Quorum.LocalSessionsUpgrading }),
	text("oraclePath", direct, func(c *Config) *string { return &c.Quorum.OraclePath }),
	eitherBool("multiAddress.reachabilityCheckEnabled", func(c *Config) *bool { return &c.Quorum.ReachabilityCheck }),
	eitherInt("multiAddress.reachabilityCheckTimeoutMs", func(c *Config) *int { return &c.Quorum.ReachabilityCheckTimeoutMs }),
	propInt("quorumCnxnTimeoutMs", property, -1, math.MaxInt32, func(c *Config) *int { return &c.Quorum.CnxnReadTimeoutMs }),
	propBool("tcpKeepAlive", func(c *Config) *bool { return &c.Quorum.TCPKeepAlive }),
	propInt("fastleader.minNotificationInterval", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Quorum.NotificationMinMs }),
	propInt("fastleader.maxNotificationInterval", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Quorum.NotificationMaxMs }),
	word("leaderServes", "no", false, func(c *Config) *bool { return &c.Quorum.LeaderServes }),
	propInt("leader.maxConcurrentSnapSyncs", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Quorum.SnapSyncsMax }),
	propInt("leader.maxConcurrentDiffSyncs", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Quorum.DiffSyncsMax }),
	propInt("leader.maxTimeToWaitForEpoch", property, -1, math.MaxInt32, func(c *Config) *int { return &c.Quorum.EpochWaitMaxMs }),
	propInt("leader.ackLoggingFrequency", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Quorum.AckLogging }),
	propBool("forceSnapshotSync", func(c *Config) *bool { return &c.Quorum.SnapshotSyncOnly }),
	propInt("leaderConnectDelayDuringRetryMs", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Quorum.ConnectRetryDelayMs }),
	propInt("observer.reconnectDelayMs", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Quorum.ReconnectDelayMs }),
	propInt("observer.election.DelayMs", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Quorum.ObserverElectionDelayMs }),
	propBool("db.autocreate", func(c *Config) *bool { return &c.Quorum.EmptyVotes }),
)...)
