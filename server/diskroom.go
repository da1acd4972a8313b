package server

import (
	"fmt"
	"io"
)

// What the admin commands write to the disk is not worth stopping the server for, and a log without room is what stops it.
// So they leave some.

// room refuses to go on when the disk of the snapshots is nearly full.
func (s *Server) room() error {
	if free, ok := diskFree(s.snapshotDir()); ok && free < diskReserveBytes {
		return fmt.Errorf("only %d MiB are free on the disk of dataDir, %d MiB have to stay free for the server itself", free>>20, int64(diskReserveBytes)>>20)
	}
	return nil
}

// roomCheck looks at the disk each time so much more is to be written.
type roomCheck struct {
	s    *Server
	left int
}

func (c *roomCheck) before(n int) error {
	if c.left -= n; c.left > 0 {
		return nil
	}
	c.left = roomStepBytes
	return c.s.room()
}

// roomReader reads what is to be written to the disk.
type roomReader struct {
	r     io.Reader
	check roomCheck
}

// Read implements io.Reader.
func (r *roomReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if roomErr := r.check.before(n); roomErr != nil {
		return 0, roomErr
	}
	return n, err
}

// withRoom wraps what gives the pieces of a snapshot.
func (s *Server) withRoom(next func([]byte, int) ([]byte, bool, error)) func([]byte, int) ([]byte, bool, error) {
	check := roomCheck{s: s}
	return func(b []byte, budget int) ([]byte, bool, error) {
		if err := check.before(budget); err != nil {
			return b, false, err
		}
		return next(b, budget)
	}
}
