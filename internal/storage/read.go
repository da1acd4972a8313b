package storage

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"zabra/internal/adler"
	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// logReader walks over the logs. See tail.go for what it makes of the end of each.
type logReader struct {
	s     *Store
	after zxid.Zxid
	// running: the store has begun, and reading ends at bound. During recovery the disk decides.
	running bool
	bound   position
	// generation is that of the directory when files were listed.
	generation uint64
	files      []zxid.Zxid // not yet opened, ascending
	opens      bool        // the first transaction of all may be any: see checkFirst
	pin        *pin
	resume     cursor // where to begin in the first file; its File is noFile for the file's beginning

	file *openLog
	// last is the zxid of the last record read, 0 before the first; seen says that there was one.
	last zxid.Zxid
	seen bool
	tail tail
	// cutting asks for where to cut the log. wanted is a zxid at which the log is to be cut: found is the end of the last record up to it, noFile as long as there
	// is none, and beyond are the files that hold later ones, each with where they begin.
	cutting bool
	wanted  zxid.Zxid
	found   position
	beyond  []cut
	done    error // what Next returns from now on
}

// openLog is a log that is being read.
type openLog struct {
	f       vfs.File
	first   zxid.Zxid // in its name
	path    string
	size    int64 // where reading ends at the latest
	off     int64 // of the next record
	buf     []byte
	bufOff  int64
	bufLen  int
	records int
}

var _ zab.LogReader = (*logReader)(nil)

// errNoRecord says that no record stands at an offset.
type errNoRecord struct{ why string }

func (e *errNoRecord) Error() string { return e.why }

