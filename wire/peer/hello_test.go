package peer

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pipe returns both ends of a connection that fail instead of hanging.
func pipe(t *testing.T) (dialled, accepted net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	for _, c := range []net.Conn{a, b} {
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// greet lets two servers meet.
func greet(t *testing.T, dialler, acceptor Hello, check func(Hello) error) (d, a Hello, derr, aerr error) {
	t.Helper()
	dc, ac := pipe(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a, aerr = Answer(ac, acceptor, check)
	}()
	d, derr = Greet(dc, dialler)
	<-done
	return d, a, derr, aerr
}

func TestGreeting(t *testing.T) {
	var checked Hello
	d, a, derr, aerr := greet(t, Hello{From: 3, To: -1, Purpose: PurposeQuorum, ConfigVersion: 7},
		Hello{From: -1, Purpose: PurposeQuorum, ConfigVersion: 9}, func(h Hello) error { checked = h; return nil })
	require.NoError(t, derr)
	require.NoError(t, aerr)
	require.Equal(t, Hello{From: -1, To: 3, Purpose: PurposeQuorum, ConfigVersion: 9, Version: Version}, d)
	require.Equal(t, Hello{From: 3, To: -1, Purpose: PurposeQuorum, ConfigVersion: 7, Version: Version}, a)
	require.Equal(t, a, checked)
}

func TestRefusals(t *testing.T) {
	own := Hello{From: 1, Purpose: PurposeElection}
	tests := []struct {
		name   string
		hello  Hello
		check  func(Hello) error
		reason string
	}{
		{"another server", Hello{From: 2, To: 3, Purpose: PurposeElection}, nil, "server 3 is meant, this is server 1"},
		{"itself", Hello{From: 1, To: 1, Purpose: PurposeElection}, nil, "this is server 1 itself: two servers have the same id"},
		{"another port", Hello{From: 2, To: 1, Purpose: PurposeQuorum}, nil, "this is the port for the election, not for the quorum"},
		{"no purpose", Hello{From: 2, To: 1}, nil, "purpose 0 is not known"},
		{"version of the membership", Hello{From: 2, To: 1, Purpose: PurposeElection, ConfigVersion: -1}, nil, "configuration version -1 is negative"},
		{"by the caller", Hello{From: 2, To: 1, Purpose: PurposeElection}, func(Hello) error { return errors.New("not in\nthe list") }, "not in?the list"},
		{"long reason", Hello{From: 2, To: 1, Purpose: PurposeElection}, func(Hello) error { return errors.New(strings.Repeat("ä", 400)) }, strings.Repeat("ä", 256)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, derr, aerr := greet(t, tt.hello, own, tt.check)
			var refused *RefusedError
			require.ErrorAs(t, derr, &refused)
			require.Equal(t, RefusedError{Reason: tt.reason, Version: Version}, *refused)
			require.ErrorContains(t, derr, "refused by the other server: ")
			var he *HelloError
			require.ErrorAs(t, aerr, &he)
		})
	}
}

// script is a connection whose peer says what it likes.
type script struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (s *script) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *script) Write(b []byte) (int, error) { return s.out.Write(b) }

