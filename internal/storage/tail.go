package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// tail is what a reader found at the end of the log.
type tail struct {
	base zxid.Zxid // the snapshot behind which the reader began
	last zxid.Zxid // the last transaction, that of the snapshot included
	own  bool      // this server began the last file
	// cuts are torn ends: nothing behind them was acknowledged. Logs without a single transaction go altogether.
	cuts []cut
	end  position // the last record's file and end; File is noFile when there is none
}

// cut says where a file ends in truth, or that it is to be removed.
type cut struct {
	file   zxid.Zxid
	off    int64
	remove bool
}

// What an operator can do, for CorruptError.
const (
	doRestore = "Restore the file from a backup, or empty this server's data directory if it is a member of an ensemble."
	doRename  = "Give the file its name back, or move it away if it is a copy."
	doCut     = "Restore the file from a backup, or empty this server's data directory if it is a member of an ensemble. " +
		"To go on without the transactions behind that offset, move later logs away and cut the file there (truncate -s)."
	doLimit = "No setting of this server raises that limit. Start the server that wrote the file, take a snapshot and purge the " +
		"log, or empty this server's data directory if it is a member of an ensemble."
	doState = " If the directory was restored from an older copy, delete " + stateName + " and start again."
)

// endOfFile decides what it means that no record stands at the current offset: the end of this log, a torn tail, or
// damage. It returns nil to go on with the next log.
//
// Three things can be known about the log that this server wrote last (own): it was durable up to the mark; behind that
// at most batchBytesMax bytes were under way when the server stopped, and their pages may have reached the disk in any
// order; so a valid record further away than that can only have been written after what is bad here was durable. Nothing
// of the kind is known of a log that somebody else wrote: there, any valid record behind a bad one counts as damage,
// unless a later log goes on exactly where this one ends, which shows that its writer took that for the end as well.
func (r *logReader) endOfFile(none *errNoRecord) error {
	lf := r.file
	if r.running && lf.first == r.bound.File {
		return r.endOfRunning(none)
	}
	own, err := r.own()
	if err != nil {
		return err
	}
	if own && lf.off < r.s.mark.End {
		return r.corrupt(lf.off, fmt.Sprintf("%s, but the log was durable up to offset %d", none.why, r.s.mark.End), doCut+doState)
	}
	from := lf.off + 1
	if own {
		from = lf.off + int64(r.s.batchMax)
	}
	dirty, found, err := scanTail(lf.f, lf.off, from, lf.size, r.last)
	if err != nil {
		return err
	}
	if found >= 0 && !r.continued() {
		return r.corrupt(lf.off, fmt.Sprintf("%s, but at offset %d there is another valid transaction", none.why, found), doCut)
	}
	switch {
	case lf.off < fileHeaderBytes && len(r.files) > 0:
		return r.corrupt(0, "the file has no header, and there are later logs", doRestore)
	case lf.records == 0:
		r.tail.cuts = append(r.tail.cuts, cut{file: lf.first, remove: true})
		return r.closeFile()
	case dirty:
		r.tail.cuts = append(r.tail.cuts, cut{file: lf.first, off: lf.off})
	}
	r.tail.end, r.tail.own = position{File: lf.first, End: lf.off, Last: r.last}, own
	return r.closeFile()
}

// own tells whether the current log is the one that this server wrote last. A mark with an offset is certain of that. One
// without was written before the log had its name: then the log's first batch decides.
func (r *logReader) own() (bool, error) {
	m, lf := r.s.mark, r.file
	if r.running || !m.valid || m.File != lf.first || m.End > 0 {
		return !r.running && m.valid && m.File == lf.first, nil
	}
	n := m.begun.end - fileHeaderBytes
	if n <= 0 || m.begun.end > lf.size {
		return false, nil
	}
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, io.NewSectionReader(lf.f, fileHeaderBytes, n)); err != nil {
		return false, err
	}
	return sum.Sum32() == m.begun.crc, nil
}

// endOfRunning ends a log of a running store, which is read exactly up to where it is durable.
func (r *logReader) endOfRunning(none *errNoRecord) error {
	if lf := r.file; lf.first == r.bound.File && lf.off < r.bound.End {
		return r.corrupt(lf.off, fmt.Sprintf("%s, but the log is durable up to offset %d", none.why, r.bound.End), doCut)
	}
	return r.closeFile()
}

