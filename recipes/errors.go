package recipes

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/go-zookeeper/zk"
)

var (
	// ErrSessionLost is what fails when the session that it belongs to is over, or may be.
	ErrSessionLost = errors.New("recipes: the session is lost")
	// ErrUnknown is a write whose reply is lost: it may have been carried out or not.
	ErrUnknown = errors.New("recipes: the reply is lost, the write may have happened")
	// ErrClosed is a call on a client that is closed.
	ErrClosed = errors.New("recipes: the client is closed")
	// ErrPath is a path that ZooKeeper does not allow.
	ErrPath = errors.New("recipes: invalid path")
)

// wrap adds what was tried. Errors stay what they are for errors.Is.
func wrap(what, path string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, zk.ErrClosing) {
		return fmt.Errorf("%s %s: %w", what, path, ErrClosed)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// neverSent tells that a request did not leave this process.
func neverSent(err error) bool { return errors.Is(err, zk.ErrNoServer) }

// noAnswer tells that an error is not the server's answer but the lack of one.
func noAnswer(err error) bool {
	if err == nil || neverSent(err) {
		return false
	}
	var network net.Error
	return errors.Is(err, zk.ErrConnectionClosed) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// passing tells that the same read may succeed when it is tried again.
func passing(err error) bool {
	return noAnswer(err) || neverSent(err) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}

// unimplemented tells that the server does not know the request. Package zk has no name for that answer.
func unimplemented(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "unknown error: -6")
}
