package sasl

import (
	"crypto/md5" //nolint:gosec // the mechanism is made of it
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// fixed gives the same bytes again and again.
func fixed(c byte) Random {
	return func(b []byte) {
		for i := range b {
			b[i] = c
		}
	}
}

var people = Users{"bob": "secret", "alice": "wonder land", "super": "s", "": "nobody", "jürgen": "straße", "ユーザ": "パスワード", `q"\q`: `"\`}

// TestExamplesOfTheRFC: the two exchanges of RFC 2831, section 4, from both sides.
func TestExamplesOfTheRFC(t *testing.T) {
	tests := []struct{ service, nonce, cnonce, response, answer string }{
		{"imap", "OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "d388dad90d4bbd760a152321f2143af7", "ea40f60335c427b5527b84dbabcdfffd"},
		{"acap", "OA9BSXrbuRhWay", "OA9BSuZWMSpW8m", "6084c6db3fede7352c551284490fd0fc", "2f0b3d7c3c2e486600ef710726aa2eae"},
	}
	for _, tt := range tests {
		target := Target{tt.service, "elwood.innosoft.com"}
		c := NewClient(target, fixed(0), Login{"chris", "secret"})
		c.cnonce = tt.cnonce
		response, err := c.Respond([]byte(`realm="elwood.innosoft.com",nonce="` + tt.nonce + `",qop="auth",algorithm=md5-sess,charset=utf-8`))
		require.NoError(t, err)
		require.Equal(t, `charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="`+tt.nonce+`",nc=00000001,cnonce="`+tt.cnonce+
			`",digest-uri="`+tt.service+`/elwood.innosoft.com",response=`+tt.response+`,qop=auth`, string(response))
		require.NoError(t, c.Verify([]byte("rspauth="+tt.answer)))

		s := NewServer(target, fixed(0), Users{"chris": "secret"}.Password)
		_, _, err = s.Step(nil)
		require.NoError(t, err)
		s.nonce = tt.nonce
		answer, done, err := s.Step(response)
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, "rspauth="+tt.answer, string(answer))
		require.Equal(t, "chris", s.User())
	}
}

// independent computes a proof in its own way, by the letter of RFC 2831, section 2.1.2.1.
func independent(user, realm, password, nonce, cnonce, uri, method string, authzid *string) string {
	h := func(s string) string { sum := md5.Sum([]byte(s)); return string(sum[:]) }
	hex := func(s string) string { return fmt.Sprintf("%x", s) }
	iso := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if r >= 256 {
				return s
			}
			b.WriteByte(byte(r))
		}
		return b.String()
	}
	a1 := h(iso(user)+":"+iso(realm)+":"+iso(password)) + ":" + nonce + ":" + cnonce
	if authzid != nil {
		a1 += ":" + *authzid
	}
	kd := func(k, s string) string { return h(k + ":" + s) }
	return hex(kd(hex(h(a1)), nonce+":00000001:"+cnonce+":auth:"+hex(h(method+":"+uri))))
}

// nonceOf picks the nonce out of a challenge.
func nonceOf(t testing.TB, challenge []byte) string {
	_, rest, ok := strings.Cut(string(challenge), `nonce="`)
	require.True(t, ok)
	nonce, _, _ := strings.Cut(rest, `"`)
	return nonce
}

// begin starts a login at a server.
func begin(t testing.TB, fill byte) (s *Server, nonce string) {
	s = NewServer(TargetClient, fixed(fill), people.Password)
	challenge, done, err := s.Step([]byte{})
	require.NoError(t, err)
	require.False(t, done)
	require.Empty(t, s.User())
	return s, nonceOf(t, challenge)
}

func TestChallenge(t *testing.T) {
	s := NewServer(TargetClient, fixed(7), people.Password)
	challenge, _, err := s.Step(nil)
	require.NoError(t, err)
	nonce := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\a", 32)))
	require.Equal(t, `realm="zk-sasl-md5",nonce="`+nonce+`",charset=utf-8,algorithm=md5-sess`, string(challenge))
}

