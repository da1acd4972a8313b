package opsrecord

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// Operation codes of the client protocol that the conversation uses.
const (
	opCreate       = 1
	opExists       = 3
	opGetData      = 4
	opSetData      = 5
	opGetChildren  = 8
	opSync         = 9
	opGetChildren2 = 12
	opAuth         = 100
	opAddWatch     = 106
)

// Special values of the client protocol.
const (
	xidAuth           = -4
	flagEphemeral     = 1
	flagSequential    = 2
	anyVersion        = -1
	watchPersistent   = 0
	watchRecursive    = 1
	permAll           = 31
	codeOK            = 0
	codeNoNode        = -101
	codeNoAuth        = -102
	codeNodeExists    = -110
	replyHeaderBytes  = 16
	greetingBytesMin  = 36 // of a server's answer to a connect request
	passwordBytes     = 16
	frameBytesMax     = 1 << 20
	conversationLimit = 60 * time.Second // for the whole of it
)

// session is a client that has one request outstanding at a time, so that the counts of packets are the same in each run.
type session struct {
	conn net.Conn
	in   *bufio.Reader
	id   int64
	xid  int32
}

// open asks a server for a new session.
func open(addr string, timeoutMs int32) (*session, error) {
	conn, err := net.DialTimeout("tcp", addr, conversationLimit)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, in: bufio.NewReader(conn)}
	_ = conn.SetDeadline(time.Now().Add(conversationLimit))
	body := binary.BigEndian.AppendUint32(nil, 0) // protocol version
	body = binary.BigEndian.AppendUint64(body, 0) // last zxid seen
	body = binary.BigEndian.AppendUint32(body, uint32(timeoutMs))
	body = binary.BigEndian.AppendUint64(body, 0) // no session yet
	body = appendBytes(body, make([]byte, passwordBytes))
	body = append(body, 0) // not content with a read-only server
	greeting, err := s.exchange(body)
	if err == nil && len(greeting) < greetingBytesMin {
		err = fmt.Errorf("a greeting of %d bytes", len(greeting))
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("a session at %s: %w", addr, err)
	}
	s.id = int64(binary.BigEndian.Uint64(greeting[8:]))
	return s, nil
}

// call sends a request and returns the code of its answer. Events that come before it are passed over.
func (s *session) call(op int32, body []byte) (code int32, err error) {
	xid := int32(xidAuth)
	if op != opAuth {
		s.xid++
		xid = s.xid
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(xid))
	frame = binary.BigEndian.AppendUint32(frame, uint32(op))
	answer, err := s.exchange(append(frame, body...))
	for {
		if err == nil && len(answer) < replyHeaderBytes {
			err = fmt.Errorf("a reply of %d bytes", len(answer))
		}
		if err != nil {
			return 0, err
		}
		if int32(binary.BigEndian.Uint32(answer)) == xid {
			return int32(binary.BigEndian.Uint32(answer[12:])), nil
		}
		answer, err = s.read()
	}
}

// exchange sends a frame and reads the next one.
func (s *session) exchange(body []byte) ([]byte, error) {
	if _, err := s.conn.Write(appendBytes(nil, body)); err != nil {
		return nil, err
	}
	return s.read()
}

func (s *session) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > frameBytesMax {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(s.in, body)
	return body, err
}

// appendBytes appends bytes with their length before them, as strings, buffers and frames have it.
func appendBytes(b, v []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}

func appendText(b []byte, v string) []byte { return appendBytes(b, []byte(v)) }

func appendInt(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// create is the body of a create request; scheme and id say who may do everything.
func create(path, data, scheme, id string, flags int32) []byte {
	b := appendText(appendText(nil, path), data)
	b = appendInt(appendInt(b, 1), permAll)
	return appendInt(appendText(appendText(b, scheme), id), flags)
}

// read asks for a node, its data or its children.
func read(path string, watch bool) []byte {
	if watch {
		return append(appendText(nil, path), 1)
	}
	return append(appendText(nil, path), 0)
}

func set(path, data string) []byte {
	return appendInt(appendText(appendText(nil, path), data), anyVersion)
}

func addWatch(path string, mode int32) []byte { return appendInt(appendText(nil, path), mode) }

func auth(scheme, credential string) []byte {
	return appendText(appendText(appendInt(nil, 0), scheme), credential)
}
