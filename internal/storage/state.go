package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// The state file has two slots, each in a page of its own (on disk):
//
//	offset  bytes
//	0       4   magic "ZBST"
//	4       4   version 2
//	8       8   sequence number; the valid slot with the higher one counts
//	16      32  epochs: accepted, current, and both as they were before; -1 = no such file
//	48      8   zxid in the name of the log that this server writes or wrote last; -1 = none
//	56      8   that log is durable up to this offset; 0 = it may not even have its name yet
//	64      8   last durable zxid
//	72      8   offset behind the first batch of that log
//	80      4   CRC-32C of its first batch, from the file header on
//	84      8   barrier: zxid of the snapshot that was installed last; 0 = none. Nothing older counts
//	92      8   floor: the log is not handed on to other servers from before this zxid
//	100     8   cut floor: the log is not truncated to before this zxid
//	108     8   the last transaction of which it is certain that this server wrote it; 0 = none
//	116     8   zxid of the snapshot that is being installed; -1 = none
//	124     8   while one is: no file in the directory has a higher zxid in its name
//	132     4   while one is: the suffix of its name, 0 = none, 1 = gz, 2 = snappy
//	136     8   session mark: no session id up to this one is to be made again; 0 = none
//	144     ..  zeros
//	508     4   CRC-32C of bytes 0..507
//
// All integers are big-endian. A slot is a sector, whatever its version, except that version 1 ended with its CRC at 84.
const (
	stateMagic       = 0x5a425354
	stateVersion     = 2
	stateSlotBytes   = 512
	stateVersion1    = 1
	stateSlotBytesV1 = 88
	stateSlotStride  = 4096
	stateFileBytes   = 2 * stateSlotStride
)

// suffixes are the compressions by their number in the state file.
var suffixes = [...]string{compressionNone, compressionGzip, compressionSnappy}

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
	// barrier, floor and cutFloor bound the use of what is older; own is what this server wrote itself.
	barrier, floor, cutFloor, own zxid.Zxid
	install                       installIntent
	sessions                      zxid.SessionID
	version                       uint32 // of the slot that was read
}

// installIntent is a snapshot that is being installed. From the moment on at which it is durable in the state file the
// installation is a fact: whatever a crash leaves undone of it is done at the next Open.
type installIntent struct {
	zxid   zxid.Zxid // -1: none
	newest zxid.Zxid // the highest in any file name at that moment
	suffix uint32    // index of suffixes
}

// noInstall is the intent where there is none.
var noInstall = installIntent{zxid: -1}

// file names the snapshot that the intent is about.
func (i installIntent) file() zab.SnapshotFile {
	return zab.SnapshotFile{Zxid: i.zxid, Name: snapshotName(i.zxid, suffixes[i.suffix])}
}

// fingerprint recognises a log by its first batch. Without it a log of the same name that another server created, when
// a crash had taken the name from ours, would pass for ours.
type fingerprint struct {
	end int64
	crc uint32
}

// mark is the promise of a state file that is not stale: the log was durable that far when it was written, and up to own it
// is of this server's making.
type mark struct {
	position
	begun fingerprint
	own   zxid.Zxid
	valid bool
}

// stateFile is the open state file. Slots are written in turn, with one exception: a write that is not synced never goes
// to the slot that was synced last, because a crash may tear it.
type stateFile struct {
	f      vfs.File
	rec    stateRecord
	synced int    // slot of the last synced write
	slot   []byte // its bytes
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
	for _, z := range []zxid.Zxid{r.barrier, r.floor, r.cutFloor, r.own, r.install.zxid, r.install.newest} {
		b = binary.BigEndian.AppendUint64(b, uint64(z))
	}
	b = binary.BigEndian.AppendUint32(b, r.install.suffix)
	b = binary.BigEndian.AppendUint64(b, uint64(r.sessions))
	b = b[:stateSlotBytes-4]
	return binary.BigEndian.AppendUint32(b, crc32c(b))
}