// TestLoginsOfOthers: what another implementation sends is understood, in the forms that Java, Cyrus and Python use.
func TestLoginsOfOthers(t *testing.T) {
	const uri = "zookeeper/zk-sasl-md5"
	some := "bob"
	tests := []struct {
		name, user, uri, format string
		authzid                 *string
	}{
		{"Java's client", "bob", uri, `charset=utf-8,username="%[1]s",realm="zk-sasl-md5",nonce="%[2]s",nc=00000001,cnonce="c",digest-uri="` + uri + `",maxbuf=65536,response=%[3]s,qop=auth,authzid="bob"`, &some},
		{"without what may be left out", "bob", uri, `username="%[1]s",realm="zk-sasl-md5",nonce="%[2]s",nc=00000001,cnonce="c",digest-uri="` + uri + `",response=%[3]s`, nil},
		{"with blanks and in capitals", "alice", uri, "Username = \"%[1]s\" , \r\n\tREALM=zk-sasl-md5,,nonce=\"%[2]s\",nc=00000001,cnonce=\"c\", digest-uri=\"" + uri + "\",response=\"%[3]s\",qop=\"auth\",charset=UTF-8,", nil},
		{"capitals in the address", "bob", "zookeeper/ZK-SASL-MD5", `username="%[1]s",realm="zk-sasl-md5",nonce="%[2]s",nc=00000001,cnonce="c",digest-uri="zookeeper/ZK-SASL-MD5",response=%[3]s`, nil},
		{"what nobody knows", "bob", uri, `username="%[1]s",realm="zk-sasl-md5",nonce="%[2]s",nc=00000001,cnonce="c",digest-uri="` + uri + `",response=%[3]s,cipher=rc4,x-mine="1"`, nil},
		{"Latin-1 user", "jürgen", uri, `charset=utf-8,username="%[1]s",realm="zk-sasl-md5",nonce="%[2]s",nc=00000001,cnonce="c",digest-uri="` + uri + `",response=%[3]s,qop=auth`, nil},
		{"other user", "ユーザ", uri, `charset=utf-8,username="%[1]s",realm="zk-sasl-md5",nonce="%[2]s",nc=00000001,cnonce="c",digest-uri="` + uri + `",response=%[3]s,qop=auth`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, nonce := begin(t, 1)
			password := people[tt.user]
			response := independent(tt.user, "zk-sasl-md5", password, nonce, "c", tt.uri, "AUTHENTICATE", tt.authzid)
			answer, done, err := s.Step(fmt.Appendf(nil, tt.format, tt.user, nonce, response))
			require.NoError(t, err)
			require.True(t, done)
			require.Equal(t, tt.user, s.User())
			require.Equal(t, "rspauth="+independent(tt.user, "zk-sasl-md5", password, nonce, "c", tt.uri, "", tt.authzid), string(answer))
			_, _, err = s.Step(nil)
			require.ErrorIs(t, err, errOver)
		})
	}
}

// TestUserInLatin1: without a word about the charset a name that is not UTF-8 is ISO 8859-1.
func TestUserInLatin1(t *testing.T) {
	s, nonce := begin(t, 1)
	const uri = "zookeeper/zk-sasl-md5"
	response := independent("jürgen", "zk-sasl-md5", "straße", nonce, "c", uri, "AUTHENTICATE", nil)
	token := fmt.Sprintf("username=\"j\xfcrgen\",realm=\"zk-sasl-md5\",nonce=%q,nc=00000001,cnonce=\"c\",digest-uri=%q,response=%s", nonce, uri, response)
	_, done, err := s.Step([]byte(token))
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, "jürgen", s.User())
}

func TestBothSidesUnderstandEachOther(t *testing.T) {
	for _, target := range []Target{TargetClient, TargetQuorum} {
		for user, password := range people {
			s := NewServer(target, fixed(3), people.Password)
			c := NewClient(target, fixed(4), Login{user, password})
			challenge, _, err := s.Step(nil)
			require.NoError(t, err)
			response, err := c.Respond(challenge)
			require.NoError(t, err)
			answer, done, err := s.Step(response)
			require.NoError(t, err, user)
			require.True(t, done)
			require.Equal(t, user, s.User())
			require.NoError(t, c.Verify(answer))
			require.ErrorIs(t, c.Verify([]byte("rspauth="+strings.Repeat("0", 32))), ErrServerUnproven)
			require.Error(t, c.Verify([]byte("rspauth=")))
		}
	}
}

