package lab

import (
	"slices"
	"time"
)

// Cause is what a row of the scoreboard is about.
type Cause string

const (
	// Released is a hand-over by the holder.
	Released Cause = "released"
	// HolderKilled is a hand-over by the end of the session of a holder that was killed.
	HolderKilled Cause = "holder killed"
	// WaiterKilled is the end of the session of a waiter that was killed. Nobody wins by it.
	WaiterKilled Cause = "waiter killed"
)

// Row is one row of the scoreboard: what happened from a release, or a kill, until everybody waits again. What the server
// does not tell is nil.
type Row struct {
	// Round counts the hand-overs, from 1. A row about a waiter has the number of the hand-over before which it was killed.
	Round int   `json:"round"`
	Cause Cause `json:"cause"`
	// Winner is who has the lock now, and Killed who was killed; "" for nobody.
	Winner string `json:"winner,omitempty"`
	Killed string `json:"killed,omitempty"`
	// Waiters is how many waited when it began.
	Waiters int `json:"waiters"`
	// Notifications are those that the server has sent.
	Notifications *int64 `json:"notifications"`
	// WakeUps are the waiters that an event has reached, by what came in on their connections.
	WakeUps int `json:"wake_ups"`
	// Requests are those that the server has received, and Futile those of them that were neither the release nor made by the
	// winner.
	Requests *int64 `json:"requests"`
	Futile   *int64 `json:"futile"`
	// HandOverMs is the time from the call that releases the lock, or the kill, until the winner knows that it has it.
	HandOverMs float64 `json:"hand_over_ms"`
}

// Summary is what came of a run.
type Summary struct {
	Mode    Mode   `json:"mode"`
	Waiters int    `json:"waiters"`
	Server  string `json:"server"`
	// Counters says where notifications and requests were read, Note what could not be.
	Counters string `json:"counters"`
	Note     string `json:"note,omitempty"`
	// SessionTimeoutMs is what the server has granted.
	SessionTimeoutMs int64 `json:"session_timeout_ms"`

	HandOvers     int `json:"hand_overs"` // releases, and killed holders
	HoldersKilled int `json:"holders_killed"`
	WaitersKilled int `json:"waiters_killed"`
	// Sums over all rows.
	Notifications *int64 `json:"notifications"`
	WakeUps       int64  `json:"wake_ups"`
	Requests      *int64 `json:"requests"`
	Futile        *int64 `json:"futile"`
	// The median and the longest of the hand-overs by a release; 0 without any.
	HandOverMedianMs float64 `json:"hand_over_median_ms"`
	HandOverMaxMs    float64 `json:"hand_over_max_ms"`
	// The median of the hand-overs after a killed holder.
	KilledMedianMs float64 `json:"killed_holder_median_ms"`

	released, killed []float64
}

// add takes up a row.
func (s *Summary) add(r Row) {
	first := s.HandOvers+s.WaitersKilled == 0
	s.Notifications = sum(s.Notifications, r.Notifications, first)
	s.Requests = sum(s.Requests, r.Requests, first)
	s.Futile = sum(s.Futile, r.Futile, first)
	s.WakeUps += int64(r.WakeUps)
	switch r.Cause {
	case WaiterKilled:
		s.WaitersKilled++
		return
	case HolderKilled:
		s.HoldersKilled++
		s.killed = insert(s.killed, r.HandOverMs)
		s.KilledMedianMs = median(s.killed)
	default:
		s.released = insert(s.released, r.HandOverMs)
		s.HandOverMedianMs, s.HandOverMaxMs = median(s.released), s.released[len(s.released)-1]
	}
	s.HandOvers++
}

// sum is nil as soon as one of its parts is.
func sum(total, part *int64, first bool) *int64 {
	switch {
	case part == nil || total == nil && !first:
		return nil
	case first:
		n := *part
		return &n
	}
	n := *total + *part
	return &n
}

func insert(sorted []float64, v float64) []float64 {
	at, _ := slices.BinarySearch(sorted, v)
	return slices.Insert(sorted, at, v)
}

func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// ms is a time in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
