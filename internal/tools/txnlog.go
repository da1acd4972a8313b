package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// MissingError says that a file is not there or cannot be read, in the words of ZooKeeper's log tool.
type MissingError struct{ File string }

func (e *MissingError) Error() string { return "File doesn't exist or not readable: " + e.File }

// NotLogError says that a file is no transaction log.
type NotLogError struct {
	File string
	Err  error
}

func (e *NotLogError) Error() string {
	return fmt.Sprintf("Invalid magic number for %s: it is no transaction log (%v)", filepath.Base(e.File), e.Err)
}

// Unwrap returns what is wrong with it.
func (e *NotLogError) Unwrap() error { return e.Err }

// openLog opens a log and prints the line that every tool for logs begins with.
func openLog(p *printer, file string) (*storage.LogFile, error) {
	l, err := storage.OpenLogFile(vfs.OS{}, file)
	var damage *storage.CorruptError
	switch {
	case errors.As(err, &damage):
		return nil, &NotLogError{File: file, Err: errors.New(damage.Why)}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, &MissingError{File: file}
	case err != nil:
		return nil, err
	}
	if !p.JSON {
		version, dbid := l.Header()
		p.printf("ZooKeeper Transactional Log File with dbid %d txnlog format version %d\n", dbid, version)
	}
	return l, nil
}

// DumpLog prints every record of a log. Records with a wrong checksum are printed too and marked; where no record can be
// read any more the dump ends with an error. The log of a running server may be dumped: what is on its way at that moment
// may be missing.
func DumpLog(o Output, file string) (err error) {
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	l, err := openLog(p, file)
	if err != nil {
		return err
	}
	defer l.Close()
	n := 0
	for {
		rec, err := l.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := p.record(file, rec); err != nil {
			return err
		}
		n++
	}
	if why := l.EndReason(); why != "" {
		fmt.Fprintf(o.Err, "%s: %s. Run \"zabra txnlog verify\" to learn whether that is a torn end or damage.\n", file, why)
	}
	if !o.JSON {
		p.printf("EOF reached after %d txns.\n", n)
	}
	return nil
}

// record prints one record.
func (p *printer) record(file string, rec storage.LogRecord) error {
	t, err := decodeLogTxn(rec.Payload)
	fault := ""
	switch {
	case !rec.ChecksumOK:
		fault = "CRC ERROR"
	case !rec.EndOK:
		fault = "PARTIAL"
	}
	switch {
	case p.JSON && err != nil:
		p.object(&jsonTxn{File: file, Offset: &rec.Offset, Zxid: rec.Zxid.String(), Type: "unreadable",
			Fault: strings.TrimSpace(fault + " " + err.Error())})
	case p.JSON:
		j := t.json(p.Output, file, rec.Offset)
		j.Fault = fault
		p.object(j)
	case err != nil:
		p.printf("%s - zxid %v at offset %d cannot be read (%v): %s\n", faultOr(fault, "UNREADABLE"), rec.Zxid, rec.Offset, err,
			base64Text(rec.Payload))
	default:
		if !rec.ChecksumOK {
			p.printf("CRC ERROR - %s\n", t.line(p.Output))
		}
		p.printf("%s\n", t.line(p.Output))
	}
	if !rec.EndOK {
		return fmt.Errorf("last transaction was partial: at offset %d of %s the end of record %v is missing", rec.Offset, file, rec.Zxid)
	}
	return nil
}

func faultOr(fault, otherwise string) string {
	if fault == "" {
		return otherwise
	}
	return fault
}

// RecoverOptions are those of RecoverLog.
type RecoverOptions struct {
	// Verbose prints every record and not only the broken ones.
	Verbose bool
	// Yes repairs every checksum without a question; otherwise the answers are read from Answers.
	Yes     bool
	Answers io.Reader
}

// RecoverLog copies a log to a new file, FILE.fixed, and gives records with a wrong checksum the right one, if that is
// wanted. That makes the file readable and the content no truer: what was damaged stays so. A record that cannot be decoded
// any more ends the copy with an error, and no file is left.
func RecoverLog(o Output, file string, opt RecoverOptions) (err error) {
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	l, err := openLog(p, file)
	if err != nil {
		return err
	}
	defer l.Close()
	out, err := createBeside(file, ".fixed")
	if err != nil {
		return fmt.Errorf("Recovery file %s.fixed already exists or not writable", file)
	}
	defer out.discard()
	r := &recovery{printer: p, opt: opt, out: out, answers: bufio.NewScanner(opt.Answers)}
	if err := r.run(l); err != nil {
		return err
	}
	if err := out.keep(); err != nil {
		return err
	}
	p.printf("Recovery file %s has been written with %d fixed CRC error(s)\n", out.name, r.fixed)
	return nil
}

type recovery struct {
	*printer
	opt            RecoverOptions
	out            *newFile
	answers        *bufio.Scanner
	records, fixed int
}

