package replica

import (
	"go.uber.org/zap"

	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// Config is what a replica must know. Times are in milliseconds.
type Config struct {
	// Ensemble makes the server a member of an ensemble; nil for a standalone server. LastZxid is filled in from what was
	// recovered.
	Ensemble *zab.Config
	// ServerByte is the top byte of the session ids made here: 1 for a standalone server, the low byte of the server's id
	// in an ensemble.
	ServerByte byte
	// TickMs is tickTime: the grid on which sessions expire.
	TickMs int64
	// MinSessionTimeoutMs and MaxSessionTimeoutMs clamp what clients ask for.
	MinSessionTimeoutMs, MaxSessionTimeoutMs int32
	// FieldBytesMax bounds a single string or buffer inside a request or a transaction (jute.maxbuffer plus extrasize).
	FieldBytesMax int
	// RecordBytesMax bounds an encoded transaction: a longer one could not be read back and is refused.
	RecordBytesMax int
	// OutstandingMax is globalOutstandingLimit; 0 takes the default. Above it, connections that have their share of requests
	// in flight (16, or OutstandingMax if that is less) are not read. In an ensemble with more than two voters it is shared among all of them but one.
	OutstandingMax int
	Tree           znode.Config
	// SASL is who may log in by SASL; nil is nobody.
	SASL *SASL
	// EnforcedSchemes are the auth schemes of which a client needs one before anything but auth and sasl is answered; nil asks
	// for nothing.
	EnforcedSchemes []string
	// EnforceQuota makes hard quota limits refuse requests.
	EnforceQuota bool
	// Throttle bounds what an overloaded server takes on.
	Throttle Throttle
	// Audit hands out what the audit log is to tell, until SetAudit says otherwise.
	Audit bool
	// BodylessCloseSession writes closeSession transactions without the list of ephemerals, as ZooKeeper before 3.6.
	BodylessCloseSession bool
	// ReconfigEnabled changes how a standalone server refuses a reconfig request. A member of an ensemble answers as if
	// it were not set.
	ReconfigEnabled bool
	// ContainerCheckMs is the period of the scan for empty containers and outlived TTL nodes, ContainerMaxPerMinute the
	// rate of their deletion, ContainerNeverUsedMs the age at which a container that never had a child goes (0 = never).
	ContainerCheckMs, ContainerMaxPerMinute, ContainerNeverUsedMs int64
	Snapshot                                                      znode.SnapshotOptions
	// Wake is called, from any goroutine, when Step has something to do. It must not block.
	Wake func()
	// Received is called in the place of Wake by Receive: its caller sees to a step when it has handed over everything that
	// has come in one go, and before it waits for anything. Nil is Wake.
	Received func(*Conn)
	// ApplyBatchMax is how many transactions are applied under one hold of the tree's write lock; 0 takes the default.
	ApplyBatchMax int
	// FlushEarly, if it is there, is given the connections that have output when a batch is applied and more follow in the
	// same step, so that their answers need not wait for these. The step's Flush has those that got output after that. It is
	// called by the stepping goroutine, must not block, and leaves the slice to its caller.
	FlushEarly func([]*Conn)
	// Refused is called, from any goroutine, when a request is refused without a code that says enough. It must not
	// block. Nil is allowed.
	Refused func(Refusal)
	Log     *zap.Logger
}

// Refusal tells of one refused request, for the log.
type Refusal struct {
	Conn    *Conn
	Session zxid.SessionID
	Op      wire.Op
	Path    string
	Bytes   int
	Limit   int
	Why     string
	// Backlog is set when the connection was cut off because its client does not read.
	Backlog bool
}

func (c *Config) setDefaults() {
	if c.ApplyBatchMax <= 0 {
		c.ApplyBatchMax = applyBatchDefault
	}
	if c.Wake == nil {
		c.Wake = func() {}
	}
	if c.Received == nil {
		wake := c.Wake
		c.Received = func(*Conn) { wake() }
	}
	if c.Refused == nil {
		c.Refused = func(Refusal) {}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
}

// Now is the time that a step happens at.
type Now struct {
	// MonoMs is a monotonic clock in milliseconds, WallMs the time of day in milliseconds since 1970.
	MonoMs, WallMs int64
	// AheadMs is by how much a test has moved both ahead. The core goes by MonoMs without it: what the members of an ensemble owe
	// each other takes its time.
	AheadMs int64
}
