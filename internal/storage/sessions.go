package storage

import "zabra/zab/zxid"

// SessionMark returns the highest session id that ReserveSessions has ever reserved here, 0 if none. It holds also when
// another server has worked on the directory meanwhile.
func (s *Store) SessionMark() zxid.SessionID {
	if s.state == nil {
		return 0
	}
	return s.state.rec.sessions
}

// ReserveSessions makes it durable that session ids up to upTo may be in use from now on. A server that starts later on
// this directory makes none of them, whatever its clock says: sessions that have come and gone leave no other trace once
// a snapshot has taken the place of the log. It belongs to the disk goroutine, after Begin.
func (s *Store) ReserveSessions(upTo zxid.SessionID) error {
	if err := s.writable(); err != nil {
		return err
	}
	s.state.rec.sessions = upTo
	return s.writeState(true)
}
