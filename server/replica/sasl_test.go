package replica

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/sasl"
	"zabra/jute"
	"zabra/wire"
	"zabra/znode"
)

var saslUsers = sasl.Users{"u1": "one", "u2": "two", "root": "r"}

// saslWorld is a world with logins. Each nonce is another one.
func saslWorld(t testing.TB, change func(*Config)) (w *world, refused *[]Refusal) {
	refused = &[]Refusal{}
	counter := uint64(0)
	return newWorld(t, func(c *Config) {
		auth, err := znode.NewAuth(znode.AuthConfig{Providers: []znode.Provider{znode.SASLProvider("")}})
		require.NoError(t, err)
		c.Tree.Auth = auth
		c.Refused = func(r Refusal) { *refused = append(*refused, r) }
		c.SASL = &SASL{
			Offered:  func() (bool, string) { return true, "" },
			Password: saslUsers.Password,
			Super:    func(user string) bool { return user == "root" },
			Random: func(b []byte) {
				counter++
				binary.BigEndian.PutUint64(b, counter)
			},
		}
		if change != nil {
			change(c)
		}
	}), refused
}

// saslReply is the answer to a SASL request, whose token is there whatever the code.
func (cl *client) saslReply(token []byte) (wire.Code, []byte) {
	cl.w.t.Helper()
	rp := cl.call(wire.OpSASL, &wire.SASLRequest{Token: token})
	var answer wire.SASLRequest
	rp.decode(cl.w.t, &answer)
	require.Zero(cl.w.t, rp.Zxid)
	return rp.Err, answer.Token
}

// login is one step of a login by its user.
type login struct {
	cl        *client
	c         *sasl.Client
	challenge []byte
}

func (cl *client) beginLogin(user, password string) *login {
	cl.w.t.Helper()
	code, challenge := cl.saslReply([]byte{})
	require.Equal(cl.w.t, wire.CodeOK, code)
	return &login{cl, sasl.NewClient(sasl.TargetClient, func([]byte) {}, sasl.Login{User: user, Password: password}), challenge}
}

func (l *login) finish() (wire.Code, error) {
	l.cl.w.t.Helper()
	response, err := l.c.Respond(l.challenge)
	require.NoError(l.cl.w.t, err)
	code, last := l.cl.saslReply(response)
	if code != wire.CodeOK {
		require.Nil(l.cl.w.t, last)
		return code, nil
	}
	return code, l.c.Verify(last)
}

func (cl *client) who() (ids []string) {
	cl.w.t.Helper()
	rp := cl.call(wire.OpWhoAmI, nil)
	var reply wire.WhoAmIReply
	rp.decode(cl.w.t, &reply)
	for _, c := range reply.Clients {
		ids = append(ids, c.Scheme+":"+c.User)
	}
	return ids
}

func (cl *client) requireEnd() {
	cl.w.t.Helper()
	_, fin := cl.c.Output(nil)
	require.True(cl.w.t, fin)
}

// Two connections log in as different users step by step: each is its own user.
func TestLoginsSideBySide(t *testing.T) {
	w, refused := saslWorld(t, nil)
	a, b := w.connect(), w.connect()
	one, two := a.beginLogin("u1", "one"), b.beginLogin("u2", "two")
	code, err := two.finish()
	require.NoError(t, err)
	require.Equal(t, wire.CodeOK, code)
	require.Equal(t, []string{"ip:127.0.0.1"}, a.who(), "half a login is none")
	code, err = one.finish()
	require.NoError(t, err)
	require.Equal(t, wire.CodeOK, code)
	require.Equal(t, []string{"ip:127.0.0.1", "sasl:u1"}, a.who())
	require.Equal(t, []string{"ip:127.0.0.1", "sasl:u2"}, b.who())
	require.Empty(t, *refused)

	creator := []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}
	require.Equal(t, wire.CodeOK, a.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/u1"), ACL: creator}).Err)
	read := &wire.PathWatchRequest{Path: []byte("/u1")}
	require.Equal(t, wire.CodeOK, a.call(wire.OpGetData, read).Err)
	require.Equal(t, wire.CodeNoAuth, b.call(wire.OpGetData, read).Err)
	root := w.connect()
	_, err = root.beginLogin("root", "r").finish()
	require.NoError(t, err)
	require.Equal(t, []string{"ip:127.0.0.1", "sasl:root", "super:"}, root.who())
	require.Equal(t, wire.CodeOK, root.call(wire.OpGetData, read).Err)

	// An identity is the connection's, not the session's.
	again := w.open()
	again.handshake(wire.ConnectRequest{TimeoutMs: 5000, SessionID: a.id, Password: a.pw, HasReadOnly: true})
	require.Equal(t, []string{"ip:127.0.0.1"}, again.who())
}

