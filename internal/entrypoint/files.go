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
	have, err := keep(s.ConfigPath(), config)
	if err != nil {
		return nil, fmt.Errorf("%w: mount a folder that can be written on %s, or a zoo.cfg of your own", err, s.ConfDir)
	}
	if have != config && s.configures() {
		notes = append(notes, s.ConfigPath()+" is there and counts; the environment variables ask for something else")
	}
	path := filepath.Join(s.DataDir, "myid")
	have, err = keep(path, strconv.FormatInt(id, 10)+"\n")
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
// not at all.
func keep(path, text string) (string, error) {
	have, err := os.ReadFile(filepath.Clean(path))
	if err == nil {
		return string(have), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return text, nil
}
