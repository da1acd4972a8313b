package server

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"zabra/internal/certs"
	"zabra/server/replica"
	"zabra/wire"
)

// tlsPolicy says whether the clients of a port speak TLS.
type tlsPolicy uint8

const (
	tlsNever  tlsPolicy = iota
	tlsEither           // the first byte tells
	tlsAlways
)

// tlsRecordHandshake is the first byte of a connection that speaks TLS. No client of the plain protocol begins with it: its first
// bytes are the length of a frame that would be far above any limit, or letters.
const tlsRecordHandshake = 0x16

// secured is the TLS of a connection.
//
// TLS and socket are apart: the TLS library writes to memory, from where the bytes go the way of all output, without waiting where
// nobody may wait, and at the client's pace otherwise. So encrypted connections differ from plain ones in two places only: where
// bytes are read, and where output is taken.
type secured struct {
	tls  *tls.Conn
	sink *sink
	ids  []wire.ID // those of the client's certificate

	// What was read and is not taken in yet; the reader's. A connection that is idle holds no other buffer.
	buf  [securedReadBytes]byte
	r, w int

	// mu is held while output is encrypted.
	mu sync.Mutex
	// onTheWay is set from the moment at which encrypted output is handed to the writer until it is written. In between nothing
	// else may go out.
	onTheWay bool
}

// sink is the socket as the TLS library sees it.
type sink struct {
	net.Conn
	mu sync.Mutex
	// collects is set when the handshake is done: what is written stays here.
	collects bool
	sealed   []byte
}

// Write implements [net.Conn].
func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.collects {
		return s.Conn.Write(b)
	}
	s.sealed = append(s.sealed, b...)
	return len(b), nil
}

// SetWriteDeadline implements [net.Conn]. The deadlines of the socket are the connection's affair.
func (s *sink) SetWriteDeadline(time.Time) error { return nil }

func (s *sink) collect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collects = true
}

// take returns what was collected.
func (s *sink) take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.sealed
	s.sealed = nil
	return b
}

func (s *sink) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sealed)
}

// seal encrypts output, each frame in a record of its own. ZooKeeper's server does so by nature, and the C client depends on it: it
// waits for the socket to become readable, which a frame behind another in the same record does not make happen. seal does not
// wait. The caller holds the writer, and calls sent when everything is written.
func (t *secured) seal(out []byte) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	for len(out) > 0 && err == nil {
		n := firstFrame(out)
		_, err = t.tls.Write(out[:n])
		out = out[n:]
	}
	sealed := t.sink.take()
	t.onTheWay = len(sealed) > 0
	return sealed, err
}

// firstFrame returns how much of an outbox its first frame is: an outbox holds whole frames. What is none, such as the text of a
// four-letter word, goes as one.
func firstFrame(out []byte) int {
	if len(out) < 4 {
		return len(out)
	}
	return int(min(uint64(len(out)), 4+uint64(binary.BigEndian.Uint32(out))))
}

func (t *secured) sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onTheWay = false
}

// sayGoodbye tells the client in an orderly way that nothing follows, if the socket takes that at once. Behind half a record it
// would be noise.
func (t *secured) sayGoodbye(raw syscall.RawConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.onTheWay || t.tls.CloseWrite() != nil {
		return
	}
	_, _ = tryWrite(raw, t.sink.take())
}

// unasked is how much the library has written by itself since the last output: answers to a client that wants new keys.
func (t *secured) unasked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sink.len()
}

var errManyKeys = errors.New("the client asks for new keys again and again")

// fill is conn.fill for an encrypted connection.
func (t *secured) fill(c *conn) error {
	if t.r == t.w {
		c.in.park()
		n, err := t.tls.Read(t.buf[:])
		if err != nil && n == 0 {
			return err
		}
		if t.unasked() > unaskedBytesMax {
			return errManyKeys
		}
		t.r, t.w = 0, n
		c.s.meter.bytesIn.Add(int64(n))
	}
	n := copy(c.in.space(), t.buf[t.r:t.w])
	c.in.got(n)
	t.r += n
	return nil
}

// secure makes the connection an encrypted one if that is what its port and its client want. It is false if it is not to be served.
func (c *conn) secure() bool {
	if c.policy == tlsNever {
		c.countPlain()
		return true
	}
	if c.policy == tlsEither {
		encrypted, err := c.detect()
		if err != nil {
			return false
		}
		if !encrypted {
			c.countPlain()
			return true
		}
	}
	return c.handshake()
}

// detect tells whether the client speaks TLS. One that says nothing for a while does not: it is the server who would have to begin.
func (c *conn) detect() (encrypted bool, err error) {
	c.deadline(time.Now().Add(time.Duration(c.s.cfg.Security.Client.DetectionTimeoutMs) * time.Millisecond))
	first, err := peekFirst(c.raw)
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.isDraining() && !c.out.isOver() {
		return false, nil
	}
	return first == tlsRecordHandshake, err
}

