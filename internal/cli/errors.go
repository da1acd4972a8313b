package cli

import (
	"errors"
	"fmt"
	"io"

	"zabra/server/client"
	"zabra/wire"
)

// The exit codes. Those of commands are zkCli's.
const (
	ExitOK = 0
	// ExitFailure is a command that failed, or was used wrongly.
	ExitFailure = 1
	// ExitUsage is a command line of zabra cli itself that cannot be used.
	ExitUsage = 2
	// ExitUnknown is a command that does not exist.
	ExitUnknown = 127
	// ExitInterrupted is a command that Ctrl-C ended.
	ExitInterrupted = 130
)

// errUsage makes the command's usage be shown.
var errUsage = errors.New("usage")

// opError is what a server or the connection to it answered. The path is "" if the request has none.
type opError struct {
	path string
	err  error
}

func (e *opError) Error() string { return describe(e.err, e.path) }
func (e *opError) Unwrap() error { return e.err }

// codeOf finds the code in an error, 0 if there is none.
func codeOf(err error) wire.Code {
	var multi *client.MultiError
	var code wire.Code
	switch {
	case errors.As(err, &multi):
		return multi.Code
	case errors.As(err, &code):
		return code
	}
	return wire.CodeOK
}

// sentences are what zkCli says about a path. The blanks are as they are there.
var sentences = map[wire.Code]string{
	wire.CodeBadArguments:            "Arguments are not valid : %s",
	wire.CodeNoNode:                  "Node does not exist: %s",
	wire.CodeNoAuth:                  "Insufficient permission : %s",
	wire.CodeBadVersion:              "version No is not valid : %s",
	wire.CodeNoChildrenForEphemerals: "Ephemerals cannot have children: %s",
	wire.CodeNodeExists:              "Node already exists: %s",
	wire.CodeNotEmpty:                "Node not empty: %s",
	wire.CodeInvalidACL:              "Acl is not valid : %s",
	wire.CodeNotReadOnly:             "Not a read-only call: %s",
	wire.CodeQuotaExceeded:           "Quota has exceeded : %s",
}

// codeTexts are what Java's client calls the codes, where that differs from their names.
var codeTexts = map[wire.Code]string{
	wire.CodeNotEmpty:                "Directory not empty",
	wire.CodeSessionExpired:          "Session expired",
	wire.CodeInvalidCallback:         "Invalid callback",
	wire.CodeSessionMoved:            "Session moved",
	wire.CodeNotReadOnly:             "Not a read-only call",
	wire.CodeEphemeralOnLocalSession: "Ephemeral node on local session",
	wire.CodeNoWatcher:               "No such watcher",
	wire.CodeReconfigDisabled:        "Reconfig is disabled",
	wire.CodeAuthRequired:            "Session closed because client failed to authenticate",
	wire.CodeQuotaExceeded:           "Quota has exceeded",
	wire.CodeThrottled:               "Op throttled due to high load",
}

// describe words an error as zkCli does.
func describe(err error, path string) string {
	code := codeOf(err)
	switch {
	case code == wire.CodeOK:
		return err.Error()
	case code == wire.CodeReconfigInProgress:
		return "another reconfiguration is in progress: try again when it is done"
	case code == wire.CodeNewConfigNoQuorum:
		return "no quorum of the new configuration is connected and level with the leader: start the new servers, " +
			"and try again when they are synced"
	case sentences[code] != "" && path != "":
		return fmt.Sprintf(sentences[code], path)
	}
	return keeperError(code, path)
}

func keeperError(code wire.Code, path string) string {
	text := codeTexts[code]
	if text == "" {
		text = code.String()
	}
	text = "KeeperErrorCode = " + text
	if path != "" {
		text += " for " + path
	}
	return text
}

// unreachable is a connection loss because no server could be connected to.
type unreachable struct{ cause error }

func (e *unreachable) Error() string   { return e.cause.Error() }
func (e *unreachable) Unwrap() []error { return []error{wire.CodeConnectionLoss, e.cause} }

// loginRefused is a login by SASL that a server has refused. There is no point in trying again.
type loginRefused struct{ cause error }

func (e *loginRefused) Error() string   { return e.cause.Error() }
func (e *loginRefused) Unwrap() []error { return []error{wire.CodeAuthFailed, e.cause} }

// refusedLogin marks what came of a login if it was refused; a connection that was lost is something else.
func refusedLogin(err error) error {
	if errors.Is(err, wire.CodeAuthFailed) || errors.Is(err, wire.CodeAuthRequired) {
		return &loginRefused{err}
	}
	return err
}

func isLoginRefused(err error) bool {
	_, ok := errors.AsType[*loginRefused](err)
	return ok
}

// printError tells the user what went wrong, and when no server could be reached, or the login was refused, why.
func printError(w io.Writer, err error) {
	fmt.Fprintln(w, err)
	if l, ok := errors.AsType[*loginRefused](err); ok {
		fmt.Fprintf(w, "the login by SASL was refused: %v\n", l.cause)
	}
	if u, ok := errors.AsType[*unreachable](err); ok {
		fmt.Fprintf(w, "no server can be reached, the last answer is: %v\n", u.cause)
	}
}
