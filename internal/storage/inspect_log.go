package storage

import (
	"encoding/binary"
	"fmt"
	"io"
	"path"

	"zabra/internal/adler"
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// LogRecord is one record of a log as it stands in the file, whether or not it is sound.
type LogRecord struct {
	// Offset is where the record begins, Zxid the one in its transaction.
	Offset int64
	Zxid   zxid.Zxid
	// Payload is the encoded transaction, valid until the next one is read.
	Payload []byte
	// ChecksumOK and EndOK say that the checksum is right and that the end byte is there.
	ChecksumOK, EndOK bool
}

// LogFile reads a single log record by record and judges none of them.
type LogFile struct {
	lf   *openLog
	head [fileHeaderBytes]byte
	why  string
	next int64     // the length field where the reading ended
	last zxid.Zxid // of the sound records
}

// OpenLogFile opens a log. A file that is none gives a *CorruptError.
func OpenLogFile(fsys vfs.FS, name string) (*LogFile, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, err
	}
	first, ok := parseLogName(path.Base(name))
	if !ok {
		first = noFile
	}
	l := &LogFile{lf: &openLog{f: f, first: first, path: name, size: size, buf: make([]byte, min(size, readBufferBytes))}}
	if err := l.readHeader(); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

func (l *LogFile) readHeader() error {
	b, err := l.lf.peek(0, fileHeaderBytes)
	if err != nil {
		return err
	}
	why := ""
	switch {
	case len(b) < fileHeaderBytes:
		why = fmt.Sprintf("the file has %d bytes, less than a header", len(b))
	case binary.BigEndian.Uint32(b) != logMagic:
		why = fmt.Sprintf("the magic number is %#x instead of %#x", binary.BigEndian.Uint32(b), logMagic)
	}
	if why != "" {
		return &CorruptError{File: l.lf.path, Why: why, Do: doRestore}
	}
	copy(l.head[:], b)
	l.lf.off = fileHeaderBytes
	return nil
}

// Header returns the version and the database id that the header names. Nothing depends on them.
func (l *LogFile) Header() (version int32, dbid int64) {
	return int32(binary.BigEndian.Uint32(l.head[4:])), int64(binary.BigEndian.Uint64(l.head[8:]))
}

// Next returns the next record, or io.EOF where none stands: EndReason tells then why.
func (l *LogFile) Next() (LogRecord, error) {
	lf := l.lf
	rec := LogRecord{Offset: lf.off}
	head, err := lf.peek(lf.off, 12)
	if err != nil {
		return rec, err
	}
	if len(head) < 12 {
		return rec, l.end("")
	}
	sum, n := binary.BigEndian.Uint64(head), int64(int32(binary.BigEndian.Uint32(head[8:])))
	l.next = n
	switch {
	case n == 0:
		return rec, l.end("")
	case n < txnHeaderBytes || n > recordReadBytesMax:
		return rec, l.end(fmt.Sprintf("a record of the unreasonable length %d", n))
	case lf.off+12+n > lf.size:
		return rec, l.end("the file ends inside a record")
	}
	b, err := lf.peek(lf.off+12, int(min(n+1, lf.size-lf.off-12)))
	if err != nil {
		return rec, err
	}
	rec.Payload, rec.Zxid = b[:n], payloadZxid(b)
	rec.ChecksumOK = uint64(adler.Checksum(rec.Payload)) == sum
	rec.EndOK = int64(len(b)) > n && b[n] == recordEndByte
	lf.off += n + recordOverheadBytes
	if rec.ChecksumOK {
		l.last = max(l.last, rec.Zxid)
	}
	return rec, nil
}

func (l *LogFile) end(why string) error {
	l.why = why
	return io.EOF
}

// EndReason says why the reading ended where it did; empty if nothing but padding or the file's end stands there.
func (l *LogFile) EndReason() string { return l.why }

// EndLength is the length that is named where EndReason is about, for those who judge it by another limit.
func (l *LogFile) EndLength() int64 { return l.next }

// LogRest is what stands behind the last record of a log.
type LogRest struct {
	// Offset is where it begins, Torn how many bytes from there on are no record and no padding.
	Offset, Torn int64
	// Next is the offset of a valid record behind the place where none could be read, -1 if there is none: without one the
	// bytes are what a crash left, with one they are damage.
	Next int64
	// Why says why no record could be read; empty if nothing but padding stands there.
	Why string
}

// Rest looks at what stands behind the place where Next gave io.EOF.
func (l *LogFile) Rest() (LogRest, error) {
	why := l.why
	if why == "" {
		why = "there is no record"
	}
	return restOf(l.lf, l.last, why)
}

func restOf(lf *openLog, last zxid.Zxid, why string) (LogRest, error) {
	rest := LogRest{Offset: lf.off, Next: -1}
	dirty, next, err := scanTail(lf.f, lf.off, lf.off+1, lf.size, last)
	if err != nil || !dirty {
		return rest, err
	}
	end, err := dataEnd(lf.f, lf.off, lf.size)
	rest.Next, rest.Torn, rest.Why = next, end-lf.off, why
	return rest, err
}

// Close gives the file back.
func (l *LogFile) Close() error { return l.lf.f.Close() }

// AppendLogHeader appends the header that every log begins with.
func AppendLogHeader(b []byte) []byte { return append(b, logHeader[:]...) }

// AppendLogRecord appends one record of a log.
func AppendLogRecord(b, payload []byte) []byte { return appendRecord(b, payload) }

// LogReport is what a check of a single log found.
type LogReport struct {
	// First and Last are the first and the last transaction, Records how many there are.
	First, Last zxid.Zxid
	Records     int
	// Size is that of the file, End the offset behind the last record.
	Size, End int64
	// Torn is how many bytes behind the end are no record and no padding: what a start cuts off.
	Torn int64
	// TornWhy says what stands there.
	TornWhy string
	// Empty says that the file has no header: a crash left it before anything was written.
	Empty bool
	// Damage is what makes the log useless to a start that needs it, nil if all is well. Gaps between files are not looked
	// at here.
	Damage *CorruptError
}

// CheckLog reads a log from its beginning to its end and calls each, if it is not nil, for every sound record. The rule for
// torn ends is that for a log which another server wrote: a valid record behind a bad place makes it damage.
func CheckLog(fsys vfs.FS, name string, each func(LogRecord) error) (LogReport, error) {
	var rep LogReport
	l, err := OpenLogFile(fsys, name)
	if damage, ok := err.(*CorruptError); ok {
		info, err := fsys.Stat(name)
		rep.Size, rep.Damage = info.Size, damage
		if info.Size < fileHeaderBytes {
			rep.Empty, rep.Damage = true, nil
		}
		return rep, err
	}
	if err != nil {
		return rep, err
	}
	defer l.Close()
	rep.Size = l.lf.size
	for {
		at := l.lf.off
		payload, err := l.lf.next()
		rep.End = l.lf.off
		if none, ok := err.(*errNoRecord); ok {
			return rep, rep.checkEnd(l.lf, none)
		}
		if damage, ok := err.(*CorruptError); ok {
			rep.Damage = damage
			return rep, nil
		}
		if err != nil {
			return rep, err
		}
		rec := LogRecord{Offset: at, Zxid: payloadZxid(payload), Payload: payload, ChecksumOK: true, EndOK: true}
		if why, do := rep.order(l.lf.first, rec.Zxid); why != "" {
			rep.End = at
			rep.Damage = &CorruptError{File: name, Offset: at, Why: why, Do: do}
			return rep, nil
		}
		if each != nil {
			if err := each(rec); err != nil {
				return rep, err
			}
		}
	}
}

// order tells why z may not come next in a log with the zxid named in its name.
func (rep *LogReport) order(named, z zxid.Zxid) (why, do string) {
	switch {
	case z <= 0:
		return fmt.Sprintf("transaction with the impossible zxid %v", z), doRestore
	case rep.Records == 0 && named != noFile && z != named:
		return fmt.Sprintf("the first transaction is %v, not that in the file's name", z), doRename
	case rep.Records > 0 && z > rep.Last && !follows(rep.Last, z):
		return fmt.Sprintf("transaction %v comes after %v: those between are missing", z, rep.Last), doRestore
	}
	if rep.Records == 0 {
		rep.First = z
	}
	rep.Records++
	rep.Last = max(rep.Last, z)
	return "", ""
}

// checkEnd tells a torn end from damage.
func (rep *LogReport) checkEnd(lf *openLog, none *errNoRecord) error {
	rest, err := restOf(lf, rep.Last, none.why)
	if rest.Next >= 0 {
		rep.Damage = &CorruptError{File: lf.path, Offset: lf.off, Do: doCut,
			Why: fmt.Sprintf("%s, but at offset %d there is another valid transaction", none.why, rest.Next)}
		return err
	}
	rep.Torn, rep.TornWhy = rest.Torn, rest.Why
	return err
}

// dataEnd returns the offset behind the last byte that is not zero, from at least.
func dataEnd(f vfs.File, from, size int64) (int64, error) {
	buf := make([]byte, min(size-from, scanChunkBytes))
	for end := size; end > from; {
		b := buf[:min(end-from, int64(len(buf)))]
		if _, err := f.ReadAt(b, end-int64(len(b))); err != nil && err != io.EOF {
			return from, err
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != 0 {
				return end - int64(len(b)-1-i), nil
			}
		}
		end -= int64(len(b))
	}
	return from, nil
}