// TestRefusals: nothing but the right answer to this very challenge is taken, and what is said about it holds no secret.
func TestRefusals(t *testing.T) {
	const good = `charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="NONCE",nc=00000001,cnonce="c",digest-uri="zookeeper/zk-sasl-md5",response=RESPONSE,qop=auth`
	const other = "0123456789abcdef0123456789abcdef"
	tests := []struct{ name, from, to, want string }{
		{"wrong password", "RESPONSE", other, `wrong password of user "bob"`},
		{"capital letters", "RESPONSE", "UPPER", `wrong password of user "bob"`},
		{"too short", "RESPONSE", "0", `wrong password`},
		{"unknown user", `"bob"`, `"hunter2"`, "a user that is not known here"},
		{"nonce of another exchange", "NONCE", "AAAA", "the nonce is not that of the challenge"},
		{"used nonce", "nc=00000001", "nc=00000002", "the nonce was used before"},
		{"another count", "nc=00000001", "nc=1", "the nonce was used before"},
		{"another realm", `realm="zk-sasl-md5"`, `realm="elsewhere"`, `the realm is "elsewhere", not "zk-sasl-md5"`},
		{"no realm", `realm="zk-sasl-md5",`, "", `the realm is ""`},
		{"another server", "zookeeper/zk-sasl-md5", "imap/zk-sasl-md5", `the login is meant for "imap/zk-sasl-md5", not for "zookeeper/zk-sasl-md5"`},
		{"protection", "qop=auth", "qop=auth-conf", "another protection"},
		{"charset", "charset=utf-8", "charset=latin-1", "the charset is not utf-8"},
		{"no user", `username="bob",`, "", "username is there 0 times instead of once"},
		{"two users", `username="bob"`, `username="alice",username="bob"`, "username is there 2 times"},
		{"two realms", `realm="zk-sasl-md5"`, `realm="x",realm="zk-sasl-md5"`, "realm is there 2 times"},
		{"two proofs", "RESPONSE", other + ",response=RESPONSE", "response is there 2 times"},
		{"no cnonce", `cnonce="c"`, `cnonce=""`, "cnonce is empty"},
		{"no proof", "response=RESPONSE,", "", "response is there 0 times"},
		{"authzid of nobody", "qop=auth", `authzid=""`, "authzid is empty"},
		{"maxbuf no number", "qop=auth", `maxbuf=big`, "maxbuf is not a number"},
		{"open quote", `username="bob"`, `username="bob`, "not a list of name=value"},
		{"no value", "qop=auth", "qop", "not a list of name=value"},
		{"no name", "qop=auth", "=auth", "not a list of name=value"},
		{"two values", "qop=auth", "qop=auth auth", "not a list of name=value"},
		{"text behind quotes", `"bob"`, `"bob"by`, "not a list of name=value"},
		{"too long", `"bob"`, `"` + strings.Repeat("b", TokenBytesMax) + `"`, "the limit is 4096"},
		{"too many", "qop=auth", strings.Repeat("x=1,", 100), "not a list of name=value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, nonce := begin(t, 9)
			response := independent("bob", "zk-sasl-md5", "secret", nonce, "c", "zookeeper/zk-sasl-md5", "AUTHENTICATE", nil)
			token := strings.Replace(good, tt.from, tt.to, 1)
			require.NotEqual(t, good, token)
			token = strings.NewReplacer("NONCE", nonce, "RESPONSE", response, "UPPER", strings.ToUpper(response)).Replace(token)
			_, done, err := s.Step([]byte(token))
			require.ErrorContains(t, err, tt.want)
			require.False(t, done)
			require.Empty(t, s.User())
			for _, secret := range []string{"secret", response, "hunter2", nonce} {
				require.NotContains(t, err.Error(), secret)
			}
			token = strings.NewReplacer("NONCE", nonce, "RESPONSE", response).Replace(good)
			_, _, err = s.Step([]byte(token))
			require.ErrorIs(t, err, errOver, "one try is all there is")
		})
	}
	s := NewServer(TargetClient, fixed(0), people.Password)
	challenge, _, err := s.Step([]byte("n,,n=bob"))
	require.NoError(t, err)
	require.Contains(t, string(challenge), "nonce=", "what comes first is not looked at")
	_, _, err = s.Step([]byte("n,,n=bob"))
	require.Error(t, err)
	var over Server
	_, _, err = over.Step(nil)
	require.ErrorIs(t, err, errOver)
}

