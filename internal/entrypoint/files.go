package entrypoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The modes of the files. zoo.cfg may hold passwords, and the server is the only one to read it.
const (
	configMode = 0o640
	myIDMode   = 0o644
)

// Prepare writes zoo.cfg and myid where there are none. Notes tell where files that are there differ from what the
// environment asks for; they count.
func (s *Settings) Prepare() (notes []string, err error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	id, err := s.MyID()
	if err != nil {
		return nil, err
	}
	have, err := keep(s.ConfigPath(), config, configMode)
	if err != nil {
		return nil, fmt.Errorf("%w: mount a folder that can be written on %s, or a zoo.cfg of your own", err, s.ConfDir)
	}
	if have != config && s.configures() {
		notes = append(notes, s.ConfigPath()+" is there and counts; the environment variables ask for something else")
	}
	path := filepath.Join(s.DataDir, "myid")
	have, err = keep(path, strconv.FormatInt(id, 10)+"\n", myIDMode)
	if err != nil {
		return nil, fmt.Errorf("%w: mount a folder that can be written on %s", err, s.DataDir)
	}
	first, _, _ := strings.Cut(have, "\n")
	if first = strings.TrimSpace(first); first != strconv.FormatInt(id, 10) && s.identifies() {
		notes = append(notes, fmt.Sprintf("%s says %s and counts; the environment says %d", path, first, id))
	}
	return notes, nil
}

// configures tells whether a variable is set that goes into zoo.cfg.
func (s *Settings) configures() bool {
	for _, l := range lines[2:] {
		if s.vars[l.variable] != "" {
			return true
		}
	}
	return s.vars["ZOO_SERVERS"]+s.vars["ZOO_CFG_EXTRA"]+s.vars[whitelistVariable]+s.vars[countVariable] != ""
}

// identifies tells whether a variable is set that makes myid.
func (s *Settings) identifies() bool { return s.vars["ZOO_MY_ID"]+s.vars[countVariable] != "" }

// keep returns what the file holds, which is the text if there was no file. The file comes into being with all its text or
// not at all, and is there after a power cut.
func keep(path, text string, mode fs.FileMode) (string, error) {
	have, err := os.ReadFile(filepath.Clean(path))
	if err == nil {
		return string(have), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	err = create(path, text, mode)
	if errors.Is(err, fs.ErrExist) { // somebody else was faster
		have, err = os.ReadFile(filepath.Clean(path))
		return string(have), err
	}
	return text, err
}

// create makes a file that was not there. If there is one by now, it is left alone, and the error matches [fs.ErrExist].
func create(path, text string, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // unlike a renaming it replaces nothing
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) { // a file system without links
		if err = os.Rename(f.Name(), path); err == nil {
			return syncFolder(dir)
		}
	}
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		return err
	}
	return syncFolder(dir)
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
