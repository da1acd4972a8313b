package storage

import (
	"errors"
	"fmt"

	"zabra/zab/zxid"
)

// EpochsForStart returns the epochs with which a member of an ensemble starts, given the last transaction that was loaded,
// and sees to it that the epoch files say the same. Begin comes before it.
//
// A missing file stands for the epoch of last. A current epoch below that of last is what a crash leaves between a
// history and its epoch: a log that holds a transaction of an epoch holds all that the epoch began with. It is raised when
// the log is of this server's making, or currentEpoch.tmp shows that ZooKeeper was about to do so; otherwise the directory
// is refused, as by ZooKeeper. So is an accepted epoch below the current one.
func (s *Store) EpochsForStart(last zxid.Zxid) (accepted, current zxid.Epoch, err error) {
	if err := s.writable(); err != nil {
		return 0, 0, err
	}
	e, err := s.Epochs()
	if err != nil {
		return 0, 0, err
	}
	want := e
	if !e.HasAccepted {
		want.Accepted = last.Epoch()
	}
	if !e.HasCurrent {
		want.Current = last.Epoch()
	}
	if want.Current < last.Epoch() {
		if !s.wrote(last.Epoch()) && !(e.HasCurrentTmp && e.CurrentTmp >= last.Epoch()) {
			return 0, 0, &DirError{Dir: s.snapDir, Why: fmt.Sprintf(
				"The current epoch, %d, is older than the last zxid, %v, and it was not this server that wrote it", want.Current, last)}
		}
		want.Current = last.Epoch()
		want.Accepted = max(want.Accepted, want.Current)
	}
	if want.Accepted < want.Current {
		return 0, 0, &DirError{Dir: s.snapDir, Why: fmt.Sprintf(
			"The accepted epoch, %d, is less than the current epoch, %d", want.Accepted, want.Current)}
	}
	return want.Accepted, want.Current, s.writeEpochs(e, want)
}

// writeEpochs writes the epoch files that differ. The accepted epoch goes first: it must never be the lower one.
func (s *Store) writeEpochs(have, want Epochs) error {
	if !have.HasAccepted || have.Accepted != want.Accepted {
		if err := s.SetAcceptedEpoch(want.Accepted); err != nil {
			return err
		}
	}
	if !have.HasCurrent || have.Current != want.Current {
		return s.SetCurrentEpoch(want.Current)
	}
	return nil
}

// wrote tells whether this server itself wrote transactions of an epoch, or of a later one.
func (s *Store) wrote(e zxid.Epoch) bool { return s.state.rec.own.Epoch() >= e }

// levelEpoch raises the current epoch to that of the log if it is below, so that ZooKeeper starts on a directory that was
// closed between a history and its epoch. Where there are no epoch files, as with a standalone server, it writes none.
func (s *Store) levelEpoch() error {
	last := s.appender.last
	e, err := s.Epochs()
	var bad *epochError
	if errors.As(err, &bad) {
		return nil // whoever needs the epochs is told
	}
	if err != nil || !e.HasCurrent || e.Current >= last.Epoch() || !s.wrote(last.Epoch()) {
		return err
	}
	want := e
	want.Current = last.Epoch()
	want.Accepted = max(e.Accepted, want.Current)
	return s.writeEpochs(e, want)
}