// greetingOf makes a greeting of any version.
func greetingOf(version uint16, kind uint8, body []byte) []byte {
	var b bytes.Buffer
	_ = writeGreeting(&b, kind, body)
	raw := b.Bytes()
	raw[8], raw[9] = byte(version>>8), byte(version)
	sum := greetingSum(raw, body)
	copy(raw[13:], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return raw
}

func TestOtherVersions(t *testing.T) {
	// A hello of the future, with a body that nobody here understands, is refused politely.
	s := &script{in: bytes.NewReader(greetingOf(9, greetingHello, []byte{0xc1, 1, 2, 3}))}
	_, err := Answer(s, Hello{From: 1, Purpose: PurposeElection}, nil)
	const reason = "version 9 of the dialect is not known to server 1, which speaks version 1"
	require.EqualError(t, err, "peer: bad greeting: "+reason)
	g, err := readGreeting(&s.out)
	require.NoError(t, err)
	require.Equal(t, greeting{Version, greetingRefused, []byte(reason)}, g)
	require.Zero(t, s.out.Len())

	// A refusal of the future can be read.
	h := Hello{From: 1, To: 2, Purpose: PurposeElection}
	_, err = Greet(&script{in: bytes.NewReader(greetingOf(9, greetingRefused, []byte("upgrade")))}, h)
	require.Equal(t, &RefusedError{Reason: "upgrade", Version: 9}, err)

	_, err = Greet(&script{in: bytes.NewReader(greetingOf(9, greetingAccepted, h.body()))}, h)
	require.EqualError(t, err, "peer: bad greeting: accepted in version 9 of the dialect, not in 1")
}

func TestBadAnswers(t *testing.T) {
	h := Hello{From: 1, To: 2, Purpose: PurposeElection}
	answer := func(a Hello) []byte { return greetingOf(Version, greetingAccepted, a.body()) }
	tests := []struct {
		name   string
		answer []byte
		want   string
	}{
		{"another server", answer(Hello{From: 3, To: 1, Purpose: PurposeElection}), "server 3 answered, where server 2 was expected"},
		{"for another server", answer(Hello{From: 2, To: 3, Purpose: PurposeElection}), "the answer is for server 3, this is server 1"},
		{"for another purpose", answer(Hello{From: 2, To: 1, Purpose: PurposeQuorum}), "the answer is for the quorum, not for the election"},
		{"a hello", greetingOf(Version, greetingHello, h.body()), "an answer of kind 1"},
		{"long form", greetingOf(Version, greetingAccepted, []byte{0x94, 2, 1, 0xcc, 1, 0}), "element 3: not in its shortest form"},
		{"an echo of nothing known", []byte("HTTP/1.1 400 Bad Request"), "the first bytes are 485454502f312e31, not those of a server of this kind"},
	}
	for _, tt := range tests {
		_, err := Greet(&script{in: bytes.NewReader(tt.answer)}, h)
		var he *HelloError
		require.ErrorAs(t, err, &he, tt.name)
		require.ErrorContains(t, err, tt.want)
	}
}

func TestStrangersAreNotAnswered(t *testing.T) {
	for first, want := range map[string]string{
		"\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00": "an Apache ZooKeeper server called, whose protocol is not spoken here",
		"\xff\xff\xff\xff\xff\xff\x00\x01\x00\x00": "an Apache ZooKeeper server called, whose protocol is not spoken here",
		"\x00\x00\x00\x0b\x00\x00\x00\x01\x00\x00": "a learner of Apache ZooKeeper called, whose protocol is not spoken here",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03": "a TLS handshake, which is not spoken here",
		"GET / HTTP/1.1\r\n":                       "the first bytes are 474554202f204854, not those of a server of this kind",
	} {
		s := &script{in: strings.NewReader(first)}
		_, err := Answer(s, Hello{From: 1, Purpose: PurposeElection}, nil)
		require.EqualError(t, err, "peer: bad greeting: "+want)
		require.Zero(t, s.out.Len())
	}
}

func TestDamagedHello(t *testing.T) {
	whole := greetingOf(Version, greetingHello, Hello{From: 2, To: 1, Purpose: PurposeElection, ConfigVersion: 1 << 40}.body())
	own := Hello{From: 1, Purpose: PurposeElection}
	for n := range whole {
		_, err := Answer(&script{in: bytes.NewReader(whole[:n])}, own, nil)
		require.Error(t, err, "cut at %d", n)
	}
	for i := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		s := &script{in: bytes.NewReader(b)}
		_, err := Answer(s, own, nil)
		require.Error(t, err, "bit %d flipped", i)
		require.Zero(t, s.out.Len(), "nothing true is known of the sender")
	}
	_, err := Answer(&script{in: bytes.NewReader(append(bytes.Clone(whole), "behind"...))}, own, nil)
	require.NoError(t, err)
	long := greetingOf(Version, greetingHello, make([]byte, helloBodyBytesMax+1))
	_, err = Answer(&script{in: bytes.NewReader(long)}, own, nil)
	require.ErrorContains(t, err, "1025 bytes are longer than 1024")
}

// TestNothingBehindIsRead: the first frame belongs to the Reader.
func TestNothingBehindIsRead(t *testing.T) {
	h := Hello{From: 2, To: 1, Purpose: PurposeQuorum}
	in := bytes.NewReader(append(greetingOf(Version, greetingHello, h.body()), frame(KindPing, 0x91, 5)...))
	_, err := Answer(&script{in: in}, Hello{From: 1, Purpose: PurposeQuorum}, nil)
	require.NoError(t, err)
	f, err := NewReader(in, PurposeQuorum).Next()
	require.NoError(t, err)
	require.EqualValues(t, 5, f.Message.ID)
}

func TestGoldenHello(t *testing.T) {
	s := &script{in: bytes.NewReader(greetingOf(Version, greetingHello, Hello{From: 3, To: 1, Purpose: PurposeQuorum, ConfigVersion: 0x100000004}.body()))}
	_, err := Answer(s, Hello{From: 1, Purpose: PurposeQuorum, ConfigVersion: 5}, nil)
	require.NoError(t, err)
	golden(t, "hello-accepted", s.out.Bytes())

	s = &script{in: bytes.NewReader(greetingOf(Version, greetingRefused, []byte("no")))}
	_, err = Greet(s, Hello{From: 3, To: 1, Purpose: PurposeQuorum, ConfigVersion: 0x100000004})
	require.Error(t, err)
	golden(t, "hello", s.out.Bytes())

	s = &script{in: bytes.NewReader(greetingOf(Version, greetingHello, Hello{From: 3, To: 2, Purpose: PurposeQuorum}.body()))}
	_, err = Answer(s, Hello{From: 1, Purpose: PurposeQuorum}, nil)
	require.Error(t, err)
	golden(t, "hello-refused", s.out.Bytes())
}

func TestTrusted(t *testing.T) {
	a, b := pipe(t)
	var auth Authenticator = Trusted{}
	conn, err := auth.Client(a)
	require.NoError(t, err)
	require.Same(t, a, conn)
	conn, err = auth.Server(b)
	require.NoError(t, err)
	require.Same(t, b, conn)
}
