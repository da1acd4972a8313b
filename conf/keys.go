package conf

import "math"

// reach says where ZooKeeper looks for a key.
type reach uint8

const (
	// direct keys are parsed from the file, strictly; a -D of that name means nothing.
	direct reach = iota
	// property keys stand for zookeeper.<key>, in the file and as -D. What does not parse falls back to the default.
	property
	// either keys are direct keys that ZooKeeper also takes as -Dzookeeper.<key>.
	either
	// bare properties have no prefix. ZooKeeper reads them from -D only, this server from the file as well.
	bare
)

// key is one key that fills a field of Config.
type key struct {
	name  string
	reach reach
	// set parses the value, already trimmed, into the field. It may set the field and remark something all the same.
	set func(c *Config, v string) (remark string, err error)
	// show renders the field so that set understands it; false when there is nothing to show.
	show func(c *Config) (string, bool)
}

// keys are all keys with a field, in the order in which String prints them.
var keys = []key{
	text("dataDir", direct, func(c *Config) *string { return &c.DataDir }),
	text("dataLogDir", direct, func(c *Config) *string { return &c.DataLogDir }),
	{"clientPort", direct, setPort(func(c *Config) *int { return &c.ClientPort }), showPort(func(c *Config) *int { return &c.ClientPort })},
	text("clientPortAddress", direct, func(c *Config) *string { return &c.ClientPortAddress }),
	strictInt("clientPortListenBacklog", func(c *Config) *int { return &c.ClientPortListenBacklog }),
	propBool("clientTcpKeepAlive", func(c *Config) *bool { return &c.ClientTCPKeepAlive }),
	strictInt("maxClientCnxns", func(c *Config) *int { return &c.MaxClientCnxns }),
	propInt("maxCnxns", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.MaxCnxns }),
	propInt("nio.sessionlessCnxnTimeout", property, 1, math.MaxInt32, func(c *Config) *int { return &c.SessionlessTimeoutMs }),
	propInt("globalOutstandingLimit", property, 1, math.MaxInt32, func(c *Config) *int { return &c.GlobalOutstandingLimit }),
	propInt("jute.maxbuffer", bare, juteBytesMin, math.MaxInt32, func(c *Config) *int { return &c.JuteMaxBufferBytes }),
	propInt("jute.maxbuffer.extrasize", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.JuteMaxBufferExtraBytes }),

	strictInt("tickTime", func(c *Config) *int32 { return &c.TickTimeMs }),
	strictInt("minSessionTimeout", func(c *Config) *int32 { return &c.MinSessionTimeoutMs }),
	strictInt("maxSessionTimeout", func(c *Config) *int32 { return &c.MaxSessionTimeoutMs }),

	propInt("snapCount", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.SnapCount }),
	propInt("snapSizeLimitInKb", property, math.MinInt64, kbMax, func(c *Config) *int64 { return &c.SnapSizeLimitKB }),
	propInt("preAllocSize", property, 0, kbMax, func(c *Config) *int64 { return &c.PreAllocKB }),
	propInt("txnLogSizeLimitInKb", property, math.MinInt64, kbMax, func(c *Config) *int64 { return &c.TxnLogSizeLimitKB }),
	word("forceSync", "no", false, func(c *Config) *bool { return &c.ForceSync }),
	propInt("fsync.warningthresholdms", property, 0, math.MaxInt64, func(c *Config) *int64 { return &c.FsyncWarningThresholdMs }),
	{"snapshot.compression.method", property, setCompression, showText(func(c *Config) *string { return &c.SnapshotCompression })},
	propBool("snapshot.trust.empty", func(c *Config) *bool { return &c.SnapshotTrustEmpty }),
	propBool("datadir.autocreate", func(c *Config) *bool { return &c.DatadirAutocreate }),
	strictInt("autopurge.snapRetainCount", func(c *Config) *int { return &c.AutopurgeSnapRetainCount }),
	strictInt("autopurge.purgeInterval", func(c *Config) *int { return &c.AutopurgePurgeIntervalHours }),
	propInt("flushDelay", property, 0, math.MaxInt32, func(c *Config) *int { return &c.FlushDelayMs }),
	propInt("maxBatchSize", property, 0, math.MaxInt32, func(c *Config) *int { return &c.MaxBatchSize }),
	propInt("commitLogCount", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.CommitLogCount }),
	propFloat("snapshotSizeFactor", func(c *Config) *float64 { return &c.SnapshotSizeFactor }),

	propBool("digest.enabled", func(c *Config) *bool { return &c.DigestEnabled }),
	propBool("closeSessionTxn.enabled", func(c *Config) *bool { return &c.CloseSessionTxnEnabled }),
	propBool("serializeLastProcessedZxid.enabled", func(c *Config) *bool { return &c.SerializeLastProcessedZxidEnabled }),
	propBool("extendedTypesEnabled", func(c *Config) *bool { return &c.ExtendedTypesEnabled }),
	propBool("emulate353TTLNodes", func(c *Config) *bool { return &c.Emulate353TTLNodes }),
	propBool("enforceQuota", func(c *Config) *bool { return &c.EnforceQuota }),
	propInt("znode.container.checkIntervalMs", bare, 1, math.MaxInt64, func(c *Config) *int64 { return &c.ContainerCheckIntervalMs }),
	propInt("znode.container.maxPerMinute", bare, 1, math.MaxInt32, func(c *Config) *int { return &c.ContainerMaxPerMinute }),
	propInt("znode.container.maxNeverUsedIntervalMs", bare, 0, math.MaxInt64, func(c *Config) *int64 { return &c.ContainerMaxNeverUsedMs }),

	word("skipACL", "yes", true, func(c *Config) *bool { return &c.SkipACL }),
	propBool("DigestAuthenticationProvider.enabled", func(c *Config) *bool { return &c.DigestAuthEnabled }),
	text("DigestAuthenticationProvider.digestAlg", property, func(c *Config) *string { return &c.DigestAuthAlg }),
	{superDigestKey, property, setText(func(c *Config) *string { return &c.SuperDigest }), showText(func(c *Config) *string { return &c.SuperDigest })},

	{"4lw.commands.whitelist", property, setWords, showWords},
	{"readonlymode.enabled", bare, setPropBool(func(c *Config) *bool { return &c.ReadOnlyMode }), showBool(func(c *Config) *bool { return &c.ReadOnlyMode })},
	{"admin.enableServer", property, setAdminEnabled, showBool(func(c *Config) *bool { return &c.Admin.Enabled })},
	text("admin.serverAddress", property, func(c *Config) *string { return &c.Admin.Address }),
	propInt("admin.serverPort", property, 0, math.MaxUint16, func(c *Config) *int { return &c.Admin.Port }),
	text("admin.commandURL", property, func(c *Config) *string { return &c.Admin.CommandURL }),
	propInt("admin.idleTimeout", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Admin.IdleTimeoutMs }),

	strictInt("initLimit", func(c *Config) *int { return &c.InitLimitTicks }),
	strictInt("syncLimit", func(c *Config) *int { return &c.SyncLimitTicks }),
	strictInt("connectToLearnerMasterLimit", func(c *Config) *int { return &c.ConnectToLearnerMasterLimitTicks }),
	propInt("cnxTimeout", property, 1, math.MaxInt32, func(c *Config) *int { return &c.CnxTimeoutMs }),
	propInt("electionPortBindRetry", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.ElectionPortBindRetry }),
	strictBool("quorumListenOnAllIPs", func(c *Config) *bool { return &c.QuorumListenOnAllIPs }),
	strictInt("electionAlg", func(c *Config) *int { return &c.ElectionAlg }),
	{"peerType", direct, setPeerType, showText(func(c *Config) *string { return &c.PeerType })},
	strictBool("reconfigEnabled", func(c *Config) *bool { return &c.ReconfigEnabled }),
	strictBool("standaloneEnabled", func(c *Config) *bool { return &c.StandaloneEnabled }),
	{"multiAddress.enabled", either, setStrictBool("multiAddress.enabled", func(c *Config) *bool { return &c.MultiAddressEnabled }), showBool(func(c *Config) *bool { return &c.MultiAddressEnabled })},
	text("dynamicConfigFile", direct, func(c *Config) *string { return &c.DynamicConfigFile }),
}