// TestReplay: what one exchange has proved is worth nothing in the next.
func TestReplay(t *testing.T) {
	c := NewClient(TargetClient, fixed(5), Login{"bob", "secret"})
	first := NewServer(TargetClient, fixed(1), people.Password)
	challenge, _, err := first.Step(nil)
	require.NoError(t, err)
	heard, err := c.Respond(challenge)
	require.NoError(t, err)
	_, done, err := first.Step(heard)
	require.NoError(t, err)
	require.True(t, done)
	second, _ := begin(t, 2)
	_, done, err = second.Step(heard)
	require.ErrorContains(t, err, "nonce")
	require.False(t, done)
}

func TestRefusedChallenges(t *testing.T) {
	tests := []struct{ challenge, want string }{
		{``, "nonce is there 0 times"},
		{`nonce="",algorithm=md5-sess`, "the nonce is empty"},
		{`nonce="n"`, "algorithm is there 0 times"},
		{`nonce="n",algorithm=md5`, "the algorithm is not md5-sess"},
		{`nonce="n",nonce="m",algorithm=md5-sess`, "nonce is there 2 times"},
		{`nonce="n",algorithm=md5-sess,qop="auth-int,auth-conf"`, "does not offer auth"},
		{`nonce`, "not a list"},
	}
	for _, tt := range tests {
		c := NewClient(TargetClient, fixed(0), Login{"bob", "secret"})
		_, err := c.Respond([]byte(tt.challenge))
		require.ErrorContains(t, err, tt.want, tt.challenge)
	}
	c := NewClient(TargetClient, fixed(0), Login{"jürgen", "secret"})
	require.ErrorIs(t, c.Verify([]byte("rspauth="+strings.Repeat("0", 32))), ErrServerUnproven, "before there was a challenge")
	response, err := c.Respond([]byte(`nonce="n",algorithm=md5-sess,qop="auth-int, auth",realm="a",realm="b"`))
	require.NoError(t, err)
	require.Contains(t, string(response), `username="j`+"\xfc"+`rgen",realm="a"`)
	response, err = c.Respond([]byte(`nonce="n",algorithm=md5-sess`))
	require.NoError(t, err)
	require.NotContains(t, string(response), "realm")
}

func TestPrintedFormsHideThePassword(t *testing.T) {
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(format, struct {
			Users Users
			Login Login
		}{people, Login{"bob", "secret"}})
		require.NotContains(t, text, "secret", format)
		require.NotContains(t, text, "wonder", format)
		require.Contains(t, text, `user "bob"`, format)
	}
}

// FuzzServer: whatever is sent, nobody gets in without the password, and the server keeps standing.
func FuzzServer(f *testing.F) {
	f.Add([]byte(`charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="NONCE",nc=00000001,cnonce="c",digest-uri="zookeeper/zk-sasl-md5",response=0123,qop=auth`))
	f.Add([]byte(`username="\`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, token []byte) {
		s, nonce := begin(t, 1)
		answer, done, err := s.Step([]byte(strings.ReplaceAll(string(token), "NONCE", nonce)))
		require.Error(t, err)
		require.False(t, done || answer != nil || s.User() != "")
		require.True(t, utf8.ValidString(err.Error()))
	})
}

// FuzzClient: no challenge brings the client down, and what it answers can be read.
func FuzzClient(f *testing.F) {
	f.Add([]byte(`realm="zk-sasl-md5",nonce="x",charset=utf-8,algorithm=md5-sess`), []byte("rspauth=00"))
	f.Add([]byte(`nonce="\"\\",algorithm=md5-sess,realm=""`), []byte("rspauth"))
	f.Fuzz(func(t *testing.T, challenge, last []byte) {
		c := NewClient(TargetClient, fixed(2), Login{"bob", "secret"})
		response, err := c.Respond(challenge)
		require.Error(t, c.Verify(last))
		if err != nil {
			return
		}
		list, err := parseDirectives(response)
		if err != nil {
			require.Greater(t, len(response), TokenBytesMax)
			return
		}
		d := directives{list: list}
		require.Equal(t, c.proof.nonce, d.once("nonce"))
		require.Equal(t, "bob", d.once("username"))
		require.NoError(t, d.err)
	})
}
