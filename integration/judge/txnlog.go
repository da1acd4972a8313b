//go:build linux

package judge

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Transaction types in the log. Creates of every kind that is read here stand as TxnCreate in a Change.
const (
	txnCloseSession = -11
	txnError        = -1
	TxnCreate       = 1
	TxnDelete       = 2
	TxnSet          = 5
	TxnCheck        = 13
	txnMulti        = 14
	txnCreate2      = 15
)

const (
	logMagic       = 0x5A4B4C47
	logFileHeader  = 16 // bytes
	logRecordHead  = 12 // bytes: checksum and length
	logTxnHeader   = 32 // bytes: session, cxid, zxid, time, type
	logRecordLimit = 64 << 20
)

// Txn is one transaction of a log file.
type Txn struct {
	Session int64
	Cxid    int32
	Zxid    int64
	Changes []Change
	// EndsSession says that Session was closed or has expired; its ephemeral nodes go with it.
	EndsSession bool
	// Code is what the write answers: 0, or the error that was logged in its place. A multi's is in its changes.
	Code int32
	// identity is what all servers have to agree on: the whole payload, but for a multi that failed. The steps of one that were
	// not carried out have no meaning any more, and the reference server's leader and learners log them differently.
	identity string
}

// Change is one step of a transaction.
type Change struct {
	Type    int32 // a transaction type; txnError when this step failed
	Path    string
	Value   string
	Version int32 // the new one of a set
	Code    int32 // of txnError
}

// ReadLogs reads all log files below a data directory, in order. A file ends at zeros or at a record that is not whole, as it
// does for the reference server.
func ReadLogs(dataDir string) ([]Txn, error) {
	files, err := filepath.Glob(filepath.Join(dataDir, "version-2", "log.*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no log files in %s (%w)", dataDir, err)
	}
	first := map[string]uint64{}
	for _, f := range files {
		if first[f], err = strconv.ParseUint(strings.TrimPrefix(filepath.Base(f), "log."), 16, 64); err != nil {
			return nil, err
		}
	}
	sort.Slice(files, func(i, j int) bool { return first[files[i]] < first[files[j]] })
	var all []Txn
	for _, f := range files {
		txns, err := readLog(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		all = append(all, txns...)
	}
	return all, nil
}

func readLog(file string) (txns []Txn, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) < logFileHeader {
		return nil, nil
	}
	if binary.BigEndian.Uint32(b) != logMagic {
		return nil, fmt.Errorf("not a log file")
	}
	for b = b[logFileHeader:]; len(b) > logRecordHead; {
		sum, n := binary.BigEndian.Uint64(b), int(binary.BigEndian.Uint32(b[8:]))
		b = b[logRecordHead:]
		if n == 0 || n > logRecordLimit || n >= len(b) || b[n] != 'B' || sum != uint64(adler32.Checksum(b[:n])) {
			break
		}
		txn, err := parseTxn(b[:n])
		if err != nil {
			return nil, err
		}
		txns = append(txns, txn)
		b = b[n+1:]
	}
	return txns, nil
}

func parseTxn(b []byte) (Txn, error) {
	if len(b) < logTxnHeader {
		return Txn{}, fmt.Errorf("a transaction of %d bytes", len(b))
	}
	t := Txn{
		Session:  int64(binary.BigEndian.Uint64(b)),
		Cxid:     int32(binary.BigEndian.Uint32(b[8:])),
		Zxid:     int64(binary.BigEndian.Uint64(b[12:])),
		identity: string(b),
	}
	kind := int32(binary.BigEndian.Uint32(b[28:]))
	p := parser{b: b[logTxnHeader:]}
	switch kind {
	case txnMulti:
		var failed bool
		if t.Changes, failed = p.changes(); failed {
			t.identity = fmt.Sprintf("%q %+v %q", b[:logTxnHeader], t.Changes, p.b)
		}
	case txnError:
		t.Code = p.int()
	case txnCloseSession:
		t.EndsSession = true
	default:
		if c := p.change(kind); c.Path != "" {
			t.Changes = []Change{c}
		}
	}
	if p.failed {
		return t, fmt.Errorf("transaction %#x of type %d is too short", uint64(t.Zxid), kind)
	}
	return t, nil
}

// parser reads fields and notes when there are none left.
type parser struct {
	b      []byte
	failed bool
}

func (p *parser) int() int32 {
	if len(p.b) < 4 {
		p.failed = true
		return 0
	}
	v := int32(binary.BigEndian.Uint32(p.b))
	p.b = p.b[4:]
	return v
}

func (p *parser) text() string {
	n := int(p.int())
	if n < 0 {
		return ""
	}
	if n > len(p.b) {
		p.failed = true
		return ""
	}
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}

// changes reads the steps of a multi. When it failed, only their codes are left.
func (p *parser) changes() (all []Change, multiFailed bool) {
	const errorBytes = 4 // the body of a step that failed; the longer body of another one may stand behind the same type
	for range p.int() {
		kind := p.int()
		body := p.text()
		sub := parser{b: []byte(body)}
		switch {
		case kind == txnError && len(body) == errorBytes:
			all = append(all, sub.change(kind))
			multiFailed = multiFailed || all[len(all)-1].Code != 0
		case kind == txnError:
			all = append(all, Change{Type: txnError})
		default:
			all = append(all, sub.change(kind))
		}
		p.failed = p.failed || sub.failed
	}
	if multiFailed {
		for i, c := range all {
			all[i] = Change{Type: txnError, Code: c.Code}
		}
	}
	return all, multiFailed
}

// change reads a step; types that change no node of ours give an empty one.
func (p *parser) change(kind int32) Change {
	c := Change{Type: kind}
	switch kind {
	case TxnCreate, txnCreate2:
		c.Type, c.Path, c.Value = TxnCreate, p.text(), p.text()
	case TxnSet:
		c.Path, c.Value, c.Version = p.text(), p.text(), p.int()
	case TxnDelete:
		c.Path = p.text()
	case TxnCheck:
		c.Path = p.text()
	case txnError:
		c.Code = p.int()
	}
	return c
}
