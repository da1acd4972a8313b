package server_test

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"path"
	"slices"
	"strings"
	"sync"

	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// ledger knows what the transaction log was given and how much of it is certain to survive a power cut. It learns both by
// watching the calls on the file system from outside, so it owes nothing to what the server believes.
type ledger struct {
	vfs.FS
	mu struct {
		sync.Mutex
		// payloads are the transactions written, number 1 first; they include those of a write that failed.
		payloads [][]byte
		// durable is the newest transaction that a sync covers which was begun after the write was over.
		durable zxid.Zxid
		log     *ledgerLog // created last
		fault   error      // what no server may do
	}
}

// ledgerLog is the log file that is being written.
type ledgerLog struct {
	name            string
	written, synced zxid.Zxid
	renamed, linked bool // it has its name; the name is durable
}

func newLedger(inner vfs.FS) *ledger { return &ledger{FS: inner} }

// restart tells the ledger that a server found everything up to last, made it durable, and goes on from there.
func (l *ledger) restart(last zxid.Zxid) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.payloads = slices.Clone(l.mu.payloads[:last])
	l.mu.durable, l.mu.log = last, nil
}

// resume tells the ledger what was written and durable before the disk was lost.
func (l *ledger) resume(history [][]byte, durable zxid.Zxid) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.payloads, l.mu.durable = history, durable
}

// durable returns how far the log is durable.
func (l *ledger) durable() zxid.Zxid {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.durable
}

// history returns all transactions written, number 1 first.
func (l *ledger) history() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.payloads[:len(l.mu.payloads):len(l.mu.payloads)]
}

// err returns what the server has done that it must not.
func (l *ledger) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.fault
}

// Create implements vfs.FS.
func (l *ledger) Create(name string) (vfs.File, error) {
	f, err := l.FS.Create(name)
	if err != nil || !strings.Contains(path.Base(name), "log.") {
		return f, err
	}
	log := &ledgerLog{name: name}
	l.mu.Lock()
	l.mu.log = log
	l.mu.Unlock()
	return &ledgerFile{File: f, l: l, log: log}, nil
}

// Rename implements vfs.FS.
func (l *ledger) Rename(oldName, newName string) error {
	err := l.FS.Rename(oldName, newName)
	l.mu.Lock()
	defer l.mu.Unlock()
	if log := l.mu.log; err == nil && log != nil && log.name == oldName {
		log.name, log.renamed = newName, true
	}
	return err
}

// SyncDir implements vfs.FS.
func (l *ledger) SyncDir(dir string) error {
	l.mu.Lock()
	log := l.mu.log
	linked := log != nil && log.renamed && path.Dir(log.name) == path.Clean(dir)
	l.mu.Unlock()
	err := l.FS.SyncDir(dir)
	if err == nil && linked {
		l.mu.Lock()
		defer l.mu.Unlock()
		log.linked = true
		l.coverLocked(log)
	}
	return err
}

func (l *ledger) coverLocked(log *ledgerLog) {
	if log.linked {
		l.mu.durable = max(l.mu.durable, log.synced)
	}
}

// write notes the transactions that are about to be written, and returns the last of them, 0 if there is none.
func (l *ledger) write(b []byte, off int64) (last zxid.Zxid) {
	if off == 0 {
		return 0 // the file's header
	}
	payloads, _, err := parseRecords(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range payloads {
		last = payloadZxid(p)
		if err == nil && last != zxid.Zxid(len(l.mu.payloads)+1) {
			err = fmt.Errorf("transaction %v was logged as number %d", last, len(l.mu.payloads)+1)
		}
		l.mu.payloads = append(l.mu.payloads, slices.Clone(p))
	}
	if l.mu.fault == nil {
		l.mu.fault = err
	}
	return last
}

type ledgerFile struct {
	vfs.File
	l   *ledger
	log *ledgerLog
}

// WriteAt implements vfs.File.
func (f *ledgerFile) WriteAt(b []byte, off int64) (int, error) {
	last := f.l.write(b, off)
	n, err := f.File.WriteAt(b, off)
	if err == nil && last > 0 {
		f.l.mu.Lock()
		defer f.l.mu.Unlock()
		f.log.written = last
	}
	return n, err
}

// Sync implements vfs.File.
func (f *ledgerFile) Sync() error { return f.sync(f.File.Sync) }

// SyncData implements vfs.File.
func (f *ledgerFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *ledgerFile) sync(sync func() error) error {
	f.l.mu.Lock()
	covered := f.log.written
	f.l.mu.Unlock()
	err := sync()
	if err == nil {
		f.l.mu.Lock()
		defer f.l.mu.Unlock()
		f.log.synced = max(f.log.synced, covered)
		f.l.coverLocked(f.log)
	}
	return err
}

// parseRecords reads log records as ZooKeeper does, and returns the offset at which they end. Where ZooKeeper would refuse
// to start there is an error.
func parseRecords(b []byte) (payloads [][]byte, end int, err error) {
	const headBytes, endBytes, txnHeaderBytes, recordBytesMax = 12, 1, 32, 2 * 0xfffff
	for {
		rest := b[end:]
		if len(rest) < headBytes {
			return payloads, end, nil
		}
		n := int(int32(binary.BigEndian.Uint32(rest[8:])))
		switch {
		case n == 0:
			return payloads, end, nil
		case n < 0 || n > recordBytesMax:
			return nil, end, fmt.Errorf("unreasonable length %d at offset %d", n, end)
		case len(rest) < headBytes+n+endBytes || rest[headBytes+n] != 'B':
			return payloads, end, nil
		}
		payload := rest[headBytes : headBytes+n]
		if binary.BigEndian.Uint64(rest) != uint64(adler32.Checksum(payload)) {
			return nil, end, fmt.Errorf("wrong checksum at offset %d", end)
		}
		if n < txnHeaderBytes {
			return nil, end, fmt.Errorf("short transaction at offset %d", end)
		}
		payloads = append(payloads, payload)
		end += headBytes + n + endBytes
	}
}

func payloadZxid(payload []byte) zxid.Zxid {
	const zxidOffset = 12
	return zxid.Zxid(binary.BigEndian.Uint64(payload[zxidOffset:]))
}
