package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"
)

// A file begins with a line of magic and a CRC32C, in hexadecimal, of all that follows: a line of JSON that says what the value
// is, and the bytes of the node.
const fileMagic = "zabra-config 1 "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the second line of a file.
type header struct {
	Path     string    `json:"path"` // whose value it is: the node that is followed, from the root
	Node     string    `json:"node"` // that holds the value
	Number   int64     `json:"number"`
	Zxid     int64     `json:"zxid"`
	Modified time.Time `json:"modified"`
	AsOf     time.Time `json:"asOf"`
}

// Load reads the last good version of a node from a file, for a program that cannot even connect. path is that of the
// node, or of the cohort's pointer, from the root of the ensemble. The error is fs.ErrNotExist if there is no file, ErrFile if
// it is damaged or belongs to another node, and ErrRefused if the value is not good.
func Load[T any](file, path string, o Options[T]) (*Version[T], error) {
	if err := o.normalize(); err != nil {
		return nil, err
	}
	h, data, err := readFile(file)
	if err != nil {
		return nil, err
	}
	if h.Path != path {
		return nil, fmt.Errorf("%w: %s is of %s and not of %s", ErrFile, file, h.Path, path)
	}
	value, err := o.decode(file, data)
	if err != nil {
		return nil, err
	}
	return &Version[T]{
		Value: value, Path: h.Node, Number: h.Number, Zxid: h.Zxid, Modified: h.Modified, FromFile: true, AsOf: h.AsOf,
	}, nil
}

func readFile(name string) (h header, data []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return h, nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return h, nil, fmt.Errorf("config: %w", err)
	}
	if len(all) > fileBytesMax {
		return h, nil, fmt.Errorf("%w: %s has more than %d bytes", ErrFile, name, fileBytesMax)
	}
	first, rest, _ := bytes.Cut(all, []byte("\n"))
	if string(first) != checksum(rest) {
		return h, nil, fmt.Errorf("%w: %s is damaged: it begins with %.40q and not with %q", ErrFile, name, first, checksum(rest))
	}
	second, data, found := bytes.Cut(rest, []byte("\n"))
	if !found {
		return h, nil, fmt.Errorf("%w: %s has no value", ErrFile, name)
	}
	if err := json.Unmarshal(second, &h); err != nil {
		return h, nil, fmt.Errorf("%w: %s: second line: %w", ErrFile, name, err)
	}
	return h, data, nil
}

// checksum is the first line of a file with that rest.
func checksum(rest []byte) string {
	return fmt.Sprintf("%s%08x", fileMagic, crc32.Checksum(rest, castagnoli))
}

// save writes a version to the file. The rename makes it whole: a crash leaves the old file or the new one.
func save(name, path string, asOf time.Time, r raw) error {
	second, err := json.Marshal(header{path, r.path, r.number, r.stat.Mzxid, time.UnixMilli(r.stat.Mtime).UTC(), asOf.UTC()})
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	rest := append(append(second, '\n'), r.data...)
	if err := replace(name, append([]byte(checksum(rest)+"\n"), rest...)); err != nil {
		return fmt.Errorf("config: keeping the last good version: %w", err)
	}
	return nil
}

// replace writes a file beside the old one and puts it in its place. The directory is synced, too: otherwise the rename
// could be lost, which is harmless, or be there before the contents on some file systems, which is not.
func replace(name string, contents []byte) error {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, filepath.Base(name)+".new*")
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
