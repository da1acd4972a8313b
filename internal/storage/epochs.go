package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"zabra/zab/zxid"
)

// Epochs is what the epoch files of ZooKeeper say. A missing file is told apart from epoch 0.
type Epochs struct {
	Accepted, Current       zxid.Epoch
	HasAccepted, HasCurrent bool
	// CurrentTmp is the value of currentEpoch.tmp, which a crash between its sync and its rename leaves. ZooKeeper
	// adopts it when the log has reached that epoch.
	CurrentTmp    zxid.Epoch
	HasCurrentTmp bool
}

// epochMax is the highest epoch that ZooKeeper can represent in a zxid.
const epochMax = 1<<31 - 1

// Epochs reads the epoch files.
func (s *Store) Epochs() (Epochs, error) {
	var e Epochs
	if err := s.err(); err != nil {
		return e, err
	}
	var err error
	if e.Accepted, e.HasAccepted, err = s.readEpoch(acceptedName); err != nil {
		return Epochs{}, err
	}
	if e.Current, e.HasCurrent, err = s.readEpoch(currentName); err != nil {
		return Epochs{}, err
	}
	// A torn temporary file means that the change never happened.
	e.CurrentTmp, e.HasCurrentTmp, err = s.readEpoch(currentName + tmpSuffix)
	var bad *epochError
	if err != nil && !errors.As(err, &bad) {
		return Epochs{}, err
	}
	return e, nil
}

// epochError says that an epoch file does not hold a number.
type epochError struct{ name, text string }

func (e *epochError) Error() string {
	return fmt.Sprintf("storage: %s holds %q instead of an epoch", e.name, e.text)
}

func (s *Store) readEpoch(name string) (zxid.Epoch, bool, error) {
	f, err := s.fs.Open(s.snapPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	b := make([]byte, epochFileBytesMax)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return 0, false, err
	}
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	v, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil || v < 0 || v > epochMax || n == epochFileBytesMax {
		return 0, false, &epochError{name: s.snapPath(name), text: line}
	}
	return zxid.Epoch(v), true, nil
}

// readEpochPair reads the epoch files for the state file. One that holds no number counts as -2, so that it never equals
// what the state file knows; whoever needs the epochs gets the error from Epochs.
func (s *Store) readEpochPair() (epochPair, error) {
	read := func(name string) (int64, error) {
		e, has, err := s.readEpoch(name)
		var bad *epochError
		switch {
		case errors.As(err, &bad):
			return -2, nil
		case err != nil:
			return 0, err
		case !has:
			return -1, nil
		}
		return int64(e), nil
	}
	accepted, err := read(acceptedName)
	if err != nil {
		return epochPair{}, err
	}
	current, err := read(currentName)
	return epochPair{accepted, current}, err
}

// SetAcceptedEpoch makes e durable as the last epoch that this server promised itself to.
func (s *Store) SetAcceptedEpoch(e zxid.Epoch) error {
	return s.setEpoch(acceptedName, e, func(p *epochPair) { p.accepted = int64(e) })
}

// SetCurrentEpoch makes e durable as the last epoch whose history this server has in full.
func (s *Store) SetCurrentEpoch(e zxid.Epoch) error {
	return s.setEpoch(currentName, e, func(p *epochPair) { p.current = int64(e) })
}

// setEpoch announces the change in the state file first, so that after a crash at any point the state file knows both
// values that the epoch file may have.
func (s *Store) setEpoch(name string, e zxid.Epoch, change func(*epochPair)) error {
	if err := s.writable(); err != nil {
		return err
	}
	if e > epochMax {
		return fmt.Errorf("storage: epoch %d is too large", e)
	}
	rec := &s.state.rec
	rec.previous = rec.epochs
	change(&rec.epochs)
	if err := s.writeState(true); err != nil {
		return err
	}
	return s.fail(s.replaceFile(name, strconv.FormatUint(uint64(e), 10)))
}

// replaceFile gives a small file in the snapshot directory new content in one step.
func (s *Store) replaceFile(name, content string) error {
	tmp := s.snapPath(name + tmpSuffix)
	f, err := s.fs.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(content), 0)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = s.fs.Rename(tmp, s.snapPath(name))
	}
	if err == nil {
		err = s.fs.SyncDir(s.snapDir)
	}
	return err
}

// TakeInitializeMarker removes the marker file "initialize" beside the version-2 folders and tells whether it was there.
// It makes an empty database trusted once where db.autocreate is false, which a member of an ensemble refuses to start
// with so far: nothing but tests calls it yet. ZooKeeper looks for it in dataLogDir, while its helper script puts it into
// dataDir, so both places count.
func (s *Store) TakeInitializeMarker() (bool, error) {
	if err := s.err(); err != nil {
		return false, err
	}
	found := false
	for _, dir := range []string{s.cfg.LogDir, s.cfg.SnapDir} {
		err := s.fs.Remove(dir + "/" + initializeMarker)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = s.fs.SyncDir(dir)
		}
		if err != nil {
			return found, s.fail(err)
		}
		found = true
	}
	return found, nil
}
