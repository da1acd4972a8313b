package zab

import (
	"fmt"

	"zabra/zab/zxid"
)

// ConnID identifies a connection between a learner and its leader. Each server numbers its own ends, from 1, and never
// uses a number twice while it runs; 0 stands for the election link, which is not a connection in this sense. A message
// that comes in on a connection which is not open any more is dropped.
type ConnID uint64

// EndsMax bounds Message.Ends.
const EndsMax = 64

// MessageKind says what a Message means.
type MessageKind uint8

// The kinds of messages. L is a learner (follower or observer), F the leader (the first).
const (
	MessageNotification MessageKind = iota + 1 // any to any, on the election link: my vote and state

	MessageFollowerInfo // L to F: Epoch accepted; I am a voter
	MessageObserverInfo // L to F: Epoch accepted; I have no vote
	MessageLeaderInfo   // F to L: Epoch is the new epoch
	MessageAckEpoch     // L to F: Epoch current, Zxid last durable, Floor, NoVote, Resume

	MessageDiff         // F to L: Zxid is the learner's last; what is missing follows
	MessageTrunc        // F to L: the log is to end at Zxid; what is missing follows
	MessageSnap         // F to L: Snapshot; its bytes follow on the connection, then what came after it
	MessageProposal     // F to L: Entries after transaction Zxid; Committed
	MessageCommit       // F to L: all up to Zxid are committed
	MessageInform       // F to observer: Entries after transaction Zxid, all of them committed
	MessageNewLeader    // F to L: Epoch; the history that was sent is complete
	MessageUpToDate     // F to L: Epoch is established; serve. Zxid: last committed
	MessageAck          // L to F: all up to Zxid are durable here
	MessageAckNewLeader // L to F: the history before NEWLEADER is durable and Epoch is my current epoch

	MessagePing // F to L: ID is the round
	MessagePong // L to F: ID of the ping answered; Touches

	MessageRequest     // L to F: Requests
	MessageRefused     // F to L: Owner and Code: a request that became no transaction
	MessageSync        // L to F: ID; answer when it is sure that you lead
	MessageSynced      // F to L: ID; what a sync had to wait for is everything up to Zxid
	MessageRevalidate  // L to F: ID, Session, TimeoutMs, Owner
	MessageRevalidated // F to L: ID, Session, Valid; Zxid is the last proposed transaction

	messageKinds
)

var messageNames = [messageKinds]string{
	MessageNotification: "NOTIFICATION", MessageFollowerInfo: "FOLLOWERINFO", MessageObserverInfo: "OBSERVERINFO",
	MessageLeaderInfo: "LEADERINFO", MessageAckEpoch: "ACKEPOCH", MessageDiff: "DIFF", MessageTrunc: "TRUNC", MessageSnap: "SNAP",
	MessageProposal: "PROPOSAL", MessageCommit: "COMMIT", MessageInform: "INFORM", MessageNewLeader: "NEWLEADER",
	MessageUpToDate: "UPTODATE", MessageAck: "ACK", MessageAckNewLeader: "ACK-NEWLEADER", MessagePing: "PING", MessagePong: "PONG",
	MessageRequest: "REQUEST", MessageRefused: "REFUSED", MessageSync: "SYNC", MessageSynced: "SYNCED",
	MessageRevalidate: "REVALIDATE", MessageRevalidated: "REVALIDATED",
}

// String returns the name that ZooKeeper gives the packet, where it has one.
func (k MessageKind) String() string {
	if k > 0 && k < messageKinds {
		return messageNames[k]
	}
	return fmt.Sprintf("MESSAGE-%d", uint8(k))
}

// Known reports whether k is one of the kinds above.
func (k MessageKind) Known() bool { return k > 0 && k < messageKinds }

// Role is what a server is to the ensemble at a moment. The numbers are those of ZooKeeper's notifications, less one.
type Role uint8

// The roles.
const (
	RoleLooking Role = iota
	RoleFollowing
	RoleLeading
	RoleObserving
	RoleStandalone // fixed-epoch mode
)

// String returns the name of the role.
func (r Role) String() string {
	if r > RoleStandalone {
		return fmt.Sprintf("ROLE-%d", uint8(r))
	}
	return [...]string{"LOOKING", "FOLLOWING", "LEADING", "OBSERVING", "STANDALONE"}[r]
}

// Phase is how far a leader and its learners have come.
type Phase uint8

// The phases, in the order in which a role goes through them.
const (
	PhaseElection        Phase = iota // no leader known
	PhaseDiscovery                    // the epoch is being agreed upon
	PhaseSynchronization              // the leader's history is being handed on
	PhaseBroadcast                    // transactions are proposed and committed
)

// String returns the name of the phase, as ZooKeeper's mntr does.
func (p Phase) String() string {
	if p > PhaseBroadcast {
		return fmt.Sprintf("phase-%d", uint8(p))
	}
	return [...]string{"election", "discovery", "synchronization", "broadcast"}[p]
}

// Vote is a server that is proposed as leader, with what makes it worthy of that: its current epoch and the last
// transaction that is durable on it.
type Vote struct {
	Leader zxid.ServerID
	Zxid   zxid.Zxid
	Epoch  zxid.Epoch
}

// Touch says that a session was heard AgeMs milliseconds before the message was sent.
type Touch struct {
	Session   zxid.SessionID
	TimeoutMs int32
	AgeMs     int32
}

// Identity is an authenticated identity of a client.
type Identity struct{ Scheme, ID string }

// Request is a client's write on its way from a learner to the leader.
type Request struct {
	Origin     Origin
	Session    zxid.SessionID
	Cxid       int32
	Op         int32 // opcode of the client protocol
	Body       []byte
	Identities []Identity
}

// SnapshotProgress is what a learner has of a snapshot whose transfer broke off. The zero value is nothing.
type SnapshotProgress struct {
	From   zxid.ServerID
	File   SnapshotFile
	Offset int64
}

// Message goes from one server to another. Which fields count depends on the kind.
type Message struct {
	Kind     MessageKind
	From, To zxid.ServerID
	// Conn is the connection, numbered by the server that handles the Message; it does not travel.
	Conn  ConnID
	Epoch zxid.Epoch
	Zxid  zxid.Zxid

	// NOTIFICATION: the vote, the round of the election it belongs to, and the sender's role.
	Vote          Vote
	Round         uint64
	Role          Role
	ConfigVersion int64

	// ACKEPOCH. Ends are the last transactions of the newest epochs in the learner's log, ascending, Zxid the last of
	// them; at most EndsMax. Floor is the lowest transaction that the learner's log can be truncated to. NoVote says that
	// the learner had accepted this epoch before: its answer does not count. Resume is what is left of a transfer.
	Ends   []zxid.Zxid
	Floor  zxid.Zxid
	NoVote bool
	Resume SnapshotProgress

	// SNAP: the file whose bytes follow, and from where.
	Snapshot       SnapshotFile
	SnapshotOffset int64

	// PROPOSAL and INFORM.
	Entries   []Entry
	Committed zxid.Zxid

	ID      uint64
	Touches []Touch

	Requests  []Request
	Code      int32
	Session   zxid.SessionID
	TimeoutMs int32
	Owner     Origin // REVALIDATE: the connection that asks; REFUSED: where the request came from
	Valid     bool
}
