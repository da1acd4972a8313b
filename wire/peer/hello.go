package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"unicode/utf8"

	"zabra/zab/zxid"
)

// Version is the version of the dialect that this package speaks.
const Version = 1

// Purpose is what a connection is for.
type Purpose uint8

// The purposes.
const (
	PurposeElection Purpose = 1 // notifications, either way
	PurposeQuorum   Purpose = 2 // from a learner to its leader
)

// String returns the name of the purpose.
func (p Purpose) String() string {
	switch p {
	case PurposeElection:
		return "election"
	case PurposeQuorum:
		return "quorum"
	}
	return fmt.Sprintf("purpose %d", uint8(p))
}

// Hello is how a server introduces itself.
type Hello struct {
	// From is who speaks, To who is meant.
	From, To zxid.ServerID
	Purpose  Purpose
	// ConfigVersion is that of the membership that the server goes by.
	ConfigVersion int64
	// Version is that of the dialect. It is filled in by Greet and Answer: what they send is Version.
	Version uint16
}

// RefusedError is returned by Greet when the peer does not want the connection.
type RefusedError struct {
	// Reason is the peer's, in plain text without control characters.
	Reason string
	// Version is that of the peer's dialect.
	Version uint16
}

// Error quotes the peer.
func (e *RefusedError) Error() string { return "peer: refused by the other server: " + e.Reason }

// HelloError says why a greeting was not understood or not believed.
type HelloError struct{ Err error }