func TestFailedLogins(t *testing.T) {
	w, refused := saslWorld(t, nil)
	for _, l := range []sasl.Login{{User: "u1", Password: "two"}, {User: "nobody", Password: "one"}} {
		cl := w.connect()
		code, _ := cl.beginLogin(l.User, l.Password).finish()
		require.Equal(t, wire.CodeAuthFailed, code)
		cl.requireEnd()
	}
	require.Len(t, *refused, 2)
	require.Equal(t, `wrong password of user "u1"`, (*refused)[0].Why)
	require.Equal(t, wire.OpSASL, (*refused)[1].Op)

	// What one connection has proved is worth nothing on another.
	heard := w.connect().beginLogin("u1", "one")
	response, err := heard.c.Respond(heard.challenge)
	require.NoError(t, err)
	thief := w.connect()
	thief.beginLogin("u1", "")
	code, _ := thief.saslReply(response)
	require.Equal(t, wire.CodeAuthFailed, code)
	thief.requireEnd()

	// There is one login on a connection.
	cl := w.connect()
	_, err = cl.beginLogin("u1", "one").finish()
	require.NoError(t, err)
	code, _ = cl.saslReply([]byte{})
	require.Equal(t, wire.CodeAuthFailed, code)
	cl.requireEnd()

	cl = w.connect()
	code, challenge := cl.saslReply([]byte("garbage"))
	require.Equal(t, wire.CodeOK, code)
	require.Contains(t, string(challenge), "nonce=", "what comes first is not looked at")
	code, _ = cl.saslReply([]byte("garbage"))
	require.Equal(t, wire.CodeAuthFailed, code)
	cl.requireEnd()
}

// Requests around a login are answered in their order, and see the identity from the moment of the proof.
func TestRequestsBehindALogin(t *testing.T) {
	w, _ := saslWorld(t, nil)
	cl := w.connect()
	l := cl.beginLogin("u1", "one")
	response, err := l.c.Respond(l.challenge)
	require.NoError(t, err)
	creator := []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}
	cl.send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/too-early"), ACL: creator})
	cl.send(wire.OpSASL, &wire.SASLRequest{Token: response})
	cl.send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/mine"), ACL: creator})
	cl.send(wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/mine")})
	w.settle()
	list := cl.replies()
	require.Len(t, list, 4)
	require.Equal(t, []wire.Code{wire.CodeInvalidACL, wire.CodeOK, wire.CodeOK, wire.CodeOK}, []wire.Code{list[0].Err, list[1].Err, list[2].Err, list[3].Err})
	var last wire.SASLRequest
	list[1].decode(t, &last)
	require.NoError(t, l.c.Verify(last.Token))
}

func TestFailedLoginsThatMayStay(t *testing.T) {
	w, refused := saslWorld(t, func(c *Config) { c.SASL.KeepFailed = true })
	cl := w.connect()
	l := cl.beginLogin("u1", "wrong")
	response, err := l.c.Respond(l.challenge)
	require.NoError(t, err)
	code, token := cl.saslReply(response)
	require.Equal(t, wire.CodeOK, code)
	require.Nil(t, token)
	require.Equal(t, []string{"ip:127.0.0.1"}, cl.who(), "it stays, as nobody")
	code, token = cl.saslReply(response)
	require.Equal(t, wire.CodeOK, code)
	require.Nil(t, token, "no second try")
	require.Equal(t, []string{"ip:127.0.0.1"}, cl.who())
	require.Len(t, *refused, 2)
	require.Contains(t, (*refused)[0].Why, "allowSaslFailedClients")
}

