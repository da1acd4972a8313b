// Package sasl knows who may log in, and how a login goes: the mechanism DIGEST-MD5 (RFC 2831) on both sides, as Java's
// clients and servers speak it, and the JAAS files that hold the users.
//
// A login is an exchange of tokens; how they travel is the caller's matter. The side that logs in sends an empty token,
// [Server.Step] answers with a challenge, [Client.Respond] with the proof, Server.Step with a proof in return, which
// [Client.Verify] looks at. Passwords do not travel. [ParseJAAS] reads a file, [Section.Users] and [Section.Login] say what
// it means.
//
// Nothing here reads a clock, a file or a random number: those are inputs. Nothing that is returned as an error or printed
// shows a password, or anything that was computed from one.
package sasl

import "fmt"

// Target is what a login is for. Both sides have to mean the same.
type Target struct {
	// Service is the protocol, Host the server. Host is the realm of the users as well, and no address: all servers have
	// the same.
	Service, Host string
}

// The two kinds of logins.
var (
	// TargetClient is that of a client, at any server.
	TargetClient = Target{"zookeeper", "zk-sasl-md5"}
	// TargetQuorum is that of a server, at another one.
	TargetQuorum = Target{"zookeeper-quorum", "zk-quorum-sasl-md5"}
)

func (t Target) uri() string { return t.Service + "/" + t.Host }

// Users are passwords by user. They are not shown when they are printed.
type Users map[string]string

// String tells how many users there are.
func (u Users) String() string { return fmt.Sprintf("%d users", len(u)) }

// GoString is String.
func (u Users) GoString() string { return u.String() }

// Password returns the password of a user; false if there is no such user.
func (u Users) Password(user string) (string, bool) {
	password, ok := u[user]
	return password, ok
}

// Login is a user with the password to log in with. It is not shown when it is printed.
type Login struct{ User, Password string }

// String names the user.
func (l Login) String() string { return fmt.Sprintf("user %q", l.User) }

// GoString is String.
func (l Login) GoString() string { return l.String() }