// Error gives the reason.
func (e *HelloError) Error() string { return "peer: bad greeting: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *HelloError) Unwrap() error { return e.Err }

// magic begins every greeting. Its first bit is set, its first byte is neither that of a TLS handshake nor that of
// anything Apache's servers send, and they take it for a protocol version that they do not know.
var magic = [8]byte{0x89, 'Z', 'a', 'b', 'r', 'a', '\r', '\n'}

// greetingHeadBytes is what stands before the body: magic, version, kind, length of the body, checksum.
const greetingHeadBytes = 8 + 2 + 1 + 2 + 4

// The kinds of greetings. They, the head, and the body of a refusal are the same in every version.
const (
	greetingHello    = 1
	greetingAccepted = 2
	greetingRefused  = 3
)

// greeting is one greeting of any version, with its checksum verified.
type greeting struct {
	version uint16
	kind    uint8
	body    []byte
}

// helloBody is the body of a hello and of its acceptance.
type helloBody struct {
	From, To      int64
	Purpose       uint64
	ConfigVersion int64
}

const helloShape = "iiui"

// Greet introduces this server on a connection that it has dialled: it sends h and waits for the answer. It returns the
// peer's introduction to this server, a *RefusedError if the peer does not want us, a *HelloError if the answer makes no
// sense or comes from another server than h.To, or the error of the connection. The caller sets a deadline on conn
// before and takes it off afterwards; nothing behind the answer is read.
func Greet(conn net.Conn, h Hello) (peer Hello, err error) {
	if err := writeGreeting(conn, greetingHello, h.body()); err != nil {
		return Hello{}, err
	}
	g, err := readGreeting(conn)
	if err != nil {
		return Hello{}, err
	}
	switch {
	case g.kind == greetingRefused:
		return Hello{}, &RefusedError{Reason: printable(string(g.body)), Version: g.version}
	case g.kind != greetingAccepted:
		return Hello{}, &HelloError{fmt.Errorf("an answer of kind %d", g.kind)}
	case g.version != Version:
		return Hello{}, &HelloError{fmt.Errorf("accepted in version %d of the dialect, not in %d", g.version, Version)}
	}
	peer, err = parseHello(g)
	switch {
	case err != nil:
		return Hello{}, err
	case peer.From != h.To:
		return Hello{}, &HelloError{fmt.Errorf("server %d answered, where server %d was expected", peer.From, h.To)}
	case peer.To != h.From:
		return Hello{}, &HelloError{fmt.Errorf("the answer is for server %d, this is server %d", peer.To, h.From)}
	case peer.Purpose != h.Purpose:
		return Hello{}, &HelloError{fmt.Errorf("the answer is for the %v, not for the %v", peer.Purpose, h.Purpose)}
	}
	return peer, nil
}

// Answer reads the introduction of a server that has dialled this one and answers it. own is this server's: its To is
// not used. A peer that speaks another version of the dialect, means another server, comes for another purpose, calls
// itself by this server's id, or is refused by check is told so, and Answer returns a *HelloError with the same reason.
// What is not a greeting at all is not answered. check may be nil. The caller sets a deadline on conn before, takes it
// off afterwards, and closes the connection after an error; nothing behind the hello is read.
func Answer(conn net.Conn, own Hello, check func(Hello) error) (peer Hello, err error) {
	g, err := readGreeting(conn)
	if err != nil {
		return Hello{}, err
	}
	peer, err = judge(g, own, check)
	if err != nil {
		// Whether the refusal arrives is the peer's concern; the reason for it is what the caller has to know.
		_ = writeGreeting(conn, greetingRefused, []byte(cut(err.Error(), reasonBytesMax)))
		return Hello{}, &HelloError{err}
	}
	own.To = peer.From
	if err := writeGreeting(conn, greetingAccepted, own.body()); err != nil {
		return Hello{}, err
	}
	return peer, nil
}

// judge decides about a hello. The error is the reason of the refusal.
func judge(g greeting, own Hello, check func(Hello) error) (Hello, error) {
	if g.version != Version {
		return Hello{}, fmt.Errorf("version %d of the dialect is not known to server %d, which speaks version %d", g.version, own.From, Version)
	}
	if g.kind != greetingHello {
		return Hello{}, fmt.Errorf("a greeting of kind %d where a hello was expected", g.kind)
	}
	peer, err := parseHello(g)
	var he *HelloError
	switch {
	case errors.As(err, &he):
		return Hello{}, he.Err
	case peer.To != own.From:
		return Hello{}, fmt.Errorf("server %d is meant, this is server %d", peer.To, own.From)
	case peer.From == own.From:
		return Hello{}, fmt.Errorf("this is server %d itself: two servers have the same id", own.From)
	case peer.Purpose != own.Purpose:
		return Hello{}, fmt.Errorf("this is the port for the %v, not for the %v", own.Purpose, peer.Purpose)
	}
	if check != nil {
		if err := check(peer); err != nil {
			return Hello{}, err
		}
	}
	return peer, nil
}

func (h Hello) body() []byte {
	var e Encoder
	b, err := e.appendBody(nil, &helloBody{int64(h.From), int64(h.To), uint64(h.Purpose), h.ConfigVersion}, helloBodyBytesMax)
	if err != nil {
		panic("peer: a hello cannot be encoded: " + err.Error())
	}
	return b[headerBytes:]
}

func parseHello(g greeting) (Hello, error) {
	if err := checkShape(g.body, helloShape); err != nil {
		return Hello{}, &HelloError{err}
	}
	var b helloBody
	var d decoder
	if err := d.decode(g.body, &b); err != nil {
		return Hello{}, &HelloError{err}
	}
	if b.Purpose != uint64(PurposeElection) && b.Purpose != uint64(PurposeQuorum) {
		return Hello{}, &HelloError{fmt.Errorf("purpose %d is not known", b.Purpose)}
	}
	if b.ConfigVersion < 0 {
		return Hello{}, &HelloError{fmt.Errorf("configuration version %d is negative", b.ConfigVersion)}
	}
	return Hello{zxid.ServerID(b.From), zxid.ServerID(b.To), Purpose(b.Purpose), b.ConfigVersion, g.version}, nil
}

func writeGreeting(w io.Writer, kind uint8, body []byte) error {
	b := make([]byte, 0, greetingHeadBytes+len(body))
	b = append(b, magic[:]...)
	b = binary.BigEndian.AppendUint16(b, Version)
	b = append(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	b = binary.BigEndian.AppendUint32(b, greetingSum(b, body))
	_, err := w.Write(append(b, body...))
	return err
}

// greetingSum is CRC32C over everything but itself.
func greetingSum(head, body []byte) uint32 {
	return crc32.Update(crc32.Update(0, crcTable, head[:greetingHeadBytes-4]), crcTable, body)
}

// readGreeting reads one greeting of any version.
func readGreeting(r io.Reader) (greeting, error) {
	head := make([]byte, greetingHeadBytes)
	if _, err := io.ReadFull(r, head[:len(magic)]); err != nil {
		return greeting{}, err
	}
	if [8]byte(head) != magic {
		return greeting{}, &HelloError{errors.New(stranger(head[:len(magic)]))}
	}
	if _, err := io.ReadFull(r, head[len(magic):]); err != nil {
		return greeting{}, noEOF(err)
	}
	length := int(binary.BigEndian.Uint16(head[11:]))
	if length > helloBodyBytesMax {
		return greeting{}, &HelloError{fmt.Errorf("%d bytes are longer than %d", length, helloBodyBytesMax)}
	}
	g := greeting{version: binary.BigEndian.Uint16(head[8:]), kind: head[10], body: make([]byte, length)}
	if _, err := io.ReadFull(r, g.body); err != nil {
		return greeting{}, noEOF(err)
	}
	if binary.BigEndian.Uint32(head[13:]) != greetingSum(head, g.body) {
		return greeting{}, &HelloError{errors.New("the checksum does not match")}
	}
	return g, nil
}

// stranger says who may have sent the first bytes of a connection, which are not those of a greeting.
func stranger(head []byte) string {
	switch v := int64(binary.BigEndian.Uint64(head)); {
	case v == -65536, v == -65535:
		return "an Apache ZooKeeper server called, whose protocol is not spoken here"
	case head[0] == 0 && (head[3] == 11 || head[3] == 16):
		return "a learner of Apache ZooKeeper called, whose protocol is not spoken here"
	case v == saslMark:
		return "a server wants to log in, which is not spoken here; is quorum.auth.enableSasl true on this server?"
	case head[0] == 0x16 && head[1] == 3:
		return "a TLS handshake, which is not spoken here"
	}
	return fmt.Sprintf("the first bytes are %x, not those of a server of this kind", head)
}

// printable drops what could disturb a log.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
	return cut(s, reasonBytesMax)
}

// cut shortens s to at most n bytes, between two characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