func TestLoginsThatAreOff(t *testing.T) {
	offered, off := false, ""
	w, refused := saslWorld(t, func(c *Config) { c.SASL.Offered = func() (bool, string) { return offered, off } })
	cl := w.connect()
	code, token := cl.saslReply([]byte("anything"))
	require.Equal(t, wire.CodeOK, code)
	require.Nil(t, token)
	require.Empty(t, *refused)
	offered, off = true, "fips-mode is true"
	code, _ = cl.saslReply([]byte{})
	require.Equal(t, wire.CodeAuthFailed, code)
	require.Equal(t, "fips-mode is true", (*refused)[0].Why)
	cl.requireEnd()
	cl = w.connect()
	_, err := cl.c.Receive([]byte{0, 0, 0, 1, 0, 0, 0, 102, 0xff, 0xff, 0xff, 0xff}, w.now)
	require.ErrorIs(t, err, ErrSASLNullToken)
}

// Whoever has to authenticate gets nothing else done before, whatever it asks.
func TestEnforcedSchemes(t *testing.T) {
	w, refused := saslWorld(t, func(c *Config) { c.EnforcedSchemes = []string{"sasl"}; c.SASL.KeepFailed = true })
	for _, op := range []wire.Op{wire.OpPing, wire.OpExists, wire.OpCreate, wire.OpCloseSession, wire.OpSync, wire.OpSetWatches, 999} {
		cl := w.connect()
		require.Equal(t, reply{ReplyHeader: wire.ReplyHeader{Xid: 1, Err: wire.CodeAuthRequired}, body: []byte{}}, cl.call(op, nil))
		cl.requireEnd()
	}
	require.Contains(t, (*refused)[0].Why, "the client has to authenticate first, by the scheme sasl")

	cl := w.connect()
	cl.sendXid(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("a:a")})
	w.settle()
	require.Equal(t, wire.CodeOK, cl.replies()[0].Err, "an identity of another scheme may be had")
	require.Equal(t, wire.CodeAuthRequired, cl.call(wire.OpExists, nil).Err, "and is not enough")

	cl = w.connect()
	code, _ := cl.beginLogin("u1", "wrong").finish()
	require.Equal(t, wire.CodeAuthRequired, code, "a failed client cannot stay where a login is asked for")
	cl.requireEnd()

	cl = w.connect()
	_, err := cl.beginLogin("u1", "one").finish()
	require.NoError(t, err)
	require.Equal(t, wire.CodeOK, cl.exists("/"))
	cl.mustCreate("/a", 0)
}

func TestEnforcedDigest(t *testing.T) {
	w, _ := saslWorld(t, func(c *Config) { c.EnforcedSchemes = []string{"x509", "digest"} })
	cl := w.connect()
	cl.sendXid(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("a:a")})
	cl.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/")})
	w.settle()
	list := cl.replies()
	require.Equal(t, wire.CodeOK, list[0].Err)
	require.Equal(t, wire.CodeOK, list[1].Err)
	cl = w.connect()
	code, _ := cl.beginLogin("u1", "wrong").finish()
	require.Equal(t, wire.CodeAuthFailed, code, "a login is not what is asked for")
}

// FuzzSASLRequest: whatever a client sends as a login, the replica keeps its order and gives no identity away.
func FuzzSASLRequest(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, []byte{0, 0, 0, 1, 'x'})
	f.Add([]byte{0, 0, 0, 0}, []byte("\x00\x00\x00\x10username=\"bob\",,"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		w, _ := saslWorld(t, nil)
		cl := w.connect()
		for _, body := range [][]byte{first, second, second} {
			var e jute.Encoder
			e.Int32(1)
			e.Int32(int32(wire.OpSASL))
			e.Raw(body)
			if _, err := cl.c.Receive(e.Bytes(), w.now); err != nil {
				return
			}
		}
		w.settle()
		require.Len(t, *cl.c.ids.Load(), 1)
	})
}
