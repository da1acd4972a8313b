// Package conf turns a ZooKeeper configuration file into one validated Config.
//
// The path through the package: Load reads the file, scan splits it as java.util.Properties does, the table in keys.go
// parses each value into a typed field, the server lines become an ensemble.Config, check decides whether the whole makes
// sense. All faults of a file come back
// together in one *Error, with line numbers; what is merely odd is a warning in Config.Warnings.
//
// Three sources are merged. Keys that ZooKeeper parses directly come from the file only. Every other key of the file
// stands for the system property zookeeper.<key>, and wins over a -D of that name, since ZooKeeper applies the file
// later. A few properties have no prefix (jute.maxbuffer, readonlymode.enabled, znode.container.*): ZooKeeper reads
// them only from -D, here the file works too and -D wins.
package conf

import (
	_ "embed" // for the built-in configuration
	"net"
	"strconv"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// embedded is the configuration of a server started without a file. It is an ordinary zoo.cfg.
//
//go:embed embedded.cfg
var embedded string

// Unset marks a port or a server id that nobody gave.
const Unset = -1

// Config is the whole configuration of one server, in typed fields with the unit in the name. A Config made by Load or
// Default is valid; one that was edited by hand can be checked with Validate. Nobody changes it once the server runs.
type Config struct {
	// Path is the file that was read, "" for the built-in configuration or bare arguments.
	Path string
	// FileText is the text of the file, or of the built-in configuration, without its secrets; "" for bare arguments.
	FileText string
	// Embedded says that no file was given and the built-in configuration serves.
	Embedded bool
	// Warnings are remarks that do not keep the server from starting, in the order of the file.
	Warnings []Fault
	// WithoutEffect are the keys that were given, are known to ZooKeeper, and change nothing here: those of the Java virtual
	// machine and its libraries, and those that this version does not act on and that nobody needs to be warned of.
	WithoutEffect []string

	// DataDir holds snapshots in its folder version-2, and myid. Required.
	DataDir string
	// DataLogDir holds the transaction log; "" means DataDir. Read it through LogDir.
	DataLogDir string

	// ClientPort is the plain client port: Unset (-1) listens on nothing, 0 takes any free port (never from a file).
	ClientPort int
	// ClientPortAddress is the host name or address to bind, "" for every interface.
	ClientPortAddress string
	// ClientPortListenBacklog is the length of the accept queue; -1 leaves it to the system.
	ClientPortListenBacklog int
	// ClientTCPKeepAlive switches TCP keep-alive on for client connections.
	ClientTCPKeepAlive bool
	// MaxClientCnxns bounds the connections of one source address; 0 or less is unlimited.
	MaxClientCnxns int
	// MaxCnxns bounds the connections of all clients together; 0 or less is unlimited.
	MaxCnxns int
	// SessionlessTimeoutMs closes a connection that never opened a session.
	SessionlessTimeoutMs int
	// GlobalOutstandingLimit bounds the requests in process before the server stops reading from its clients.
	GlobalOutstandingLimit int
	// JuteMaxBufferBytes bounds one request of a client.
	JuteMaxBufferBytes int
	// JuteMaxBufferExtraBytes is what a record on disk may be longer than JuteMaxBufferBytes.
	JuteMaxBufferExtraBytes int

	// TickTimeMs is the basic unit of time.
	TickTimeMs int32
	// MinSessionTimeoutMs and MaxSessionTimeoutMs clamp what clients ask for. Always effective values: 2 and 20 ticks
	// unless the file says otherwise.
	MinSessionTimeoutMs, MaxSessionTimeoutMs int32

	// SnapCount is the number of transactions between two snapshots, before the random spread. At least 2.
	SnapCount int
	// SnapSizeLimitKB is the size of the log between two snapshots; 0 is off.
	SnapSizeLimitKB int64
	// PreAllocKB is the step in which a log file grows.
	PreAllocKB int64
	// TxnLogSizeLimitKB rolls the log above this size; 0 is off.
	TxnLogSizeLimitKB int64
	// ForceSync says that a write is synced to disk before it is answered. Switched off by forceSync=no only.
	ForceSync bool
	// FsyncWarningThresholdMs is the duration from which a sync is reported as slow.
	FsyncWarningThresholdMs int64
	// SnapshotCompression is "", "gz" or "snappy".
	SnapshotCompression string
	// SnapshotTrustEmpty lets a server start from a log without any snapshot.
	SnapshotTrustEmpty bool
	// DatadirAutocreate creates missing data directories.
	DatadirAutocreate bool
	// AutopurgeSnapRetainCount is the number of snapshots that a purge keeps. At least 3.
	AutopurgeSnapRetainCount int
	// AutopurgePurgeIntervalHours is the time between purges; 0 or less switches them off.
	AutopurgePurgeIntervalHours int
	// FlushDelayMs and MaxBatchSize are ZooKeeper's knobs of group commit. They are accepted; this server forms a group
	// of whatever arrived while the last sync ran.
	FlushDelayMs, MaxBatchSize int
	// CommitLogCount is how many committed transactions a member of an ensemble keeps in memory for those that fall
	// behind, 500 to 1,000,000, as long as they fit into 64 MiB; as many as fit into 16 MiB if that is more.
	CommitLogCount int
	// SnapshotSizeFactor is the share of the newest snapshot's size that the log may have to be handed to a learner
	// instead of the snapshot. At most 1; 0 is without a bound, less than 0 never hands the log on.
	SnapshotSizeFactor float64

	// DigestEnabled keeps, writes and compares the digest of the tree.
	DigestEnabled bool
	// CloseSessionTxnEnabled lists the ephemeral nodes in the transaction that closes a session.
	CloseSessionTxnEnabled bool
	// SerializeLastProcessedZxidEnabled writes the last zxid at the end of snapshots.
	SerializeLastProcessedZxidEnabled bool
	// ExtendedTypesEnabled allows nodes with a time to live.
	ExtendedTypesEnabled bool
	// Emulate353TTLNodes reads the owner field of TTL nodes as 3.5.3 wrote it.
	Emulate353TTLNodes bool
	// EnforceQuota makes hard quotas refuse writes.
	EnforceQuota bool
	// ContainerCheckIntervalMs is the time between two rounds of the container and TTL reaper.
	ContainerCheckIntervalMs int64
	// ContainerMaxPerMinute bounds the deletions of the reaper.
	ContainerMaxPerMinute int
	// ContainerMaxNeverUsedMs is the age at which a container that never had a child is deleted; 0 keeps it.
	ContainerMaxNeverUsedMs int64

	// SkipACL switches all ACL checks off.
	SkipACL bool
	// DigestAuthEnabled offers the auth scheme digest.
	DigestAuthEnabled bool
	// DigestAuthAlg is the hash of the auth scheme digest, by its Java name.
	DigestAuthAlg string
	// SuperDigest is the digest identity with all rights, "super:<base64 of the hash>", or "". Never printed.
	SuperDigest string

	// FourLetterWords are the four-letter words that are answered, in the order given; "*" stands for all.
	// Read it through FourLetterWord.
	FourLetterWords []string
	// ReadOnlyMode is -Dreadonlymode.enabled.
	ReadOnlyMode bool
	// Admin is the configuration of the HTTP admin server.
	Admin Admin
	// Metrics says how metrics leave the server.
	Metrics Metrics
	// Audit is the log of all writes, by whom and with what result.
	Audit Audit
	// Pauses says which standstills of the process are reported.
	Pauses Pauses
	// LogLevel is debug, info, warn or error, "" if the configuration does not say.
	LogLevel string
	// Log is what else the configuration says about the server's log.
	Log Log
	// Security is encryption and authentication.
	Security Security
	// Throttle bounds what clients may ask of the server.
	Throttle Throttle

	// InitLimitTicks and SyncLimitTicks bound a learner's start and lag. Unused by a standalone server.
	InitLimitTicks, SyncLimitTicks int
	// ConnectToLearnerMasterLimitTicks bounds the time in which a learner has to be connected to its leader. Effective:
	// InitLimitTicks unless the file says otherwise.
	ConnectToLearnerMasterLimitTicks int
	// CnxTimeoutMs bounds the time of connecting to another server's election port.
	CnxTimeoutMs int
	// ElectionPortBindRetry is how often the binding of the election port is tried; 0 is for ever.
	ElectionPortBindRetry int
	// QuorumListenOnAllIPs binds the quorum and the election port on every interface, not on the address of the server's
	// own line.
	QuorumListenOnAllIPs bool
	// ElectionAlg is always 3.
	ElectionAlg int
	// PeerType is "participant" or "observer", as the file says.
	PeerType string
	// Quorum are the finer settings of an ensemble.
	Quorum Quorum
	// ReconfigEnabled allows changes of the ensemble at run time.
	ReconfigEnabled bool
	// StandaloneEnabled lets a configuration with one server run without an ensemble.
	StandaloneEnabled bool
	// MultiAddressEnabled allows several addresses in one server line.
	MultiAddressEnabled bool
	// DynamicConfigFile is the file that holds the server lines, or "".
	DynamicConfigFile string
	// Servers are the server lines, by id.
	Servers []ensemble.Member
	// Ensemble is the membership, whose version is that in the name of DynamicConfigFile; nil for a standalone server.
	Ensemble *ensemble.Config
	// NextEnsemble is a membership that another ZooKeeper server has left behind in the file <Path>.dynamic.next: a change
	// that was proposed and not yet known to be committed. nil without that file.
	NextEnsemble *ensemble.Config
	// MyID is the number in the file myid of DataDir, Unset without that file. In an ensemble it is that of a member.
	MyID zxid.ServerID

	// sources remembers where each key was set. A key that is missing has its default.
	sources map[string]source
}

// Default returns the configuration of a server that was started without a file: data in ./data, port 2181 on the
// loopback interface only, old snapshots purged every hour, and the harmless four-letter words allowed.
func Default() *Config {
	c, err := Load("", nil)
	if err != nil {
		panic("conf: the built-in configuration is faulty: " + err.Error())
	}
	return c
}

// LogDir is the directory of the transaction log: DataLogDir, or DataDir if there is none.
func (c *Config) LogDir() string {
	if c.DataLogDir == "" {
		return c.DataDir
	}
	return c.DataLogDir
}

// ClientAddr is the address to listen on, in the form of net.Listen; "" when no client port is configured.
func (c *Config) ClientAddr() string {
	if c.ClientPort < 0 {
		return ""
	}
	return net.JoinHostPort(c.ClientPortAddress, strconv.Itoa(c.ClientPort))
}

// FourLetterWord tells whether the word may be executed. srvr always may; isro may in read-only mode.
func (c *Config) FourLetterWord(word string) bool {
	if word == "srvr" || word == "isro" && c.ReadOnlyMode {
		return true
	}
	for _, w := range c.FourLetterWords {
		if w == word || w == "*" {
			return true
		}
	}
	return false
}

// Set tells whether the key, by its name in the file, was given by the file, a -D or an argument. It is false where the
// default serves.
func (c *Config) Set(key string) bool {
	_, ok := c.sources[key]
	return ok
}
