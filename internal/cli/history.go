package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// historyFile keeps the lines of interactive sessions. They may hold secrets, so that only its owner can read it, whoever
// has made it. It is a convenience: what fails leaves the history of this session, and no more.
type historyFile struct {
	f    *os.File // nil if there is none
	last string
}

// openHistory returns the file and the lines that are in it, the newest last. With more lines than it may have, it is
// written anew without the oldest.
func openHistory(path string) (*historyFile, []string) {
	h := &historyFile{}
	if path == "" {
		return h, nil
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	f, err := openPrivate(path)
	if err != nil {
		return h, nil
	}
	h.f = f
	lines, whole, err := readHistory(f)
	if err != nil {
		return h, nil
	}
	if !whole {
		h.replace(path, lines)
	}
	if len(lines) > 0 {
		h.last = lines[len(lines)-1]
	}
	return h, lines
}

// openPrivate opens a file to append to, which nobody else can read afterwards.
func openPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("not a regular file")
	case err == nil && info.Mode().Perm() != 0o600:
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readHistory returns the newest lines. whole tells whether they are all that the file has.
func readHistory(f *os.File) (lines []string, whole bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, false, err
	}
	from := max(0, size-historyFileBytesMax)
	data := make([]byte, size-from)
	if _, err := f.ReadAt(data, from); err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if from > 0 { // it begins in the middle of a line
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	old := max(0, len(lines)-historyFileLinesMax)
	return lines[old:], from == 0 && old == 0, nil
}

// replace puts a file with these lines in place of the one that there is.
func (h *historyFile) replace(path string, lines []string) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".zabra-history-*") // for its owner alone
	if err != nil {
		return
	}
	defer os.Remove(temp.Name()) // it is gone already if all went well
	_, err = io.WriteString(temp, strings.Join(lines, "\n")+"\n")
	if err = errors.Join(err, temp.Close()); err != nil {
		return
	}
	f, err := os.OpenFile(temp.Name(), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		f.Close()
		return
	}
	h.f.Close()
	h.f = f
}

// add appends a line, unless it is the last one again.
func (h *historyFile) add(line string) {
	if h.f == nil || line == h.last {
		return
	}
	h.last = line
	_, _ = io.WriteString(h.f, line+"\n") // see the type
}

func (h *historyFile) close() {
	if h.f != nil {
		h.f.Close()
	}
}