// ErrAborted is the answer of RecoverLog when it was told to abort.
var ErrAborted = errors.New("Recovery aborted.")

func (r *recovery) run(l *storage.LogFile) error {
	r.out.write(storage.AppendLogHeader(nil))
	for {
		rec, err := l.Next()
		if errors.Is(err, io.EOF) {
			r.printf("EOF reached after %d txns.\n", r.records)
			return r.out.err
		}
		if err != nil {
			return err
		}
		if err := r.copy(rec); err != nil {
			return err
		}
	}
}

func (r *recovery) copy(rec storage.LogRecord) error {
	t, err := decodeLogTxn(rec.Payload)
	if err != nil {
		return fmt.Errorf("the record at offset %d cannot be decoded, so no checksum can repair it: %w", rec.Offset, err)
	}
	fix := false
	switch {
	case rec.ChecksumOK:
	case r.opt.Yes:
		fix = true
		r.printf("CRC FIXED - %s\n", t.line(r.Output))
	default:
		r.printf("CRC ERROR - %s\n", t.line(r.Output))
		if fix, err = r.ask(); err != nil {
			return err
		}
	}
	if r.opt.Verbose {
		r.printf("%s\n", t.line(r.Output))
	}
	if !rec.EndOK {
		return fmt.Errorf("last transaction was partial: at offset %d the end of record %v is missing", rec.Offset, rec.Zxid)
	}
	b := storage.AppendLogRecord(nil, rec.Payload)
	if !rec.ChecksumOK && !fix {
		b[7]++ // it stays wrong: nobody vouches for it
	}
	if fix {
		r.fixed++
	}
	r.records++
	r.out.write(b)
	return r.out.err
}

// ask asks until it gets an answer. The end of the input means no repair.
func (r *recovery) ask() (bool, error) {
	for {
		r.printf("Would you like to fix it (Yes/No/Abort) ? ")
		r.flush()
		if !r.answers.Scan() {
			return false, ErrAborted
		}
		switch strings.ToLower(strings.TrimSpace(r.answers.Text())) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		case "a", "abort":
			return false, ErrAborted
		}
	}
}

// ChopLog copies a log up to and including the transaction last to a new file and returns its name: out, or
// FILE.chopped<last in decimal>. The log itself stays as it is. A log without that transaction is an error.
func ChopLog(o Output, file string, last zxid.Zxid, out string) (name string, err error) {
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	l, err := openLog(p, file)
	if err != nil {
		return "", err
	}
	defer l.Close()
	var f *newFile
	if out == "" {
		f, err = createBeside(file, fmt.Sprintf(".chopped%d", int64(last)))
	} else {
		f, err = createNew(out)
	}
	if err != nil {
		return "", err
	}
	defer f.discard()
	n, err := chop(l, f, last)
	if err != nil {
		return "", fmt.Errorf("Failed to chop %s: %w", filepath.Base(file), err)
	}
	if err := f.keep(); err != nil {
		return "", err
	}
	if o.JSON {
		p.object(map[string]any{"file": file, "choppedTo": f.name, "zxid": last.String(), "records": n})
	} else {
		p.printf("Chopping at %s new log has %d records\n", last.Hex(), n)
	}
	return f.name, nil
}

func chop(l *storage.LogFile, f *newFile, last zxid.Zxid) (int, error) {
	f.write(storage.AppendLogHeader(nil))
	var highest zxid.Zxid
	for n := 0; ; n++ {
		rec, err := l.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, fmt.Errorf("it has no transaction %v; the last one is %v", last, highest)
		case err != nil:
			return 0, err
		case !rec.ChecksumOK || !rec.EndOK:
			return 0, fmt.Errorf("the record at offset %d is damaged", rec.Offset)
		case rec.Zxid > last:
			return 0, fmt.Errorf("it has no transaction %v; %v comes after %v", last, rec.Zxid, highest)
		}
		f.write(storage.AppendLogRecord(nil, rec.Payload))
		if highest = rec.Zxid; highest == last {
			return n + 1, f.err
		}
	}
}

// newFile is a file in the making: there is one under that name only when it is whole.
type newFile struct {
	name string
	f    *os.File
	w    *bufio.Writer
	err  error
	kept bool
}

func createBeside(file, suffix string) (*newFile, error) { return createNew(file + suffix) }

func createNew(name string) (*newFile, error) {
	const mode = 0o640
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &newFile{name: name, f: f, w: bufio.NewWriter(f)}, nil
}

func (f *newFile) write(b []byte) {
	if _, err := f.w.Write(b); err != nil && f.err == nil {
		f.err = err
	}
}

// keep makes the file durable.
func (f *newFile) keep() error {
	err := errors.Join(f.err, f.w.Flush(), f.f.Sync(), f.f.Close())
	f.kept = err == nil
	return err
}

// discard removes a file that was not kept.
func (f *newFile) discard() {
	if !f.kept {
		f.f.Close()
		os.Remove(f.name)
	}
}
