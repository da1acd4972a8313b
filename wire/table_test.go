package wire

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// The whole table of operations, written down a second time from the protocol's description.
func TestOps(t *testing.T) {
	want := map[Op]OpInfo{
		-11: {"closeSession", "CLOS", ClassWrite},
		-10: {"createSession", "SESS", ClassInvalid},
		-1:  {"error", "NA", ClassInvalid},
		0:   {"notification", "NA", ClassInvalid},
		1:   {"create", "CREA", ClassWrite},
		2:   {"delete", "DELE", ClassWrite},
		3:   {"exists", "EXIS", ClassRead},
		4:   {"getData", "GETD", ClassRead},
		5:   {"setData", "SETD", ClassWrite},
		6:   {"getACL", "GETA", ClassRead},
		7:   {"setACL", "SETA", ClassWrite},
		8:   {"getChildren", "GETC", ClassRead},
		9:   {"sync", "SYNC", ClassSync},
		11:  {"ping", "PING", ClassConn},
		12:  {"getChildren2", "GETC", ClassRead},
		13:  {"check", "CHEC", ClassInvalid},
		14:  {"multi", "MULT", ClassWrite},
		15:  {"create2", "CREA", ClassWrite},
		16:  {"reconfig", "RECO", ClassWrite},
		17:  {"checkWatches", "CHKW", ClassRead},
		18:  {"removeWatches", "REMW", ClassRead},
		19:  {"createContainer", "CREA", ClassWrite},
		20:  {"deleteContainer", "DELE", ClassWrite},
		21:  {"createTTL", "CREA", ClassWrite},
		22:  {"multiRead", "MLTR", ClassRead},
		100: {"auth", "NA", ClassConn},
		101: {"setWatches", "SETW", ClassRead},
		102: {"sasl", "NA", ClassConn},
		103: {"getEphemerals", "GETE", ClassRead},
		104: {"getAllChildrenNumber", "GETACN", ClassRead},
		105: {"setWatches2", "STW2", ClassRead},
		106: {"addWatch", "ADDW", ClassRead},
		107: {"whoAmI", "HOMI", ClassRead},
	}
	for op := Op(-300); op <= 300; op++ {
		info, known := want[op]
		require.Equal(t, known, op.Known(), "%d", op)
		if known {
			require.Equal(t, info, op.Info())
			require.Equal(t, info.Name, op.String())
		}
	}
	for _, op := range []Op{-1 << 31, -12, -2, 10, 23, 99, 108, 1<<31 - 1} {
		require.Equal(t, OpInfo{"unknown", "NA", ClassInvalid}, op.Info(), "%d", op)
	}
	require.Equal(t, "op(23)", Op(23).String())
	require.Equal(t, "op(-2147483648)", Op(-1<<31).String())
}

// The whole table of error codes, written down a second time from the protocol's description.
func TestCodes(t *testing.T) {
	want := map[Code]string{
		0: "Ok", -1: "SystemError", -2: "RuntimeInconsistency", -3: "DataInconsistency", -4: "ConnectionLoss",
		-5: "MarshallingError", -6: "Unimplemented", -7: "OperationTimeout", -8: "BadArguments", -9: "InvalidState",
		-12: "UnknownSession", -13: "NewConfigNoQuorum", -14: "ReconfigInProgress", -15: "SSLConnectionError",
		-100: "APIError", -101: "NoNode", -102: "NoAuth", -103: "BadVersion", -108: "NoChildrenForEphemerals",
		-110: "NodeExists", -111: "NotEmpty", -112: "SessionExpired", -113: "InvalidCallback", -114: "InvalidACL",
		-115: "AuthFailed", -116: "Closing", -117: "Nothing", -118: "SessionMoved", -119: "NotReadOnly",
		-120: "EphemeralOnLocalSession", -121: "NoWatcher", -122: "RequestTimeout", -123: "ReconfigDisabled",
		-124: "SessionClosedRequireSaslAuth", -125: "QuotaExceeded", -127: "ThrottledOp",
	}
	for c := Code(-300); c <= 300; c++ {
		name, known := want[c]
		require.Equal(t, known, c.Known(), "%d", c)
		if known {
			require.Equal(t, name, c.String())
			require.Contains(t, c.Error(), name+": ")
		}
	}
	for _, c := range []Code{-1 << 31, 1<<31 - 1} {
		require.False(t, c.Known())
	}
	require.Equal(t, "code(-126)", Code(-126).String())
	require.Equal(t, "code(-2147483648)", Code(-1<<31).Error())
}

func TestCodeErr(t *testing.T) {
	require.NoError(t, CodeOK.Err())
	var c Code
	require.True(t, errors.As(CodeNoNode.Err(), &c))
	require.Equal(t, CodeNoNode, c)
	require.EqualError(t, CodeNoNode, "NoNode: node does not exist")
}

func TestEventTypes(t *testing.T) {
	for i, name := range []string{"event(0)", "NodeCreated", "NodeDeleted", "NodeDataChanged", "NodeChildrenChanged", "event(5)"} {
		require.Equal(t, name, EventType(i).String())
	}
}
