package admin

import (
	"net/netip"

	"zabra/zab/zxid"
)

// HTTPSource is what the admin server asks of a server beside what the four-letter words do.
type HTTPSource interface {
	// Detail is what server_stats shows beside Server.
	Detail() Detail
	// InitialConfiguration is the text of the configuration that the server was started with, without its secrets.
	InitialConfiguration() string
	// LastSnapshot is the newest snapshot on disk; false if there is none.
	LastSnapshot() (SnapshotFile, bool)
	// Leader is who leads the ensemble; false on a standalone server. It may look up the address of a name.
	Leader() (Leader, bool)
	// Observers lists the observers that this server feeds as their leader, and counts those that are level with it.
	Observers() (synced int, list []Observer)
	// ResetObservers zeroes the counters of their connections.
	ResetObservers()
	// SystemProperties are the properties of the process that are set, by name. It works also while the server does not serve.
	SystemProperties() []Property
	// VotingView lists the members that have a vote, by id; none for a standalone server.
	VotingView() []Member
	// ZabState is this server's part in its ensemble; false for a standalone server. It works also while the server does not
	// serve.
	ZabState() (ZabState, bool)
}

// Detail is what server_stats shows beside [Server].
type Detail struct {
	SlowSyncs int64 // syncs of the log that took fsync.warningthresholdms or longer
	// Sizes of replies in bytes; -1 before any.
	ResponseLastBytes, ResponseMinBytes, ResponseMaxBytes int64
	AuthFailed                                            int64 // clients whose certificate was refused
	// PlainRemote and PlainLocal count the connections in the clear that were made, from elsewhere and from this machine,
	// where it is counted.
	PlainRemote, PlainLocal int64
	UptimeMs                int64
}

// SnapshotFile is a snapshot on disk.
type SnapshotFile struct {
	Zxid       zxid.Zxid
	WrittenSec int64 // wall clock, seconds since 1970
}

// Leader is who leads an ensemble.
type Leader struct {
	IsThis bool
	ID     zxid.ServerID
	IP     string
}

// HostPort is where a member is reached, in the words of its server line.
type HostPort struct {
	Host string
	Port int
}

// Member is a member of an ensemble.
type Member struct {
	ID               zxid.ServerID
	Observer         bool
	Quorum, Election []HostPort
	Client           string // host:port, "" if its line has none
}

// ZabState is a member's part in its ensemble.
type ZabState struct {
	Member
	IsLeader bool
	Zxid     zxid.Zxid // last applied
	Phase    string    // election, discovery, synchronization or broadcast
}

// Observer is a connection of a leader to an observer.
type Observer struct {
	Remote        netip.AddrPort
	ID            zxid.ServerID
	EstablishedMs int64 // wall clock
	Queued        int   // messages that wait to be sent
	QueuedBytes   int64
	Received      int64 // messages
	Sent          int64
	Requests      int64     // of its clients
	LastZxid      zxid.Zxid // of the last message that was sent to it
}
