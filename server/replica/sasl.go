package replica

import (
	"fmt"
	"strings"

	"zabra/internal/sasl"
	"zabra/jute"
	"zabra/wire"
	"zabra/znode"
)

// SASL says who may log in by SASL. Its functions are called on the connections' readers.
type SASL struct {
	// Offered tells whether logins are taken at all; without that a SASL request is answered with nothing, as by a server that
	// has no section for clients. off, if it is not empty, says why every login is refused.
	Offered func() (offered bool, off string)
	// Password returns the password of a user, false if there is no such user.
	Password func(user string) (string, bool)
	// Super tells whether a user may do everything.
	Super func(user string) bool
	// Random makes the nonces.
	Random sasl.Random
	// KeepFailed keeps connections whose login failed, unless they need one.
	KeepFailed bool
}

// spentLogin stands for a login that is over.
var spentLogin sasl.Server

// receiveSASL takes one token of a login. Like auth it counts from the next request on, and its answer keeps its place in the
// line.
func (c *Conn) receiveSASL(xid int32, body []byte, now Now) (Verdict, error) {
	var req wire.SASLRequest
	d := jute.NewDecoder(body, c.r.cfg.FieldBytesMax)
	req.Decode(&d)
	if d.Err() != nil {
		return c.answerInTurn(item{kind: itemReply, op: wire.OpSASL, xid: xid, code: wire.CodeMarshalling, recvMs: now.MonoMs}, now), nil
	}
	if req.Token == nil {
		return Closing, ErrSASLNullToken
	}
	it := item{kind: itemSASL, op: wire.OpSASL, xid: xid, recvMs: now.MonoMs}
	offered, off := false, ""
	if c.r.cfg.SASL != nil {
		offered, off = c.r.cfg.SASL.Offered()
	}
	if !offered {
		return c.answerInTurn(it, now), nil
	}
	answer, why := c.stepLogin(req.Token, off)
	if why != "" {
		return c.refuseLogin(it, why, now), nil
	}
	it.body = answer
	return c.answerInTurn(it, now), nil
}

// stepLogin goes on with the connection's login, of which there is one. why is empty unless it failed.
func (c *Conn) stepLogin(token []byte, off string) (answer []byte, why string) {
	cfg := c.r.cfg.SASL
	if off != "" {
		return nil, off
	}
	if c.login == nil {
		c.login = sasl.NewServer(sasl.TargetClient, cfg.Random, cfg.Password)
	}
	login := c.login
	answer, done, err := login.Step(token)
	if done || err != nil {
		c.login = &spentLogin
	}
	switch {
	case err != nil:
		return nil, err.Error()
	case !done:
		return answer, ""
	}
	ids := []wire.ID{{Scheme: znode.SchemeSASL, ID: login.User()}}
	if cfg.Super(login.User()) {
		ids = append(ids, znode.SuperID())
	}
	if !c.addIDs(ids) {
		return nil, tooManyIdentities
	}
	return answer, ""
}

// refuseLogin ends a connection whose login failed, unless it may stay without one. The client is not told why.
func (c *Conn) refuseLogin(it item, why string, now Now) Verdict {
	needed := c.r.enforces(znode.SchemeSASL)
	if c.r.cfg.SASL.KeepFailed && !needed {
		why += "; the connection stays (allowSaslFailedClients)"
	} else {
		it.code, it.last = wire.CodeAuthFailed, true
		if needed {
			it.code = wire.CodeAuthRequired
		}
	}
	c.r.cfg.Refused(Refusal{Conn: c, Session: c.SessionID(), Op: wire.OpSASL, Why: why})
	return c.answerInTurn(it, now)
}

// enforces tells whether a client can be made to prove an identity of this scheme.
func (r *Replica) enforces(scheme string) bool {
	for _, s := range r.cfg.EnforcedSchemes {
		if s == scheme {
			return true
		}
	}
	return false
}

// identified tells whether the connection has an identity of one of the schemes that are asked for.
func (c *Conn) identified() bool {
	for _, id := range *c.ids.Load() {
		if c.r.enforces(id.Scheme) {
			return true
		}
	}
	return false
}

// refuseStranger ends a connection that asks for something before it has proved who it is.
func (c *Conn) refuseStranger(op wire.Op, xid int32, now Now) Verdict {
	c.r.cfg.Refused(Refusal{Conn: c, Session: c.SessionID(), Op: op, Why: fmt.Sprintf(
		"the client has to authenticate first, by the scheme %s (enforce.auth.schemes, sessionRequireClientSASLAuth)",
		strings.Join(c.r.cfg.EnforcedSchemes, " or "))})
	return c.answerInTurn(item{kind: itemReply, op: op, xid: xid, code: wire.CodeAuthRequired, last: true, recvMs: now.MonoMs}, now)
}
