package lab

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Mode is how the clients wait.
type Mode string

const (
	// Queue is the recipe: each waits for the one directly before it.
	Queue Mode = "queue"
	// Herd is what not to do: all wait for the lock's node itself, and run for it when it goes.
	Herd Mode = "herd"
)

// Modes are those that there are.
var Modes = []string{string(Queue), string(Herd)}

const (
	waitersMax        = 1000
	roundsMax         = 100_000
	holdMax           = time.Minute
	sessionTimeoutMin = 200 * time.Millisecond
	sessionTimeoutMax = time.Minute
	// connectTimeMax bounds how long the server may take to grant one session.
	connectTimeMax = 15 * time.Second
	// connectingMax is how many clients connect at a time.
	connectingMax = 32
	// handOverTime bounds a hand-over, beyond what the session timeout has to do with it.
	handOverTime = time.Minute
	// pollTime is the time between two looks at what nobody tells.
	pollTime = 20 * time.Millisecond
	// closeTime bounds the removal of the lab's nodes at the end.
	closeTime = 5 * time.Second
)

// Config is what is to be done.
type Config struct {
	Mode    Mode
	Waiters int // beside the holder
	Rounds  int // hand-overs
	// Server is the host and port of the server, the same for all clients: watches belong to one server.
	Server string
	// Meter reads the counters of that server.
	Meter *Meter
	// SessionTimeout is what is asked for, Hold how long each holder keeps the lock.
	SessionTimeout, Hold time.Duration
	// KillHolderEvery and KillWaiterEvery kill in each nth round; 0 is never.
	KillHolderEvery, KillWaiterEvery int
	// Keys are what somebody at the keyboard wants; nil if nobody is there.
	Keys <-chan Key
	// connectTime is how long the server may take to grant one session, connectTimeMax if it is 0. Tests are less patient.
	connectTime time.Duration
}

// Default is a configuration without a server.
func Default() Config {
	return Config{Mode: Queue, Waiters: 50, Rounds: 20, SessionTimeout: 5 * time.Second, Hold: 100 * time.Millisecond}
}

// Check reports all faults together, in the words of the command line.
func (c *Config) Check() error {
	var errs []error
	if c.Mode != Queue && c.Mode != Herd {
		errs = append(errs, fmt.Errorf("--mode %q: choose one of %s", c.Mode, strings.Join(Modes, ", ")))
	}
	between := func(flag string, value, low, high int) {
		if value < low || value > high {
			errs = append(errs, fmt.Errorf("--%s %d: it must be between %d and %d", flag, value, low, high))
		}
	}
	between("waiters", c.Waiters, 1, waitersMax)
	between("rounds", c.Rounds, 1, roundsMax)
	between("kill-holder-every", c.KillHolderEvery, 0, roundsMax)
	between("kill-waiter-every", c.KillWaiterEvery, 0, roundsMax)
	if c.Hold < 0 || c.Hold > holdMax {
		errs = append(errs, fmt.Errorf("--hold %v: it must be between 0s and %v", c.Hold, holdMax))
	}
	if c.SessionTimeout < sessionTimeoutMin || c.SessionTimeout > sessionTimeoutMax {
		errs = append(errs, fmt.Errorf("--session-timeout %v: it must be between %v and %v", c.SessionTimeout, sessionTimeoutMin, sessionTimeoutMax))
	}
	return errors.Join(errs...)
}

// CheckServer tells what is wrong with the address of a server.
func CheckServer(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return fmt.Errorf("--server %q: it must be HOST:PORT, of one server", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("--server %q: the port must be between 1 and 65535", addr)
	}
	return nil
}

// Key is a wish of somebody at the keyboard.
type Key byte

// The keys that mean something.
const (
	KeyKillWaiter Key = 'k'
	KeyKillHolder Key = 'h'
	KeyPause      Key = ' '
	KeyQuit       Key = 'q'
)
