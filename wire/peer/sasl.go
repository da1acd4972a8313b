package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"zabra/internal/sasl"
)

// SASL is the Authenticator of servers that log in to one another with a user and a password, by DIGEST-MD5. The side that
// dialled logs in; the other side proves in return that it knows the password. What is said afterwards is neither encrypted
// nor protected: that takes TLS underneath.
//
//	 0      8        12       16
//	+------+--------+--------+-------+
//	| mark | status | length | token |
//	+------+--------+--------+-------+
//
// All numbers are big-endian. The packets are those of Apache's servers.
type SASL struct {
	// LogsIn has this server log in where it dials. Requires refuses whoever does not log in here; without it those who do not
	// are let in, so that an ensemble can change over server by server.
	LogsIn, Requires bool
	// Login is who this server is to others. Password knows those that may log in here. They are called for each connection.
	Login    func() sasl.Login
	Password func(user string) (string, bool)
	Random   sasl.Random
	// Off refuses everybody who logs in: DIGEST-MD5 is excluded by fips-mode.
	Off bool
}

// AuthError says that one of two servers could not prove who it is.
type AuthError struct{ Err error }

// Error gives the reason.
func (e *AuthError) Error() string { return "peer: login: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *AuthError) Unwrap() error { return e.Err }

// saslMark begins every packet of a login. No greeting and no TLS handshake begins like it.
const saslMark = 0x5F2435013501EDCC

// The states of a login as packets tell them.
const (
	saslGoesOn  int32 = 0
	saslSuccess int32 = 1
	saslFailure int32 = -1
)

// saslHeadBytes is what stands before the token.
const saslHeadBytes = 8 + 4 + 4

var (
	errLoginRefused = errors.New("the other server refused it: the user in the section of quorum.auth.learner.saslLoginContext " +
		"here has to be one of those in the section of quorum.auth.server.saslLoginContext there, with the same password")
	errNoLogin = errors.New("a server did not log in, and quorum.auth.serverRequireSasl is true here: " +
		"set quorum.auth.learnerRequireSasl=true there")
	errCutOff  = errors.New("the other server ended the connection in the middle of it; is quorum.auth.enableSasl true on that server?")
	errNotSASL = errors.New("the other server answers with something else")
	errOff     = errors.New("fips-mode is true here and excludes DIGEST-MD5")
)

// Client logs in.
func (s *SASL) Client(conn net.Conn) (net.Conn, error) {
	if !s.LogsIn {
		return conn, nil
	}
	c := sasl.NewClient(sasl.TargetQuorum, s.Random, s.Login())
	if err := writeSASL(conn, saslGoesOn, nil); err != nil {
		return nil, err
	}
	challenge, err := readSASLOf(conn, saslGoesOn)
	if err != nil {
		return nil, err
	}
	response, err := c.Respond(challenge)
	if err != nil {
		return nil, &AuthError{err}
	}
	if err := writeSASL(conn, saslGoesOn, response); err != nil {
		return nil, err
	}
	last, err := readSASLOf(conn, saslSuccess)
	if err != nil {
		return nil, err
	}
	if err := c.Verify(last); err != nil {
		return nil, &AuthError{err}
	}
	return conn, nil
}

// Server lets the other side log in. A connection that ends before it says anything gives io.EOF.
func (s *SASL) Server(conn net.Conn) (net.Conn, error) {
	var head [8]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	if binary.BigEndian.Uint64(head[:]) == saslMark {
		return conn, s.serve(&headConn{conn, head[:]})
	}
	plain := &headConn{conn, head[:]}
	if !s.Requires {
		return plain, nil
	}
	if _, err := readGreeting(plain); err != nil {
		return nil, err // it is no server of this kind
	}
	// Whether the refusal arrives is the peer's concern.
	_ = writeGreeting(conn, greetingRefused, []byte(errNoLogin.Error()))
	return nil, &AuthError{errNoLogin}
}

// serve goes through a login.
func (s *SASL) serve(conn io.ReadWriter) error {
	login := sasl.NewServer(sasl.TargetQuorum, s.Random, s.Password)
	for {
		token, err := readSASLOf(conn, saslGoesOn)
		if err != nil {
			return err
		}
		answer, done, err := login.Step(token)
		if err == nil && s.Off {
			err = errOff
		}
		if err != nil {
			_ = writeSASL(conn, saslFailure, nil)
			return &AuthError{err}
		}
		if done {
			return writeSASL(conn, saslSuccess, answer)
		}
		if err := writeSASL(conn, saslGoesOn, answer); err != nil {
			return err
		}
	}
}

func writeSASL(w io.Writer, status int32, token []byte) error {
	b := make([]byte, 0, saslHeadBytes+len(token))
	b = binary.BigEndian.AppendUint64(b, saslMark)
	b = binary.BigEndian.AppendUint32(b, uint32(status))
	b = binary.BigEndian.AppendUint32(b, uint32(len(token)))
	_, err := w.Write(append(b, token...))
	return err
}

// readSASLOf reads a packet that has to tell of one state.
func readSASLOf(r io.Reader, want int32) ([]byte, error) {
	status, token, err := readSASL(r)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return nil, &AuthError{errCutOff}
	case err != nil:
		return nil, err
	case status == saslFailure:
		return nil, &AuthError{errLoginRefused}
	case status != want:
		return nil, &AuthError{fmt.Errorf("a packet of state %d, where %d was expected", status, want)}
	}
	return token, nil
}

// readSASL reads one packet. Its end before the first byte is io.EOF.
func readSASL(r io.Reader) (status int32, token []byte, err error) {
	var head [saslHeadBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	if binary.BigEndian.Uint64(head[:]) != saslMark {
		return 0, nil, &AuthError{errNotSASL}
	}
	status = int32(binary.BigEndian.Uint32(head[8:]))
	length := int32(binary.BigEndian.Uint32(head[12:]))
	if length < -1 || length > sasl.TokenBytesMax { // -1 is null
		return 0, nil, &AuthError{fmt.Errorf("a token of %d bytes, the limit is %d", length, sasl.TokenBytesMax)}
	}
	token = make([]byte, max(length, 0))
	_, err = io.ReadFull(r, token)
	return status, token, noEOF(err)
}

// headConn is a connection of which the first bytes were read already.
type headConn struct {
	net.Conn
	head []byte
}

// Read gives those bytes first.
func (c *headConn) Read(b []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.head)
	c.head = c.head[n:]
	return n, nil
}
