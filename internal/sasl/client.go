package sasl

import (
	"errors"
	"strings"
)

// Client is the side that logs in, in one exchange. It begins with an empty token to the server.
type Client struct {
	target Target
	login  Login
	cnonce string
	proof  proof
}

// ErrServerUnproven says that the server took the login, but could not show that it knows the password itself: it is not
// the server that it should be.
var ErrServerUnproven = errors.New("the server cannot prove that it knows the password")

// NewClient begins an exchange. random is called once, at once.
func NewClient(target Target, random Random, login Login) *Client {
	return &Client{target: target, login: login, cnonce: random.nonce()}
}

// Respond makes the answer to the server's challenge. Errors are about the challenge.
func (c *Client) Respond(challenge []byte) ([]byte, error) {
	list, err := parseDirectives(challenge)
	if err != nil {
		return nil, err
	}
	d := directives{list: list}
	realm, realms := d.find("realm") // the first one, if there are several
	c.proof = proof{
		user: c.login.User, password: c.login.Password, realm: realm,
		nonce: d.once("nonce"), cnonce: c.cnonce, uri: c.target.uri(),
	}
	_, hasCharset := d.atMostOnce("charset")
	qop, hasQOP := d.atMostOnce("qop")
	d.require(c.proof.nonce != "", "the nonce is empty")
	d.require(strings.EqualFold(d.once("algorithm"), algorithm), "the algorithm is not %s", algorithm)
	d.require(!hasQOP || offers(qop, qopAuth), "the server does not offer %s", qopAuth)
	if d.err != nil {
		return nil, d.err
	}
	return c.response(hasCharset, realms > 0), nil
}

func (c *Client) response(hasCharset, hasRealm bool) (b []byte) {
	user := c.proof.user
	if hasCharset {
		b = append(b, "charset="+charsetUTF8+","...)
	} else {
		user = string(latin1(user))
	}
	b = appendQuoted(b, "username", user)
	if hasRealm {
		b = appendQuoted(append(b, ','), "realm", c.proof.realm)
	}
	b = appendQuoted(append(b, ','), "nonce", c.proof.nonce)
	b = append(b, ",nc="+firstCount...)
	b = appendQuoted(append(b, ','), "cnonce", c.proof.cnonce)
	b = appendQuoted(append(b, ','), "digest-uri", c.proof.uri)
	return append(b, ",response="+c.proof.compute(methodLogin)+",qop="+qopAuth...)
}

// Verify looks at the server's last token. The login is good when it returns nil.
func (c *Client) Verify(last []byte) error {
	list, err := parseDirectives(last)
	if err != nil {
		return err
	}
	d := directives{list: list}
	answer := d.once("rspauth")
	if d.err != nil {
		return d.err
	}
	if c.proof.nonce == "" || !equal(answer, c.proof.compute(methodAnswer)) {
		return ErrServerUnproven
	}
	return nil
}

// offers tells whether a list between commas has the word.
func offers(list, word string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(one), word) {
			return true
		}
	}
	return false
}
