//go:build linux

package harness

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// Op codes, flags and error codes of the client protocol that Raw uses.
const (
	OpCreate  = 1
	OpDelete  = 2
	OpExists  = 3
	OpGetData = 4
	OpSetData = 5
	OpSync    = 9
	OpPing    = 11
	OpCheck   = 13
	OpMulti   = 14
	OpClose   = -11

	FlagEphemeral  = 1
	FlagSequential = 2

	CodeOK         = 0
	CodeNoNode     = -101
	CodeBadVersion = -103
	CodeNodeExists = -110

	xidNotification = -1
	xidPing         = -2
)

// rawFrameMax bounds what a Raw takes from the server in one frame.
const rawFrameMax = 64 << 20

// Raw is a session that speaks frames, so that a test or a load generator decides itself how many requests are
// outstanding. One goroutine may append and flush requests while another reads replies.
type Raw struct {
	SessionID int64
	Password  [16]byte
	TimeoutMs int32 // as granted

	// OnEvent, if set, is told of each notification before the reply behind it is returned. A notification's zxid is that of
	// the transaction that caused it, or -1 from servers before 3.9.
	OnEvent func(path string, zxid int64)

	conn net.Conn
	r    *bufio.Reader
	body []byte
}

// Greeting is what a client says when it connects.
type Greeting struct {
	TimeoutMs int32
	SessionID int64 // 0 asks for a new session
	Password  [16]byte
	ZxidSeen  int64 // a server that is behind refuses the client
}

// DialRaw opens a session; with a session id it asks to go on with that one.
func DialRaw(addr string, timeoutMs int32, sessionID int64, password [16]byte) (*Raw, error) {
	return Greet(addr, Greeting{TimeoutMs: timeoutMs, SessionID: sessionID, Password: password}, 30*time.Second)
}

// Greet connects to a server within the limit. A session that the server does not know comes back with a timeout of 0.
func Greet(addr string, g Greeting, limit time.Duration) (*Raw, error) {
	conn, err := net.DialTimeout("tcp4", addr, limit)
	if err != nil {
		return nil, err
	}
	req := make([]byte, 4, 49)
	req = binary.BigEndian.AppendUint32(req, 0) // protocol version
	req = binary.BigEndian.AppendUint64(req, uint64(g.ZxidSeen))
	req = binary.BigEndian.AppendUint32(req, uint32(g.TimeoutMs))
	req = binary.BigEndian.AppendUint64(req, uint64(g.SessionID))
	req = appendBytes(req, g.Password[:])
	req = append(req, 0) // not read-only
	binary.BigEndian.PutUint32(req, uint32(len(req)-4))
	r := &Raw{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
	_ = conn.SetDeadline(time.Now().Add(limit))
	if _, err := conn.Write(req); err != nil {
		conn.Close()
		return nil, err
	}
	body, err := r.frame()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("handshake with %s: %w", addr, err)
	}
	if len(body) < 36 {
		conn.Close()
		return nil, fmt.Errorf("handshake with %s: a reply of %d bytes", addr, len(body))
	}
	_ = conn.SetDeadline(time.Time{})
	r.TimeoutMs = int32(binary.BigEndian.Uint32(body[4:]))
	r.SessionID = int64(binary.BigEndian.Uint64(body[8:]))
	copy(r.Password[:], body[20:36])
	return r, nil
}

// Write sends requests that were appended to a buffer.
func (r *Raw) Write(frames []byte) error {
	_, err := r.conn.Write(frames)
	return err
}

// Close drops the connection; the session lives on until its timeout.
func (r *Raw) Close() { r.conn.Close() }

// SetReadDeadline bounds the wait for replies.
func (r *Raw) SetReadDeadline(t time.Time) { _ = r.conn.SetReadDeadline(t) }

// Reply is one answer. Body is valid until the next one is read.
type Reply struct {
	Xid  int32
	Zxid int64
	Code int32
	Body []byte
}

// ReadReply reads the next answer; notifications of watches go to OnEvent.
func (r *Raw) ReadReply() (Reply, error) {
	for {
		body, err := r.frame()
		if err != nil {
			return Reply{}, err
		}
		if len(body) < 16 {
			return Reply{}, fmt.Errorf("a reply of %d bytes", len(body))
		}
		reply := Reply{
			Xid:  int32(binary.BigEndian.Uint32(body)),
			Zxid: int64(binary.BigEndian.Uint64(body[4:])),
			Code: int32(binary.BigEndian.Uint32(body[12:])),
			Body: body[16:],
		}
		if reply.Xid != xidNotification {
			return reply, nil
		}
		if r.OnEvent != nil {
			r.OnEvent(eventPath(reply.Body), reply.Zxid)
		}
	}
}

// Call sends one request and reads its answer.
func (r *Raw) Call(frame []byte) (Reply, error) {
	if err := r.Write(frame); err != nil {
		return Reply{}, err
	}
	return r.ReadReply()
}

func (r *Raw) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > rawFrameMax {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	if cap(r.body) < int(n) {
		r.body = make([]byte, n)
	}
	r.body = r.body[:n]
	_, err := io.ReadFull(r.r, r.body)
	return r.body, err
}

// Buffered says whether bytes of another reply have already arrived.
func (r *Raw) Buffered() bool { return r.r.Buffered() > 0 }
