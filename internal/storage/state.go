package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// The state file has two slots, each in a page of its own (on disk):
//
//	offset  bytes
//	0       4   magic "ZBST"
//	4       4   version 1
//	8       8   sequence number; the valid slot with the higher one counts
//	16      32  epochs: accepted, current, and both as they were before; -1 = no such file
//	48      8   zxid in the name of the log that this server writes or wrote last; -1 = none
//	56      8   that log is durable up to this offset; 0 = it may not even have its name yet
//	64      8   last durable zxid
//	72      8   offset behind the first batch of that log
//	80      4   CRC-32C of its first batch, from the file header on
//	84      4   CRC-32C of bytes 0..83
//
// All integers are big-endian.
const (
	stateMagic      = 0x5a425354
	stateVersion    = 1
	stateSlotBytes  = 88
	stateSlotStride = 4096
	stateFileBytes  = 2 * stateSlotStride
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errStateVersion refuses a directory that a later version of this server has used.
var errStateVersion = errors.New("the state file was written by a newer version of this server")

// epochPair is what the two epoch files say; -1 stands for a missing file.
type epochPair struct{ accepted, current int64 }

// stateRecord is the content of a slot.
type stateRecord struct {
	seq      uint64
	epochs   epochPair
	previous epochPair // as epochs were before the last change: a crash may leave the files so
	log      position
	begun    fingerprint
}

// fingerprint recognises a log by its first batch. Without it a log of the same name that another server created, when
// a crash had taken the name from ours, would pass for ours.
type fingerprint struct {
	end int64
	crc uint32
}

// mark is the promise of a state file that is not stale: the log was durable that far when it was written.
type mark struct {
	position
	begun fingerprint
	valid bool
}

// stateFile is the open state file. Slots are written in turn, with one exception: a write that is not synced never goes
// to the slot that was synced last, because a crash may tear it.
type stateFile struct {
	f      vfs.File
	rec    stateRecord
	synced int // slot of the last synced write
}

func (r *stateRecord) encode() []byte {
	b := make([]byte, 0, stateSlotBytes)
	b = binary.BigEndian.AppendUint32(b, stateMagic)
	b = binary.BigEndian.AppendUint32(b, stateVersion)
	b = binary.BigEndian.AppendUint64(b, r.seq)
	for _, v := range []int64{r.epochs.accepted, r.epochs.current, r.previous.accepted, r.previous.current,
		int64(r.log.File), r.log.End, int64(r.log.Last), r.begun.end} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = binary.BigEndian.AppendUint32(b, r.begun.crc)
	return binary.BigEndian.AppendUint32(b, crc32c(b))
}

// decodeSlot reads a slot; ok is false for anything that is not a whole one.
func decodeSlot(b []byte) (r stateRecord, ok bool, err error) {
	if len(b) < stateSlotBytes || binary.BigEndian.Uint32(b) != stateMagic {
		return r, false, nil
	}
	body, sum := b[:stateSlotBytes-4], binary.BigEndian.Uint32(b[stateSlotBytes-4:])
	if crc32c(body) != sum {
		return r, false, nil
	}
	if binary.BigEndian.Uint32(b[4:]) != stateVersion {
		return r, false, errStateVersion
	}
	field := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8+8*i:])) }
	return stateRecord{
		seq:      uint64(field(0)),
		epochs:   epochPair{field(1), field(2)},
		previous: epochPair{field(3), field(4)},
		log:      position{File: zxid.Zxid(field(5)), End: field(6), Last: zxid.Zxid(field(7))},
		begun:    fingerprint{end: field(8), crc: binary.BigEndian.Uint32(b[80:])},
	}, true, nil
}

// openState reads the state file, if there is one, and decides whether its mark still holds. It is stale when the epoch
// files say something else than it knows: then another server, which does not keep it, was at work here, and may have
// cut the log on its leader's word.
func (s *Store) openState() error {
	s.mark = mark{position: position{File: noFile}}
	f, err := s.fs.OpenWrite(s.logPath(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &DirError{Dir: s.logDir, Why: "Cannot open " + stateName + " in", Err: err}
	}
	st, err := readState(f)
	if err != nil || st == nil {
		f.Close()
		if err != nil {
			return &DirError{Dir: s.logDir, Why: "Cannot read " + stateName + " in", Err: err}
		}
		return nil // both slots torn: as good as none
	}
	s.state = st
	files, err := s.readEpochPair()
	if err != nil {
		return err
	}
	if files == st.rec.epochs || files == st.rec.previous {
		s.mark = mark{position: st.rec.log, begun: st.rec.begun, valid: true}
	}
	return nil
}

// readState returns nil without an error when no slot is valid.
func readState(f vfs.File) (*stateFile, error) {
	b := make([]byte, stateFileBytes)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	clear(b[n:])
	var best *stateFile
	for slot := range 2 {
		r, ok, err := decodeSlot(b[slot*stateSlotStride:])
		if err != nil {
			return nil, err
		}
		if ok && (best == nil || r.seq > best.rec.seq) {
			best = &stateFile{f: f, rec: r, synced: slot}
		}
	}
	return best, nil
}

// beginState makes the state file ready for this run: what it holds is durable and true, the log included. Begin calls
// it when recovery is done.
func (s *Store) beginState(log position) error {
	epochs, err := s.readEpochPair()
	if err != nil {
		return err
	}
	if s.state == nil {
		return s.createState(stateRecord{seq: 1, epochs: epochs, previous: epochs, log: log})
	}
	// The newest slot may not have reached the disk yet, though the page cache has it and may even take it for clean. It
	// must be durable before the other one is overwritten. Where it is already, writing the same bytes changes nothing.
	if _, err := s.state.f.WriteAt(s.state.rec.encode(), int64(s.state.synced)*stateSlotStride); err != nil {
		return err
	}
	if err := s.state.f.Sync(); err != nil {
		return err
	}
	s.state.rec.epochs, s.state.rec.previous = epochs, epochs
	s.state.rec.log, s.state.rec.begun = log, fingerprint{}
	return s.writeState(true)
}

// createState writes a new file under a temporary name first, so that there is a whole one or none.
func (s *Store) createState(rec stateRecord) error {
	f, err := s.fs.Create(s.logPath(stateTmpName))
	if err != nil {
		return err
	}
	b := make([]byte, stateFileBytes)
	copy(b, rec.encode())
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = s.fs.Rename(s.logPath(stateTmpName), s.logPath(stateName))
	}
	if err == nil {
		err = s.fs.SyncDir(s.logDir)
	}
	if err != nil {
		f.Close()
		return err
	}
	s.state = &stateFile{f: f, rec: rec, synced: 0}
	return nil
}

// writeState writes the next slot. Without sync it may be lost, and then the one before counts.
func (s *Store) writeState(sync bool) error {
	st := s.state
	st.rec.seq++
	slot := 1 - st.synced
	if _, err := st.f.WriteAt(st.rec.encode(), int64(slot)*stateSlotStride); err != nil {
		return s.fail(fmt.Errorf("write %s: %w", stateName, err))
	}
	if !sync {
		return nil
	}
	if err := st.f.SyncData(); err != nil {
		return s.fail(fmt.Errorf("sync %s: %w", stateName, err))
	}
	st.synced = slot
	return nil
}

// setMark moves the durable-through mark.
func (s *Store) setMark(p position, sync bool) error {
	s.state.rec.log = p
	return s.writeState(sync)
}

func (st *stateFile) close() { st.f.Close() }

func crc32c(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
