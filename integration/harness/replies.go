//go:build linux

package harness

import (
	"encoding/binary"
	"errors"
)

// ErrShort says that a reply ends before its last field.
var ErrShort = errors.New("a reply that is too short")

// Stat is the part of a node's stat that the judges look at.
type Stat struct {
	Czxid, Mzxid int64
	Version      int32
}

const statBytes = 68

// ParseStat reads the stat that answers a setData.
func ParseStat(b []byte) (Stat, error) {
	if len(b) < statBytes {
		return Stat{}, ErrShort
	}
	return Stat{
		Czxid:   int64(binary.BigEndian.Uint64(b)),
		Mzxid:   int64(binary.BigEndian.Uint64(b[8:])),
		Version: int32(binary.BigEndian.Uint32(b[32:])),
	}, nil
}

// ParseGet reads the answer of a getData. The data is a copy.
func ParseGet(b []byte) (data []byte, s Stat, err error) {
	data, b, err = cutBytes(b)
	if err != nil {
		return nil, s, err
	}
	s, err = ParseStat(b)
	return append([]byte(nil), data...), s, err
}

// MultiResult is the answer to one operation of a multi.
type MultiResult struct {
	Code int32
	Stat Stat // of a setData that succeeded
}

// ParseMulti reads the answer of a multi.
func ParseMulti(b []byte) (results []MultiResult, err error) {
	const header = 9 // bytes: type, done, err
	for len(b) >= header {
		op, done := int32(binary.BigEndian.Uint32(b)), b[4] != 0
		b = b[header:]
		if done {
			return results, nil
		}
		var r MultiResult
		switch op {
		case OpCreate:
			_, b, err = cutBytes(b)
		case OpSetData:
			if r.Stat, err = ParseStat(b); err == nil {
				b = b[statBytes:]
			}
		case OpDelete, OpCheck:
		case -1:
			if len(b) < 4 {
				return nil, ErrShort
			}
			r.Code, b = int32(binary.BigEndian.Uint32(b)), b[4:]
		default:
			return nil, errors.New("a multi's answer of an unknown type")
		}
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return nil, ErrShort
}

// eventPath reads the path of a notification.
func eventPath(b []byte) string {
	const head = 8 // bytes: type and state
	if len(b) < head {
		return ""
	}
	path, _, _ := cutBytes(b[head:])
	return string(path)
}

func cutBytes(b []byte) (v, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, ErrShort
	}
	n := int32(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n < 0 {
		return nil, b, nil
	}
	if int(n) > len(b) {
		return nil, nil, ErrShort
	}
	return b[:n], b[n:], nil
}
