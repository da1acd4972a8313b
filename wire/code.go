package wire

import "strconv"

// Code is an error code of a reply. It is an error, but for CodeOK: see [Code.Err].
type Code int32

// The error codes of ZooKeeper 3.9. Those marked "client" are made by client libraries and never sent.
const (
	CodeOK                      Code = 0
	CodeSystemError             Code = -1 // not sent
	CodeRuntimeInconsistency    Code = -2 // sub-results of a failed multi only
	CodeDataInconsistency       Code = -3 // not sent
	CodeConnectionLoss          Code = -4 // client
	CodeMarshalling             Code = -5
	CodeUnimplemented           Code = -6
	CodeOperationTimeout        Code = -7 // client
	CodeBadArguments            Code = -8
	CodeInvalidState            Code = -9  // client
	CodeUnknownSession          Code = -12 // internal, a dropped request or CodeSessionExpired to clients
	CodeNewConfigNoQuorum       Code = -13
	CodeReconfigInProgress      Code = -14
	CodeSSLConnection           Code = -15  // client
	CodeAPIError                Code = -100 // not sent, marks where the next range starts
	CodeNoNode                  Code = -101
	CodeNoAuth                  Code = -102
	CodeBadVersion              Code = -103
	CodeNoChildrenForEphemerals Code = -108
	CodeNodeExists              Code = -110
	CodeNotEmpty                Code = -111
	CodeSessionExpired          Code = -112
	CodeInvalidCallback         Code = -113 // client
	CodeInvalidACL              Code = -114
	CodeAuthFailed              Code = -115
	CodeClosing                 Code = -116 // client
	CodeNothing                 Code = -117 // client
	CodeSessionMoved            Code = -118 // never sent: the connection is closed instead
	CodeNotReadOnly             Code = -119
	CodeEphemeralOnLocalSession Code = -120
	CodeNoWatcher               Code = -121
	CodeRequestTimeout          Code = -122 // client
	CodeReconfigDisabled        Code = -123
	CodeAuthRequired            Code = -124
	CodeQuotaExceeded           Code = -125
	CodeThrottled               Code = -127
)

const codeMin = CodeThrottled

type codeInfo struct{ name, text string }

// codeTable is the one table of error codes, by number with the sign taken off. Numbers without a meaning have an
// empty name.
var codeTable = [-codeMin + 1]codeInfo{
	-CodeOK:                      {"Ok", "success"},
	-CodeSystemError:             {"SystemError", "system error"},
	-CodeRuntimeInconsistency:    {"RuntimeInconsistency", "not tried, an earlier operation of the multi failed"},
	-CodeDataInconsistency:       {"DataInconsistency", "data inconsistency"},
	-CodeConnectionLoss:          {"ConnectionLoss", "connection lost"},
	-CodeMarshalling:             {"MarshallingError", "request cannot be decoded"},
	-CodeUnimplemented:           {"Unimplemented", "operation not supported or switched off"},
	-CodeOperationTimeout:        {"OperationTimeout", "operation timed out"},
	-CodeBadArguments:            {"BadArguments", "invalid arguments"},
	-CodeInvalidState:            {"InvalidState", "invalid state of the client"},
	-CodeUnknownSession:          {"UnknownSession", "unknown session"},
	-CodeNewConfigNoQuorum:       {"NewConfigNoQuorum", "no quorum of the new configuration is connected and up to date"},
	-CodeReconfigInProgress:      {"ReconfigInProgress", "another reconfiguration is in progress"},
	-CodeSSLConnection:           {"SSLConnectionError", "TLS connection failed"},
	-CodeAPIError:                {"APIError", "API error"},
	-CodeNoNode:                  {"NoNode", "node does not exist"},
	-CodeNoAuth:                  {"NoAuth", "permission denied"},
	-CodeBadVersion:              {"BadVersion", "version does not match"},
	-CodeNoChildrenForEphemerals: {"NoChildrenForEphemerals", "ephemeral nodes cannot have children"},
	-CodeNodeExists:              {"NodeExists", "node exists"},
	-CodeNotEmpty:                {"NotEmpty", "node has children"},
	-CodeSessionExpired:          {"SessionExpired", "session expired or closing"},
	-CodeInvalidCallback:         {"InvalidCallback", "invalid callback"},
	-CodeInvalidACL:              {"InvalidACL", "invalid ACL"},
	-CodeAuthFailed:              {"AuthFailed", "authentication failed"},
	-CodeClosing:                 {"Closing", "client is closing"},
	-CodeNothing:                 {"Nothing", "no response to process"},
	-CodeSessionMoved:            {"SessionMoved", "session moved to another server"},
	-CodeNotReadOnly:             {"NotReadOnly", "server is read-only"},
	-CodeEphemeralOnLocalSession: {"EphemeralOnLocalSession", "local sessions cannot own ephemeral nodes"},
	-CodeNoWatcher:               {"NoWatcher", "no such watch"},
	-CodeRequestTimeout:          {"RequestTimeout", "request timed out"},
	-CodeReconfigDisabled:        {"ReconfigDisabled", "reconfiguration is disabled"},
	-CodeAuthRequired:            {"SessionClosedRequireSaslAuth", "authentication required"},
	-CodeQuotaExceeded:           {"QuotaExceeded", "quota exceeded"},
	-CodeThrottled:               {"ThrottledOp", "waited too long in the request throttle"},
}

// Known reports whether c is in the table. Clients fail on codes that are not.
func (c Code) Known() bool {
	return c <= 0 && c >= codeMin && codeTable[-c].name != ""
}

// String returns the code's name in ZooKeeper's documentation, or code(-99) for an unknown number.
func (c Code) String() string {
	if !c.Known() {
		return "code(" + strconv.Itoa(int(c)) + ")"
	}
	return codeTable[-c].name
}

// Error returns the name and the meaning of the code.
func (c Code) Error() string {
	if !c.Known() {
		return c.String()
	}
	return c.String() + ": " + codeTable[-c].text
}

// Err returns c as an error, nil for CodeOK.
func (c Code) Err() error {
	if c == CodeOK {
		return nil
	}
	return c
}
