package admin

import (
	"net/netip"

	"zabra/zab/zxid"
)

// Source is the running server as the commands see it. Every method returns values, may be called from any goroutine
// and at any time, and is bounded by what it lists: only Connections, Dump and the two lists of watches grow with the
// number of clients.
type Source interface {
	HTTPSource
	// Serving reports whether requests are answered. The other methods, save Environment, TraceMask, SystemProperties and
	// ZabState, are called only while it is true.
	Serving() bool
	// ReadOnly reports whether the server is cut off from its quorum and serves reads only.
	ReadOnly() bool
	Server() Server
	// Connections lists the connections of the client port asked, in the order of their arrival.
	Connections() []Connection
	Configuration() Configuration
	Environment() Environment
	Dirs() Dirs
	Dump() Dump
	WatchSummary() WatchSummary
	WatchesBySession() []SessionPaths
	WatchesByPath() []PathSessions
	// Digests returns the remembered digests of the tree, oldest first.
	Digests() []Digest
	Metrics() Metrics
	TraceMask() int64
	SetTraceMask(mask int64)
	// ResetServer zeroes latencies, packet counts, counters and summaries.
	ResetServer()
	// ResetConnections zeroes the counters of every connection.
	ResetConnections()
}

// Mode names a server's part as srvr and mntr print it.
type Mode string

// The modes.
const (
	ModeStandalone Mode = "standalone"
	ModeLeader     Mode = "leader"
	ModeFollower   Mode = "follower"
	ModeObserver   Mode = "observer"
)

// Latency sums up request latencies in milliseconds, receipt to reply, since the start or the last reset.
type Latency struct {
	MinMs, MaxMs int64
	AvgMs        float64
}

// Server is what srvr shows.
type Server struct {
	Version     string // see [Version]
	ReadOnly    bool
	Latency     Latency
	Received    int64 // packets, all client ports, four-letter words included
	Sent        int64
	Connections int // TCP connections of all client ports, the asking one included
	Outstanding int64
	Zxid        zxid.Zxid // last applied
	Mode        Mode
	Nodes       int            // znodes, the built-in ones included
	Proposals   *ProposalSizes // on a leader only
}

// ProposalSizes are bytes of proposals; -1 before the first.
type ProposalSizes struct{ Last, Min, Max int64 }

// Connection is one line of cons.
type Connection struct {
	Remote    netip.AddrPort
	Secure    bool  // by TLS
	Interest  uint8 // 0: not read from (a four-letter word), 1: read from, 5: output is waiting too
	Queued    int64 // requests of it in process
	Received  int64 // packets
	Sent      int64
	SessionID zxid.SessionID // 0: no session yet; the fields below have no meaning then

	LastOp         string // four-letter code of the last operation; empty after a reset
	EstablishedMs  int64  // wall clock
	TimeoutMs      int32  // negotiated
	LastCxid       int32
	HasCxid        bool // false after a reset until the next ordinary request
	LastZxid       zxid.Zxid
	LastResponseMs int64 // monotonic clock
	LastLatencyMs  int64
	MinLatencyMs   int64
	AvgLatencyMs   int64
	MaxLatencyMs   int64
}

// Configuration is what conf shows of a standalone server: effective values, not those of the file.
type Configuration struct {
	ClientPort       int    // -1: none
	SecureClientPort int    // -1: none
	DataDir          string // the version-2 directory itself
	DataDirBytes     int64
	DataLogDir       string
	DataLogBytes     int64
	TickTimeMs       int
	MaxClientCnxns   int
	MinSessionMs     int
	MaxSessionMs     int
	ListenBacklog    int
	ServerID         int64 // 0: standalone
	// Ensemble is what a member of an ensemble shows in addition; nil for a standalone server.
	Ensemble *EnsembleConfiguration
}

// EnsembleConfiguration is what conf shows of an ensemble.
type EnsembleConfiguration struct {
	InitLimitTicks, SyncLimitTicks int
	ElectionAlg                    int
	// ElectionPorts and QuorumPorts are this server's, one for each of its addresses.
	ElectionPorts, QuorumPorts []int
	Observer                   bool
	// Membership is the text of the membership, which ends with its version and without a line break.
	Membership string
}

// Environment is what envi shows, in order.
type Environment []Property

// Property is one line of envi.
type Property struct{ Key, Value string }

// Dirs are the sizes of the data directories in bytes, preallocated space included.
type Dirs struct{ DataBytes, LogBytes int64 }

// Dump is what dump shows.
type Dump struct {
	Sessions []SessionExpiry // by instant
	// Global lists the sessions of a learner, which does not know when they expire; Learner tells that this is one.
	Global      []GlobalSession // by session
	Learner     bool
	Ephemerals  []SessionPaths // by session
	Connections []ConnectionExpiry
}

// GlobalSession is a session that the leader keeps track of.
type GlobalSession struct {
	Session   zxid.SessionID
	TimeoutMs int32
}

// SessionExpiry lists the sessions that expire together unless they are heard of.
type SessionExpiry struct {
	AtMs     int64 // wall clock
	Sessions []zxid.SessionID
}

// ConnectionExpiry lists the connections that are closed together unless they are heard of.
type ConnectionExpiry struct {
	AtMs        int64 // wall clock
	Connections []Connection
}

// WatchSummary counts watches of data and existence; watches of children are left out, as ZooKeeper does.
type WatchSummary struct{ Connections, Paths, Watches int }

// SessionPaths are paths that belong to a session: its watches or its ephemeral nodes.
type SessionPaths struct {
	Session zxid.SessionID
	Paths   []string
}

// PathSessions are the sessions that watch a path.
type PathSessions struct {
	Path     string
	Sessions []zxid.SessionID
}

// Digest is the digest of the tree after a transaction.
type Digest struct {
	Zxid  zxid.Zxid
	Value uint64
}