// OpenLog returns a reader over all transactions with a zxid above after, which is that of the snapshot the caller has
// loaded, or 0 if there is none. The reader gives them in order and without a gap; a transaction that an older log holds
// too is given once. It ends with io.EOF at the end of the log, a torn tail included, or with a *CorruptError.
//
// Before Begin it reads what is on disk. After Begin it reads what was durable when it was opened; a purge spares the logs
// that it still needs.
func (s *Store) OpenLog(after zxid.Zxid) (zab.LogReader, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	r, err := s.openLog(after)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *Store) openLog(after zxid.Zxid) (*logReader, error) {
	s.files.Lock()
	defer s.files.Unlock()
	r, logs, err := s.newReaderLocked(after)
	if err != nil {
		return nil, err
	}
	for _, z := range logs {
		// The last log that begins at or before the first wanted transaction holds it, if any does.
		if z <= after+1 {
			r.files = r.files[:0]
		}
		r.files = append(r.files, z)
	}
	if after == 0 {
		if err := r.checkFirst(); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// newReaderLocked returns a reader that holds its pin but has no files yet, and the logs that it may read. The caller
// holds s.files: a purge must see the pin before it decides, or be over before the logs are listed.
func (s *Store) newReaderLocked(after zxid.Zxid) (*logReader, []zxid.Zxid, error) {
	r := &logReader{s: s, after: after, tail: tail{base: after, last: after, end: position{File: noFile}},
		found: position{File: noFile}, resume: cursor{position: position{File: noFile}}, pin: &pin{after: after}}
	s.mu.Lock()
	r.running, r.bound = s.mu.begun, s.mu.durable
	r.generation = s.generation.Load()
	s.mu.pins[r.pin] = struct{}{}
	s.mu.Unlock()
	names, err := s.fs.List(s.logDir)
	if err != nil {
		r.Close()
		return nil, nil, err
	}
	logs := s.current(logNames(names))
	if r.running {
		logs = slices.DeleteFunc(logs, func(z zxid.Zxid) bool { return z > r.bound.Last })
	}
	return r, logs, nil
}

// superseded tells that the history which the reader walks over was cut or replaced. What it finds from then on proves
// nothing.
func (r *logReader) superseded() error {
	if r.running && r.generation != r.s.generation.Load() {
		return errSuperseded
	}
	return nil
}

// checkFirst decides what the very first transaction may be. With a snapshot of zxid 0 it may be the first of any epoch;
// without one, logs that were purged may have held earlier ones, unless it is number 1.
func (r *logReader) checkFirst() error {
	snapshots, err := r.s.listSnapshots()
	if err != nil {
		return err
	}
	for _, f := range snapshots {
		if f.Zxid == 0 {
			return nil
		}
	}
	r.opens = true
	return nil
}

// Next implements zab.LogReader.
func (r *logReader) Next() (zab.Entry, error) {
	for r.done == nil {
		if r.file == nil {
			r.end(r.openNext())
			continue
		}
		payload, err := r.file.next()
		if none, ok := err.(*errNoRecord); ok {
			r.end(r.endOfFile(none))
			continue
		}
		var z zxid.Zxid
		if err == nil {
			z, err = r.accept(payload)
		}
		if err != nil {
			r.end(err)
			break
		}
		if z > r.tail.last {
			r.tail.last = z
			return zab.Entry{Zxid: z, Payload: payload}, nil
		}
	}
	return zab.Entry{}, r.done
}

// end keeps the error that ends the reading, if it is one. What looks like damage in a history that was replaced is none.
func (r *logReader) end(err error) {
	if gone := r.superseded(); err != nil && gone != nil {
		err = gone
	}
	r.done = err
}

// Close implements zab.LogReader.
func (r *logReader) Close() error {
	r.s.unpin(r.pin)
	if r.done == nil {
		r.done = ErrClosed
	}
	if r.file == nil {
		return nil
	}
	f := r.file.f
	r.file = nil
	return f.Close()
}

// accept checks where a record stands in the sequence and returns its zxid.
func (r *logReader) accept(payload []byte) (zxid.Zxid, error) {
	at := r.file.off - int64(len(payload)) - recordOverheadBytes
	z := payloadZxid(payload)
	if z <= 0 {
		return 0, r.corrupt(at, fmt.Sprintf("transaction with the impossible zxid %v", z), doRestore)
	}
	if r.file.records == 0 && z != r.file.first {
		return 0, r.corrupt(at, fmt.Sprintf("the first transaction is %v, not that in the file's name", z), doRename)
	}
	r.file.records++
	if why := r.gap(z); why != "" {
		return 0, r.corrupt(at, why, doRestore)
	}
	r.locate(z, at)
	if z > r.last || !r.seen {
		r.last, r.seen = z, true
		r.tail.cuts = r.tail.cuts[:0] // what was torn before is not the end of the log
	}
	return z, nil
}

// locate notes on which side of wanted the record z at an offset of the current file is.
func (r *logReader) locate(z zxid.Zxid, at int64) {
	n := len(r.beyond)
	switch {
	case !r.cutting:
	case z <= r.wanted && (n == 0 || r.beyond[n-1].file != r.file.first):
		r.found = position{File: r.file.first, End: r.file.off, Last: z}
	case z > r.wanted && (n == 0 || r.beyond[n-1].file != r.file.first):
		r.beyond = append(r.beyond, cut{file: r.file.first, off: at})
	}
}

// gap tells why z may not come next, or nothing. Transactions up to after are in the snapshot, so holes there do not
// matter; those at or below the last one come from logs that overlap and are skipped.
func (r *logReader) gap(z zxid.Zxid) string {
	prev := max(r.last, r.after)
	switch {
	case z <= prev:
		return ""
	case r.opens && prev == 0:
		if z == 1 || r.s.cfg.TrustEmpty {
			return ""
		}
		return fmt.Sprintf("there is no snapshot, and the log begins at %v instead of the first transaction", z)
	case follows(prev, z):
		return ""
	}
	return fmt.Sprintf("transaction %v comes after %v: those between are missing", z, prev)
}

// openNext opens the next log, or ends the reading.
func (r *logReader) openNext() error {
	if len(r.files) == 0 {
		return r.endOfLog()
	}
	if err := r.superseded(); err != nil {
		return err
	}
	first := r.files[0]
	r.files = r.files[1:]
	name := r.s.logPath(logName(first))
	f, err := r.s.fs.Open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return err
	}
	if r.running && first == r.bound.File {
		size = min(size, r.bound.End)
	}
	r.file = &openLog{f: f, first: first, path: name, size: size, buf: make([]byte, min(size, readBufferBytes))}
	if first == r.resume.File {
		r.file.off, r.file.records = r.resume.End, 1
		r.last, r.seen = r.resume.Last, true
		return nil
	}
	if why := r.gap(first); why != "" {
		return r.corrupt(0, why, doRestore)
	}
	return r.readHeader()
}

// readHeader checks the magic number, which is all that ZooKeeper checks. A header that never reached the disk is a
// matter for endOfFile.
func (r *logReader) readHeader() error {
	lf := r.file
	head, err := lf.peek(0, fileHeaderBytes)
	if err != nil {
		return err
	}
	if len(head) < fileHeaderBytes || allZero(head) {
		return r.endOfFile(&errNoRecord{"the file has no header"})
	}
	if magic := binary.BigEndian.Uint32(head); magic != logMagic {
		return r.corrupt(0, fmt.Sprintf("the magic number is %#x instead of %#x", magic, logMagic), doRestore)
	}
	lf.off = fileHeaderBytes
	return nil
}

// next reads one record. Its payload is valid until the next call.
func (lf *openLog) next() ([]byte, error) {
	head, err := lf.peek(lf.off, 12)
	if err != nil {
		return nil, err
	}
	if len(head) < 12 {
		return nil, &errNoRecord{"the file ends"}
	}
	sum, n := binary.BigEndian.Uint64(head), int64(int32(binary.BigEndian.Uint32(head[8:])))
	switch {
	case n == 0:
		return nil, &errNoRecord{"no more records"}
	case n < 0:
		return nil, &errNoRecord{fmt.Sprintf("a record of the unreasonable length %d", n)}
	case lf.off+n+recordOverheadBytes > lf.size:
		return nil, &errNoRecord{"the file ends inside a record"}
	}
	if end, err := lf.byteAt(lf.off + 12 + n); err != nil {
		return nil, err
	} else if end != recordEndByte {
		return nil, &errNoRecord{"a record without its end byte"}
	}
	if n > recordReadBytesMax {
		return nil, lf.tooLarge(n, sum)
	}
	payload, err := lf.peek(lf.off+12, int(n))
	if err != nil {
		return nil, err
	}
	if uint64(adler.Checksum(payload)) != sum {
		return nil, &errNoRecord{"a record with a wrong checksum"}
	}
	if n < txnHeaderBytes {
		// It was written so: no crash makes a right checksum.
		return nil, &CorruptError{File: lf.path, Offset: lf.off, Do: doRestore,
			Why: fmt.Sprintf("a record of %d bytes is too short for a transaction", n)}
	}
	lf.off += n + recordOverheadBytes
	return payload, nil
}

// tooLarge refuses an intact record that is larger than any that is read: a server with a higher limit acknowledged it, so
// it must not pass for a torn tail. What only looks like one is no record.
func (lf *openLog) tooLarge(n int64, sum uint64) error {
	got, err := payloadSum(lf.f, lf.off+12, n, make([]byte, readBufferBytes))
	if err != nil {
		return err
	}
	if uint64(got) != sum {
		return &errNoRecord{fmt.Sprintf("a record of the unreasonable length %d with a wrong checksum", n)}
	}
	return &CorruptError{File: lf.path, Offset: lf.off, Do: doLimit,
		Why: fmt.Sprintf("an intact transaction of %d bytes is above the limit of %d bytes (jute.maxbuffer)", n, recordReadBytesMax)}
}

// payloadSum computes the checksum of n bytes in a stream through buf.
func payloadSum(f vfs.File, off, n int64, buf []byte) (uint32, error) {
	sum := adler.New()
	got, err := io.CopyBuffer(sum, io.NewSectionReader(f, off, n), buf)
	if err == nil && got < n {
		err = io.ErrUnexpectedEOF
	}
	return sum.Sum32(), err
}

// byteAt reads one byte, without moving the buffer, so that a wrong length costs no memory.
func (lf *openLog) byteAt(off int64) (byte, error) {
	if i := off - lf.bufOff; i >= 0 && i < int64(lf.bufLen) {
		return lf.buf[i], nil
	}
	var b [1]byte
	_, err := lf.f.ReadAt(b[:], off)
	return b[0], err
}

// peek returns n bytes from off, or fewer at the end of the file. They stay valid until the next call.
func (lf *openLog) peek(off int64, n int) ([]byte, error) {
	n = int(min(int64(n), max(lf.size-off, 0)))
	if i := off - lf.bufOff; i >= 0 && i+int64(n) <= int64(lf.bufLen) {
		return lf.buf[i : i+int64(n)], nil
	}
	if n > len(lf.buf) {
		lf.buf = make([]byte, n)
	}
	want := int(min(int64(len(lf.buf)), lf.size-off))
	if want <= 0 {
		return nil, nil
	}
	got, err := lf.f.ReadAt(lf.buf[:want], off)
	if err != nil && err != io.EOF {
		return nil, err
	}
	lf.bufOff, lf.bufLen = off, got
	return lf.buf[:min(n, got)], nil
}

func (r *logReader) corrupt(off int64, why, do string) error {
	return &CorruptError{File: r.file.path, Offset: off, Why: why, Do: do}
}