// continued tells whether the next log goes on exactly behind the last record read.
func (r *logReader) continued() bool {
	return len(r.files) > 0 && r.seen && r.files[0] == r.last+1
}

func (r *logReader) closeFile() error {
	f := r.file.f
	r.file = nil
	return f.Close()
}

// endOfLog is called behind the last log. It leaves what was found for Begin.
func (r *logReader) endOfLog() error {
	if r.running {
		return io.EOF
	}
	if m := r.s.mark; m.valid && m.Last > r.tail.last {
		file := r.s.logDir
		if r.tail.end.File != noFile {
			file = r.s.logPath(logName(r.tail.end.File))
		}
		return &CorruptError{File: file, Offset: r.tail.end.End, Do: doRestore + doState,
			Why: fmt.Sprintf("the log ends at %v, but %v was durable", r.tail.last, m.Last)}
	}
	r.s.mu.Lock()
	r.s.mu.tail = &r.tail
	r.s.mu.Unlock()
	return io.EOF
}

// scanTail looks at a log from off on, where no record stands. It tells whether anything but zeros is there, and where
// the first valid record at or behind from begins whose zxid is above last; -1 if there is none.
func scanTail(f vfs.File, off, from, size int64, last zxid.Zxid) (dirty bool, found int64, err error) {
	sc := scanner{f: f, size: size, last: last, budget: scanChecksumBytesMax}
	const overlap = recordOverheadBytes + txnHeaderBytes
	chunk := make([]byte, min(scanChunkBytes+overlap, max(size-off, 0)))
	for pos := off; pos < size; pos += scanChunkBytes {
		n := int(min(int64(len(chunk)), size-pos))
		if n, err = f.ReadAt(chunk[:n], pos); err != nil && err != io.EOF {
			return false, -1, err
		}
		b := chunk[:n]
		if allZero(b) {
			continue
		}
		dirty = true
		for i := int(max(from-pos, 0)); i < min(n, scanChunkBytes); i++ {
			ok, err := sc.recordAt(pos+int64(i), b[i:])
			if err != nil {
				return dirty, -1, err
			}
			if ok {
				return dirty, pos + int64(i), nil
			}
		}
	}
	return dirty, -1, nil
}

// scanner recognises records at arbitrary offsets.
type scanner struct {
	f      vfs.File
	size   int64
	last   zxid.Zxid
	budget int64 // bytes that may still be checksummed
	buf    []byte
}

// recordAt tells whether a record begins at off; b holds the bytes there. The cheap conditions come first: the upper half
// of a checksum is zero, the length fits, the zxid comes soon after the last one.
func (sc *scanner) recordAt(off int64, b []byte) (bool, error) {
	if len(b) < 12+txnHeaderBytes || binary.BigEndian.Uint32(b) != 0 {
		return false, nil
	}
	n := int64(int32(binary.BigEndian.Uint32(b[8:])))
	if n < txnHeaderBytes || off+n+recordOverheadBytes > sc.size {
		return false, nil
	}
	if !plausible(sc.last, payloadZxid(b[12:])) {
		return false, nil
	}
	var end [1]byte
	if _, err := sc.f.ReadAt(end[:], off+12+n); err != nil || end[0] != recordEndByte {
		return false, err
	}
	if sc.budget -= n; sc.budget < 0 {
		return true, nil
	}
	if sc.buf == nil {
		sc.buf = make([]byte, readBufferBytes)
	}
	sum, err := payloadSum(sc.f, off+12, n, sc.buf)
	return err == nil && sum == binary.BigEndian.Uint32(b[4:]), err
}

// plausible tells whether z may be that of a record that was written soon after last.
func plausible(last, z zxid.Zxid) bool {
	if z.Epoch() == last.Epoch() {
		return z > last && z.Counter()-last.Counter() < scanCounterMax
	}
	return z > last && z.Counter() < scanCounterMax
}

// zeros is what blocks of padding are compared with.
var zeros [4096]byte

func allZero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeros))
		if !bytes.Equal(b[:n], zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}
