package wire

import "strconv"

// Op is the number of an operation: the type in a request's header, in a multi's headers and in the header of a logged
// transaction.
type Op int32

// The operations of ZooKeeper 3.9. The negative ones and OpNotification are never requests of a client, but for
// OpCloseSession.
const (
	OpCloseSession         Op = -11
	OpCreateSession        Op = -10
	OpError                Op = -1
	OpNotification         Op = 0
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
)

// Class says how a request of a client is served.
type Class uint8

const (
	// ClassInvalid requests are refused with CodeUnimplemented, and the connection is closed.
	ClassInvalid Class = iota
	// ClassWrite requests become a transaction, also if they fail.
	ClassWrite
	// ClassRead requests are answered by the connected server from its own tree.
	ClassRead
	// ClassSync requests are ordered through the leader without a transaction.
	ClassSync
	// ClassConn requests concern the connection only: ping, auth, sasl.
	ClassConn
)

// OpInfo is what the table of operations tells about one.
type OpInfo struct {
	// Name is the operation's name in ZooKeeper's documentation.
	Name string
	// Short is the code of the operation as the last one of a connection (lop) in the answer to the word cons; "NA" for
	// operations that never show there.
	Short string
	// Class says how a request is served.
	Class Class
}

const (
	opMin = OpCloseSession
	opMax = OpWhoAmI

	shortNone = "NA"
)

// opTable is the one table of operations, by number less opMin. Numbers without an operation have an empty name.
//
// OpCheck is a write inside a multi only; on its own it is refused. OpCreateSession is the server's own.
// OpDeleteContainer is meant for the server's own use too, but ZooKeeper takes it from clients, without looking at any
// ACL: whoever serves it must decide what to allow.
var opTable = [opMax - opMin + 1]OpInfo{
	OpCloseSession - opMin:         {"closeSession", "CLOS", ClassWrite},
	OpCreateSession - opMin:        {"createSession", "SESS", ClassInvalid},
	OpError - opMin:                {"error", shortNone, ClassInvalid},
	OpNotification - opMin:         {"notification", shortNone, ClassInvalid},
	OpCreate - opMin:               {"create", "CREA", ClassWrite},
	OpDelete - opMin:               {"delete", "DELE", ClassWrite},
	OpExists - opMin:               {"exists", "EXIS", ClassRead},
	OpGetData - opMin:              {"getData", "GETD", ClassRead},
	OpSetData - opMin:              {"setData", "SETD", ClassWrite},
	OpGetACL - opMin:               {"getACL", "GETA", ClassRead},
	OpSetACL - opMin:               {"setACL", "SETA", ClassWrite},
	OpGetChildren - opMin:          {"getChildren", "GETC", ClassRead},
	OpSync - opMin:                 {"sync", "SYNC", ClassSync},
	OpPing - opMin:                 {"ping", "PING", ClassConn},
	OpGetChildren2 - opMin:         {"getChildren2", "GETC", ClassRead},
	OpCheck - opMin:                {"check", "CHEC", ClassInvalid},
	OpMulti - opMin:                {"multi", "MULT", ClassWrite},
	OpCreate2 - opMin:              {"create2", "CREA", ClassWrite},
	OpReconfig - opMin:             {"reconfig", "RECO", ClassWrite},
	OpCheckWatches - opMin:         {"checkWatches", "CHKW", ClassRead},
	OpRemoveWatches - opMin:        {"removeWatches", "REMW", ClassRead},
	OpCreateContainer - opMin:      {"createContainer", "CREA", ClassWrite},
	OpDeleteContainer - opMin:      {"deleteContainer", "DELE", ClassWrite},
	OpCreateTTL - opMin:            {"createTTL", "CREA", ClassWrite},
	OpMultiRead - opMin:            {"multiRead", "MLTR", ClassRead},
	OpAuth - opMin:                 {"auth", shortNone, ClassConn},
	OpSetWatches - opMin:           {"setWatches", "SETW", ClassRead},
	OpSASL - opMin:                 {"sasl", shortNone, ClassConn},
	OpGetEphemerals - opMin:        {"getEphemerals", "GETE", ClassRead},
	OpGetAllChildrenNumber - opMin: {"getAllChildrenNumber", "GETACN", ClassRead},
	OpSetWatches2 - opMin:          {"setWatches2", "STW2", ClassRead},
	OpAddWatch - opMin:             {"addWatch", "ADDW", ClassRead},
	OpWhoAmI - opMin:               {"whoAmI", "HOMI", ClassRead},
}

// Info looks op up in the table. An unknown number gives a ClassInvalid entry with the name "unknown".
func (op Op) Info() OpInfo {
	if !op.Known() {
		return OpInfo{Name: "unknown", Short: shortNone, Class: ClassInvalid}
	}
	return opTable[op-opMin]
}

// Known reports whether op is in the table, which does not mean that a client may send it.
func (op Op) Known() bool {
	return op >= opMin && op <= opMax && opTable[op-opMin].Name != ""
}

// String returns the operation's name, or op(23) for an unknown number.
func (op Op) String() string {
	if !op.Known() {
		return "op(" + strconv.Itoa(int(op)) + ")"
	}
	return opTable[op-opMin].Name
}
