package sasl

import (
	"errors"
	"fmt"
	"strings"
)

// Server is the side that is logged in to, in one exchange. The zero value is one that is over. It belongs to one goroutine
// at a time.
type Server struct {
	state    serverState
	target   Target
	nonce    string
	password func(user string) (string, bool)
	user     string
}

type serverState uint8

const (
	serverOver serverState = iota // done or failed: nothing more is taken
	serverNew
	serverChallenged
)

var (
	// ErrNoSuchUser is a login of a user that the server does not know.
	ErrNoSuchUser = errors.New("the login names a user that is not known here")
	// ErrWrongPassword is a login with another password than the server has for that user.
	ErrWrongPassword = errors.New("wrong password")

	errOver = errors.New("this connection's login is over; another one needs another connection")
)

// NewServer begins an exchange. password knows the users; it is called during Step. random is called once, at once.
func NewServer(target Target, random Random, password func(user string) (string, bool)) *Server {
	return &Server{state: serverNew, target: target, nonce: random.nonce(), password: password}
}

// Step takes the client's next token and returns the answer, which is never empty. done says that the client is now logged
// in as User and that the answer tells it so. After an error, or when done, the exchange is over. Errors say why for the
// operator: a client is told nothing but that it was refused. They match ErrNoSuchUser or ErrWrongPassword, if it was that.
func (s *Server) Step(token []byte) (answer []byte, done bool, err error) {
	switch s.state {
	case serverNew:
		// The first token should be empty. A client that knows an earlier nonce may send more, and is challenged anew, as it
		// is by Java.
		s.state = serverChallenged
		return s.challenge(), false, nil
	case serverChallenged:
		s.state = serverOver
		if answer, err = s.check(token); err != nil {
			return nil, false, err
		}
		return answer, true, nil
	}
	return nil, false, errOver
}

// User returns who has logged in; "" while nobody has.
func (s *Server) User() string { return s.user }

func (s *Server) challenge() []byte {
	b := appendQuoted(nil, "realm", s.target.Host)
	b = appendQuoted(append(b, ','), "nonce", s.nonce)
	return append(b, ",charset="+charsetUTF8+",algorithm="+algorithm...)
}

// check looks at the proof of the client, and proves in return that this server knows the password as well.
func (s *Server) check(token []byte) ([]byte, error) {
	list, err := parseDirectives(token)
	if err != nil {
		return nil, err
	}
	d := directives{list: list}
	p, response := s.read(&d)
	if d.err != nil {
		return nil, d.err
	}
	password, known := s.password(p.user)
	p.password = password
	right := equal(response, p.compute(methodLogin)) // also for nobody, so that the time does not tell who is known
	switch {
	case !known:
		return nil, ErrNoSuchUser
	case !right:
		return nil, fmt.Errorf("%w of user %s", ErrWrongPassword, shown(p.user))
	}
	s.user = p.user
	return []byte("rspauth=" + p.compute(methodAnswer)), nil
}

// read takes what the client says, and complains of what was not asked for.
func (s *Server) read(d *directives) (p proof, response string) {
	p = proof{user: d.once("username"), nonce: d.once("nonce"), cnonce: d.once("cnonce"), uri: d.once("digest-uri")}
	p.realm, _ = d.atMostOnce("realm")
	p.authzid, p.hasAuthzid = d.atMostOnce("authzid")
	charset, hasCharset := d.atMostOnce("charset")
	qop, hasQOP := d.atMostOnce("qop")
	buffer, hasBuffer := d.atMostOnce("maxbuf")
	count := d.once("nc")
	response = d.once("response")
	d.require(!hasCharset || strings.EqualFold(charset, charsetUTF8), "the charset is not %s", charsetUTF8)
	if !hasCharset {
		p.user = fromLatin1(p.user)
	}
	d.require(!hasQOP || qop == qopAuth, "another protection is asked for than %s", qopAuth)
	d.require(!hasBuffer || isNumber(buffer), "maxbuf is not a number")
	d.require(!p.hasAuthzid || p.authzid != "", "authzid is empty")
	d.require(p.cnonce != "", "cnonce is empty")
	d.require(p.realm == s.target.Host, "the realm is %s, not %q", shown(p.realm), s.target.Host)
	d.require(strings.EqualFold(p.uri, s.target.uri()), "the login is meant for %s, not for %q", shown(p.uri), s.target.uri())
	d.require(equal(p.nonce, s.nonce), "the nonce is not that of the challenge: the answer is to another one")
	d.require(count == firstCount, "the nonce was used before")
	return p, response
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 10 && strings.Trim(s, "0123456789") == ""
}