// decodeSlot reads a slot; ok is false for anything that is not a whole one.
func decodeSlot(b []byte) (r stateRecord, ok bool, err error) {
	if len(b) < stateSlotBytes || binary.BigEndian.Uint32(b) != stateMagic {
		return r, false, nil
	}
	r.version = binary.BigEndian.Uint32(b[4:])
	size := stateSlotBytes
	if r.version == stateVersion1 {
		size = stateSlotBytesV1
	}
	if crc32c(b[:size-4]) != binary.BigEndian.Uint32(b[size-4:]) {
		return r, false, nil
	}
	if r.version != stateVersion && r.version != stateVersion1 {
		return r, false, errStateVersion
	}
	field := func(off int) int64 { return int64(binary.BigEndian.Uint64(b[off:])) }
	r.seq = uint64(field(8))
	r.epochs, r.previous = epochPair{field(16), field(24)}, epochPair{field(32), field(40)}
	r.log = position{File: zxid.Zxid(field(48)), End: field(56), Last: zxid.Zxid(field(64))}
	r.begun = fingerprint{end: field(72), crc: binary.BigEndian.Uint32(b[80:])}
	r.install = noInstall
	if r.version == stateVersion1 {
		r.own = r.log.Last
		return r, true, nil
	}
	r.barrier, r.floor = zxid.Zxid(field(84)), zxid.Zxid(field(92))
	r.cutFloor, r.own = zxid.Zxid(field(100)), zxid.Zxid(field(108))
	r.install = installIntent{zxid: zxid.Zxid(field(116)), newest: zxid.Zxid(field(124)), suffix: binary.BigEndian.Uint32(b[132:])}
	r.sessions = zxid.SessionID(field(136))
	return r, int(r.install.suffix) < len(suffixes), nil
}

// openState reads the state file, if there is one, and decides whether it still holds. It is stale when the epoch files
// say something else than it knows: then another server, which does not keep it, was at work here, and may have cut the
// log on its leader's word, or replaced everything.
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
	if files != st.rec.epochs && files != st.rec.previous {
		return nil
	}
	if holds, err := s.resumeInstall(); err != nil || !holds {
		return err
	}
	s.mark = mark{position: st.rec.log, begun: st.rec.begun, own: st.rec.own, valid: true}
	s.barrier.Store(int64(st.rec.barrier))
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
			best = &stateFile{f: f, rec: r, synced: slot, slot: b[slot*stateSlotStride:][:stateSlotBytes]}
		}
	}
	return best, nil
}

// beginState makes the state file ready for this run: what it holds is durable and true, the log included. Begin calls
// it when recovery is done.
func (s *Store) beginState(t *tail) error {
	epochs, err := s.readEpochPair()
	if err != nil {
		return err
	}
	rec := stateRecord{seq: 1, install: noInstall}
	if s.state != nil {
		// The newest slot may not have reached the disk yet, though the page cache has it and may even take it for clean.
		// It must be durable before the other one is overwritten. Where it is already, writing the same bytes changes
		// nothing.
		if err := s.rewriteSlot(); err != nil {
			return err
		}
		rec = s.state.rec
	}
	s.adopt(&rec, t)
	rec.epochs, rec.previous = epochs, epochs
	rec.log, rec.begun = position{File: t.end.File, End: t.end.End, Last: t.last}, fingerprint{}
	if s.state == nil {
		return s.createState(rec)
	}
	s.state.rec = rec
	return s.writeState(true)
}

func (s *Store) rewriteSlot() error {
	st := s.state
	if _, err := st.f.WriteAt(st.slot, int64(st.synced)*stateSlotStride); err != nil {
		return err
	}
	return st.f.Sync()
}

// adopt decides what of the past this server answers for. After another server's work, that is the state which was loaded
// and no more: what stands in the log before the snapshot may be what that server's leader had discarded, and a snapshot
// of a moment in the past may hold more than its name says. Otherwise the log is ours up to its end if its last file is.
func (s *Store) adopt(rec *stateRecord, t *tail) {
	switch {
	case !s.mark.valid:
		rec.barrier, rec.floor, rec.cutFloor, rec.own = 0, t.base, t.last, 0
		rec.install = noInstall
	case rec.version == stateVersion1:
		rec.floor, rec.cutFloor = t.base, t.last
	}
	rec.own = min(rec.own, t.last)
	if s.mark.valid && t.own && s.mark.begun.end > 0 {
		rec.own = t.last
	}
	rec.version = stateVersion
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.floor = rec.floor
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
	s.state = &stateFile{f: f, rec: rec, synced: 0, slot: b[:stateSlotBytes]}
	return nil
}

// writeState writes the next slot. Without sync it may be lost, and then the one before counts.
func (s *Store) writeState(sync bool) error {
	st := s.state
	st.rec.seq++
	slot, b := 1-st.synced, st.rec.encode()
	if _, err := st.f.WriteAt(b, int64(slot)*stateSlotStride); err != nil {
		return s.fail(fmt.Errorf("write %s: %w", stateName, err))
	}
	if !sync {
		return nil
	}
	if err := st.f.SyncData(); err != nil {
		return s.fail(fmt.Errorf("sync %s: %w", stateName, err))
	}
	st.synced, st.slot = slot, b
	return nil
}

// setMark moves the durable-through mark.
func (s *Store) setMark(p position, sync bool) error {
	s.state.rec.log = p
	return s.writeState(sync)
}

func (st *stateFile) close() { st.f.Close() }

func crc32c(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
