package tools

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	if rest, err := l.Rest(); err != nil {
		return err
	} else if rest.Torn > 0 {
		fmt.Fprintf(o.Err, "%s: at offset %d: %s. Run \"zabra txnlog verify\" to learn whether that is a torn end or damage.\n", file,
			rest.Offset, rest.Why)
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
		p.printf("%s - zxid %v at offset %d cannot be read (%v): %s\n", cmp.Or(fault, "UNREADABLE"), rec.Zxid, rec.Offset, err,
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
// any more ends the copy with an error, and no file is left; so does a place where no record begins, if there are valid ones
// behind it: the copy would be without them. What a crash left behind the last record is left out, and o.Err told so.
func RecoverLog(o Output, file string, opt RecoverOptions) (err error) {
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	l, err := openLog(p, file)
	if err != nil {
		return err
	}
	defer l.Close()
	out, err := createCopy(file, file+".fixed")
	if err != nil {
		return fmt.Errorf("Recovery file %s.fixed already exists or not writable (%w)", file, err)
	}
	defer out.discard()
	r := &recovery{printer: p, opt: opt, file: file, out: out, answers: bufio.NewScanner(opt.Answers)}
	if err := r.run(l); err != nil {
		return err
	}
	if err := out.keep(); err != nil {
		return err
	}
	p.printf("Recovery file %s has been written with %d fixed CRC error(s)\n", out.name, r.fixed)
	out.warnOfName(o)
	return nil
}

type recovery struct {
	*printer
	opt            RecoverOptions
	file           string
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
			return r.end(l)
		}
		if err != nil {
			return err
		}
		if err := r.copy(rec); err != nil {
			return err
		}
	}
}

// end decides whether the place where no record begins is the end of the log.
func (r *recovery) end(l *storage.LogFile) error {
	rest, err := l.Rest()
	if err != nil {
		return err
	}
	if rest.Next >= 0 {
		return fmt.Errorf("%s is damaged at offset %d: %s, but at offset %d there is another valid transaction. A copy would be "+
			"without it and all behind it, so none was made. Take the data of another member, or a backup; \"zabra txnlog chop\" "+
			"copies what stands before that offset", r.file, rest.Offset, rest.Why, rest.Next)
	}
	if rest.Torn > 0 {
		fmt.Fprintf(r.Err, "The %s behind offset %d are no transaction (%s): the copy is without them.\n",
			count(int(rest.Torn), "byte"), rest.Offset, rest.Why)
	}
	r.printf("EOF reached after %d txns.\n", r.records)
	return r.out.err
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
	f, err := createCopy(file, cmp.Or(out, fmt.Sprintf("%s.chopped%d", file, int64(last))))
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
	f.warnOfName(o)
	return f.name, nil
}

func chop(l *storage.LogFile, f *newFile, last zxid.Zxid) (int, error) {
	f.write(storage.AppendLogHeader(nil))
	var highest zxid.Zxid
	for n := 0; ; n++ {
		rec, err := l.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, notFound(l, last, highest)
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

// notFound says that a log ends before the transaction last, and at what.
func notFound(l *storage.LogFile, last, highest zxid.Zxid) error {
	rest, err := l.Rest()
	if err != nil {
		return err
	}
	if rest.Torn > 0 {
		return fmt.Errorf("it has no transaction %v that can be read: at offset %d, behind %v: %s", last, rest.Offset, highest, rest.Why)
	}
	return fmt.Errorf("it has no transaction %v; the last one is %v", last, highest)
}