const (
	// electionAlgFast is the only election algorithm that is left.
	electionAlgFast = 3
	// electionPortBindRetryDefault also stands for negative numbers.
	electionPortBindRetryDefault = 3
	superDigestKey               = "DigestAuthenticationProvider.superDigest"
	// snapshotSizeFactorDefault also stands for numbers above 1.
	snapshotSizeFactorDefault = 0.33
	// kbMax keeps sizes in kilobytes representable in bytes.
	kbMax = math.MaxInt64 >> 10
)

// defaults returns the values of all keys that nobody sets. These are ZooKeeper's, not those of the built-in
// configuration.
func defaults() *Config {
	return &Config{
		ClientPort:                        Unset,
		ClientPortListenBacklog:           -1,
		MaxClientCnxns:                    60,
		SessionlessTimeoutMs:              10000,
		GlobalOutstandingLimit:            1000,
		JuteMaxBufferBytes:                0xfffff,
		JuteMaxBufferExtraBytes:           unsetInt,
		TickTimeMs:                        3000,
		MinSessionTimeoutMs:               -1,
		MaxSessionTimeoutMs:               -1,
		SnapCount:                         100000,
		SnapSizeLimitKB:                   4 << 20,
		PreAllocKB:                        64 << 10,
		TxnLogSizeLimitKB:                 -1,
		ForceSync:                         true,
		FsyncWarningThresholdMs:           1000,
		DatadirAutocreate:                 true,
		AutopurgeSnapRetainCount:          snapRetainCountMin,
		MaxBatchSize:                      1000,
		CommitLogCount:                    commitLogCountMin,
		SnapshotSizeFactor:                snapshotSizeFactorDefault,
		DigestEnabled:                     true,
		CloseSessionTxnEnabled:            true,
		SerializeLastProcessedZxidEnabled: true,
		ContainerCheckIntervalMs:          60000,
		ContainerMaxPerMinute:             10000,
		DigestAuthEnabled:                 true,
		DigestAuthAlg:                     "SHA1",
		Admin:                             Admin{Enabled: true, Address: "0.0.0.0", Port: 8080, CommandURL: "/commands", IdleTimeoutMs: 30000},
		CnxTimeoutMs:                      5000,
		ElectionPortBindRetry:             electionPortBindRetryDefault,
		ElectionAlg:                       electionAlgFast,
		PeerType:                          "participant",
		StandaloneEnabled:                 true,
		MyID:                              Unset,
		sources:                           map[string]source{},
	}
}

// unsetInt marks a number whose default depends on another key until check fills it in.
const unsetInt = math.MinInt32