// peekFirst waits for the first byte and leaves it where it is.
func peekFirst(raw syscall.RawConn) (first byte, err error) {
	var one [1]byte
	n, peekErr := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, _, peekErr = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
			if !errors.Is(peekErr, syscall.EINTR) {
				return !errors.Is(peekErr, syscall.EAGAIN)
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case peekErr != nil:
		return 0, os.NewSyscallError("recvfrom", peekErr)
	case n == 0:
		return 0, io.EOF
	}
	return one[0], nil
}

// countPlain counts a client that has shown no certificate, where it could have.
func (c *conn) countPlain() {
	if c.s.tls.clients == nil {
		return
	}
	if c.remote.Addr().IsLoopback() {
		c.s.meter.nonMTLSLocal.Add(1)
	} else {
		c.s.meter.nonMTLSRemote.Add(1)
	}
}

// handshake agrees with the client on TLS, and learns who it is.
func (c *conn) handshake() bool {
	s := c.s
	if s.cfg.Security.EarlyDrop && !s.isServing() {
		s.meter.closedNotServing.Add(1)
		return false
	}
	under := s.meter.outstandingTLSHandshakes.Add(1)
	defer s.meter.outstandingTLSHandshakes.Add(-1)
	if limit := s.cfg.Security.HandshakesMax; limit > 0 && under > int64(limit) {
		s.meter.tlsHandshakeExceeded.Add(1)
		s.refusals.note(s.clock.now().MonoMs, refusal{kind: "handshakes", remote: c.remote, limit: limit,
			why: "too many TLS handshakes at once, the connection is closed; raise netty.server.outstandingHandshake.limit if that was no attack"})
		return false
	}
	deadline := time.Now().Add(tlsHandshakeTime)
	c.deadline(deadline)
	_ = c.tcp.SetWriteDeadline(deadline)
	socket := &sink{Conn: c.tcp}
	t := &secured{tls: tls.Server(socket, s.tls.config), sink: socket}
	err := t.tls.Handshake()
	if err == nil {
		err = t.identify(c)
	}
	if err != nil {
		c.handshakeFailed(err)
		return false
	}
	c.deadline(time.Time{})
	_ = c.tcp.SetWriteDeadline(time.Time{})
	socket.collect()
	c.tls.Store(t)
	return true
}

// identify takes the client's identity from its certificate.
func (t *secured) identify(c *conn) error {
	state := t.tls.ConnectionState()
	if len(state.PeerCertificates) == 0 {
		c.countPlain()
		return nil
	}
	subject, err := certs.Subject(state.PeerCertificates[0])
	if err == nil && len(subject) > subjectBytesMax {
		err = errors.New("the subject of the client's certificate is too long")
	}
	if err == nil {
		t.ids = c.s.tls.x509.IDs(subject)
	}
	return err
}

// handshakeFailed tells of a client that was not let in. One that went away without a word is a probe's.
func (c *conn) handshakeFailed(err error) {
	s := c.s
	if errors.Is(err, io.EOF) || c.isDraining() {
		s.log.Debug("connection ended in the TLS handshake", zap.Stringer("remote", c.remote), zap.Error(err))
		return
	}
	s.meter.unsuccessfulHandshake.Add(1)
	s.meter.authFailed.Add(1)
	why := "Unsuccessful TLS handshake, the connection is closed: " + tlsFault(err).Error()
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		why += "; plain clients belong on clientPort"
	}
	s.refusals.note(s.clock.now().MonoMs, refusal{kind: "TLS handshake", remote: c.remote, noise: true, why: why})
	c.farewell()
}

// farewell ends a connection that was not let in. What the client still sends is read and dropped, or the system would reset the
// connection, and the alert that says why would be lost.
func (c *conn) farewell() {
	_ = c.tcp.CloseWrite()
	_ = c.tcp.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.tcp, lingerBytesMax)
}

// takeOutput is what the replica has for the client, in the form in which it goes over the wire. The caller holds the writer.
func (c *conn) takeOutput() (out []byte, fin bool, err error) {
	out, fin = c.rc.Load().Output(nil)
	t := c.tls.Load()
	if t == nil || len(out) == 0 {
		return out, fin, nil
	}
	sealed, err := t.seal(out)
	replica.ReleaseOutput(out)
	return sealed, fin, err
}

// writeSealed is writeRound for an encrypted connection, from where there is output.
func (c *conn) writeSealed(t *secured, out []byte, fin bool) (rest []byte, ended, held bool) {
	sealed, err := t.seal(out)
	replica.ReleaseOutput(out)
	n := 0
	if err == nil {
		n, err = tryWrite(c.raw, sealed)
	}
	switch {
	case err != nil:
		c.abandon()
		return nil, false, false
	case n < len(sealed):
		return sealed[n:], fin, true
	}
	t.sent()
	return nil, fin, !c.roundEnded(fin)
}

// writeAnswer writes the answer to a four-letter word. It waits for the socket.
func (c *conn) writeAnswer(answer []byte) (err error) {
	t := c.tls.Load()
	if t != nil {
		answer, err = t.seal(answer)
	}
	if err == nil {
		_, err = c.tcp.Write(answer)
	}
	if err == nil && t != nil {
		t.sent()
	}
	return err
}
