package conf

import (
	"math"
	"slices"
)

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
	// idle says that this version parses the key and makes no use of it.
	idle bool
	// take copies the field from another configuration. Keys that have it can be changed while the server runs.
	take func(to, from *Config)
	// secret values are never printed.
	secret bool
}

func (k key) notYet() key { k.idle = true; return k }
func (k key) hidden() key { k.secret = true; return k }

// running marks a key whose new value a server takes without a restart: it looks at the field each time it needs it.
func (k key) running(take func(to, from *Config)) key { k.take = take; return k }

// unused marks keys that this version makes no use of.
func unused(keys ...key) []key {
	for i := range keys {
		keys[i] = keys[i].notYet()
	}
	return keys
}

// keys are all keys with a field, in the order in which String prints them.
var keys = slices.Concat(serverKeys, ensembleKeys, adminKeys, metricsKeys, logKeys, securityKeys, throttleKeys)

// serverKeys are those of every server: its files, its client port, its limits, what it writes and what it allows.
var serverKeys = []key{
	text("dataDir", direct, func(c *Config) *string { return &c.DataDir }),
	text("dataLogDir", direct, func(c *Config) *string { return &c.DataLogDir }),
	port("clientPort", func(c *Config) *int { return &c.ClientPort }),
	text("clientPortAddress", direct, func(c *Config) *string { return &c.ClientPortAddress }),
	strictInt("clientPortListenBacklog", func(c *Config) *int { return &c.ClientPortListenBacklog }),
	propBool("clientTcpKeepAlive", func(c *Config) *bool { return &c.ClientTCPKeepAlive }),
	strictInt("maxClientCnxns", func(c *Config) *int { return &c.MaxClientCnxns }).
		running(func(to, from *Config) { to.MaxClientCnxns = from.MaxClientCnxns }),
	propInt("maxCnxns", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.MaxCnxns }).
		running(func(to, from *Config) { to.MaxCnxns = from.MaxCnxns }),
	propInt("nio.sessionlessCnxnTimeout", property, 1, math.MaxInt32, func(c *Config) *int { return &c.SessionlessTimeoutMs }).
		running(func(to, from *Config) { to.SessionlessTimeoutMs = from.SessionlessTimeoutMs }),
	livePropInt("globalOutstandingLimit", 1, math.MaxInt32, func(c *Config) *int { return &c.GlobalOutstandingLimit }),
	propInt("jute.maxbuffer", bare, juteBytesMin, math.MaxInt32, func(c *Config) *int { return &c.JuteMaxBufferBytes }),
	propInt("jute.maxbuffer.extrasize", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.JuteMaxBufferExtraBytes }),

	strictInt("tickTime", func(c *Config) *int32 { return &c.TickTimeMs }),
	strictInt("minSessionTimeout", func(c *Config) *int32 { return &c.MinSessionTimeoutMs }),
	strictInt("maxSessionTimeout", func(c *Config) *int32 { return &c.MaxSessionTimeoutMs }),

	livePropInt("snapCount", math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.SnapCount }),
	livePropInt("snapSizeLimitInKb", math.MinInt64, kbMax, func(c *Config) *int64 { return &c.SnapSizeLimitKB }),
	propInt("preAllocSize", property, 0, kbMax, func(c *Config) *int64 { return &c.PreAllocKB }),
	propInt("txnLogSizeLimitInKb", property, math.MinInt64, kbMax, func(c *Config) *int64 { return &c.TxnLogSizeLimitKB }),
	word("forceSync", "no", false, func(c *Config) *bool { return &c.ForceSync }),
	propInt("fsync.warningthresholdms", property, 0, math.MaxInt64, func(c *Config) *int64 { return &c.FsyncWarningThresholdMs }).
		running(func(to, from *Config) { to.FsyncWarningThresholdMs = from.FsyncWarningThresholdMs }),
	{name: "snapshot.compression.method", reach: property, set: setCompression, show: showText(func(c *Config) *string { return &c.SnapshotCompression })},
	propBool("snapshot.trust.empty", func(c *Config) *bool { return &c.SnapshotTrustEmpty }),
	propBool("datadir.autocreate", func(c *Config) *bool { return &c.DatadirAutocreate }),
	strictInt("autopurge.snapRetainCount", func(c *Config) *int { return &c.AutopurgeSnapRetainCount }).
		running(func(to, from *Config) { to.AutopurgeSnapRetainCount = from.AutopurgeSnapRetainCount }),
	strictInt("autopurge.purgeInterval", func(c *Config) *int { return &c.AutopurgePurgeIntervalHours }).
		running(func(to, from *Config) { to.AutopurgePurgeIntervalHours = from.AutopurgePurgeIntervalHours }),
	propInt("flushDelay", property, 0, math.MaxInt32, func(c *Config) *int { return &c.FlushDelayMs }).notYet(),
	propInt("maxBatchSize", property, 0, math.MaxInt32, func(c *Config) *int { return &c.MaxBatchSize }).notYet(),
	propInt("commitLogCount", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.CommitLogCount }),
	propFloat("snapshotSizeFactor", func(c *Config) *float64 { return &c.SnapshotSizeFactor }),

	propBool("digest.enabled", func(c *Config) *bool { return &c.DigestEnabled }),
	propBool("closeSessionTxn.enabled", func(c *Config) *bool { return &c.CloseSessionTxnEnabled }),
	propBool("serializeLastProcessedZxid.enabled", func(c *Config) *bool { return &c.SerializeLastProcessedZxidEnabled }),
	propBool("extendedTypesEnabled", func(c *Config) *bool { return &c.ExtendedTypesEnabled }),
	propBool("emulate353TTLNodes", func(c *Config) *bool { return &c.Emulate353TTLNodes }),
	livePropBool("enforceQuota", func(c *Config) *bool { return &c.EnforceQuota }),
	propInt("znode.container.checkIntervalMs", bare, 1, math.MaxInt64, func(c *Config) *int64 { return &c.ContainerCheckIntervalMs }),
	propInt("znode.container.maxPerMinute", bare, 1, math.MaxInt32, func(c *Config) *int { return &c.ContainerMaxPerMinute }),
	propInt("znode.container.maxNeverUsedIntervalMs", bare, 0, math.MaxInt64, func(c *Config) *int64 { return &c.ContainerMaxNeverUsedMs }),

	word("skipACL", "yes", true, func(c *Config) *bool { return &c.SkipACL }),
	propBool("DigestAuthenticationProvider.enabled", func(c *Config) *bool { return &c.DigestAuthEnabled }),
	text("DigestAuthenticationProvider.digestAlg", property, func(c *Config) *string { return &c.DigestAuthAlg }),
	text(superDigestKey, property, func(c *Config) *string { return &c.SuperDigest }).hidden(),

	key{name: "4lw.commands.whitelist", reach: property, set: setWords, show: showWords}.
		running(func(to, from *Config) { to.FourLetterWords = from.FourLetterWords }),
	{name: "readonlymode.enabled", reach: bare, set: setPropBool(func(c *Config) *bool { return &c.ReadOnlyMode }), show: showBool(func(c *Config) *bool { return &c.ReadOnlyMode })},
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
		Admin:                             adminDefaults(),
		Metrics:                           Metrics{Host: "0.0.0.0", Port: 7000, ExportJVMInfo: true},
		Pauses:                            Pauses{SleepMs: 500, InfoAboveMs: 1000, WarnAboveMs: 10000},
		Security:                          securityDefaults(),
		Throttle:                          throttleDefaults(),
		Log:                               logDefaults(),
		Audit:                             Audit{Format: AuditText},
		Quorum:                            quorumDefaults(),
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
