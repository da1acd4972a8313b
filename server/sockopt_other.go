//go:build !linux

package server

import (
	"net"
	"time"
)

// setUserTimeout does nothing where the system has no such option: keep-alive and the deadlines of writes have to do.
func setUserTimeout(*net.TCPConn, time.Duration) {}
