package server

import "errors"

// ErrServerClosed is returned by [Server.Serve] after [Server.Shutdown] or [Server.Close]: the normal end.
var ErrServerClosed = errors.New("server: closed")

// Stage tells in which part of its start a server failed. ZooKeeper's exit codes distinguish them.
type Stage uint8

const (
	// StageConfig: the configuration asks for something that cannot be done.
	StageConfig Stage = iota + 1
	// StageDataDir: a data directory is missing, cannot be written, or is in use by another server.
	StageDataDir
	// StageRecovery: the data directory was opened, but its content is damaged or incomplete.
	StageRecovery
	// StagePort: the client port cannot be bound.
	StagePort
	// StageElectionPort: the election port of an ensemble member cannot be bound.
	StageElectionPort
	// StageMetricsPort: the port for Prometheus cannot be bound.
	StageMetricsPort
)

// StartError is the error of [New].
type StartError struct {
	Stage Stage
	Err   error
}

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }
