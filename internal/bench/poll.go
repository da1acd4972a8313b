package bench

import (
	"errors"
	"net/netip"
	"time"
)

// errAgain says that a socket has nothing to read, or no room to write, at this moment.
var errAgain = errors.New("bench: not now")

// poller waits for the sockets of one thread. All methods but wake are for that thread alone.
type poller interface {
	// dial begins to connect the session's socket. When it is connected, or that has failed, an event says writable.
	dial(s *session, addr netip.AddrPort) error
	// dialled returns how that went.
	dialled(s *session) error
	// read fills b with what there is; errAgain if there is nothing, io.EOF at the end. Who gets less than he asked for
	// need not try again, unless the event said ended: the next bytes make a new event.
	read(s *session, b []byte) (int, error)
	// write takes what there is room for; an event says writable when there is more.
	write(s *session, b []byte) (int, error)
	// cut ends the connection at once, with a reset: nothing of it remains, not even a port that waits.
	cut(s *session)
	// wait returns what has happened, nothing after the timeout or a wake. The slice is valid until the next call.
	wait(timeout time.Duration) ([]event, error)
	// wake ends a wait, the current one or the next. It may be called from any goroutine.
	wake()
	close()
}

// event says what can be done with a socket, or was reported of it before it was cut: see session.gen.
type event struct {
	s   *session
	gen uint32 // of the socket
	// readable and writable may be said of sockets that are not; ended says that the other side has closed.
	readable, writable, ended bool
}
