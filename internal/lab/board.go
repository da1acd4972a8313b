package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Board is where a run is shown. Its methods are called by one goroutine.
type Board interface {
	// Begin comes first, before anybody is connected.
	Begin(c *Config)
	// Now tells how things are between two rows.
	Now(n Now)
	// Say tells what is worth a sentence.
	Say(text string)
	// Row adds a row.
	Row(r Row)
	// End comes last. It returns why something could not be written.
	End(s *Summary) error
}

// Now is how things are.
type Now struct {
	Holder  string
	Waiting int
	Paused  bool
	// KillHolder and KillWaiter are asked for and come next.
	KillHolder, KillWaiter bool
}

// errWriter keeps the first error, so that it need not be looked at after each line.
type errWriter struct {
	w   io.Writer
	err error
}

func (w *errWriter) print(text string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.w, text)
	}
}

// plain writes one line for each row.
type plain struct{ out errWriter }

// Plain returns a board for pipes and files.
func Plain(w io.Writer) Board { return &plain{errWriter{w: w}} }

func (p *plain) Begin(c *Config) {
	p.out.print(title(c) + "\n" + heading() + "\n")
}

func (p *plain) Now(Now) {}

func (p *plain) Say(text string) { p.out.print("# " + text + "\n") }

func (p *plain) Row(r Row) { p.out.print(r.text() + "\n") }

func (p *plain) End(s *Summary) error {
	p.out.print("\n" + strings.Join(s.text(), "\n") + "\n")
	return p.out.err
}

// jsonLines writes an object for each row, and one for the summary.
type jsonLines struct{ out errWriter }

// JSON returns a board for programs: one object on a line for each row, with the type "round", and in the end one of the type
// "summary".
func JSON(w io.Writer) Board { return &jsonLines{errWriter{w: w}} }

func (j *jsonLines) Begin(*Config) {}
func (j *jsonLines) Now(Now)       {}
func (j *jsonLines) Say(string)    {} // the summary has the note, and a row says who was killed

func (j *jsonLines) Row(r Row) {
	j.object(struct {
		Type string `json:"type"`
		Row
	}{"round", r})
}

func (j *jsonLines) End(s *Summary) error {
	j.object(struct {
		Type string `json:"type"`
		*Summary
	}{"summary", s})
	return j.out.err
}

func (j *jsonLines) object(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("lab: %+v: %v", v, err)) // numbers and strings always can
	}
	j.out.print(string(text) + "\n")
}

// columns are the scoreboard's.
const columns = "%5s  %-13s  %-6s %7s %8s %6s %8s %7s %9s"

func title(c *Config) string {
	return fmt.Sprintf("A lock with %d waiters, mode %s, server %s", c.Waiters, c.Mode, c.Server)
}

func heading() string {
	return fmt.Sprintf(columns, "round", "what", "winner", "waiters", "notified", "woken", "requests", "futile", "time")
}

func (r *Row) text() string {
	who := r.Winner
	if who == "" {
		who = "-"
	}
	return fmt.Sprintf(columns, strconv.Itoa(r.Round), r.Cause, who, strconv.Itoa(r.Waiters), orDash(r.Notifications), strconv.Itoa(r.WakeUps),
		orDash(r.Requests), orDash(r.Futile), timeText(r.HandOverMs))
}

func orDash(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// timeText is a time for people.
func timeText(ms float64) string {
	const second = 1000
	if ms >= second {
		return fmt.Sprintf("%.2f s", ms/second)
	}
	return fmt.Sprintf("%.2f ms", ms)
}

// text is the summary for people, in lines.
func (s *Summary) text() []string {
	timeout := time.Duration(s.SessionTimeoutMs) * time.Millisecond
	lines := []string{
		fmt.Sprintf("hand-overs     %d with %d waiters, mode %s, session timeout %v; killed: %d as holder, %d as waiter",
			s.HandOvers, s.Waiters, s.Mode, timeout, s.HoldersKilled, s.WaitersKilled),
		fmt.Sprintf("notifications  %s in all", orDash(s.Notifications)),
		fmt.Sprintf("wake-ups       %d", s.WakeUps),
		fmt.Sprintf("requests       %s, of which %s futile", orDash(s.Requests), orDash(s.Futile)),
	}
	if n := len(s.released); n > 0 {
		lines = append(lines, fmt.Sprintf("time           %s median, %s at most; releases: %d", timeText(s.HandOverMedianMs), timeText(s.HandOverMaxMs), n))
	}
	if n := len(s.killed); n > 0 {
		lines = append(lines, fmt.Sprintf("               %s median; killed holders: %d", timeText(s.KilledMedianMs), n))
	}
	lines = append(lines, "counted by     the server: "+s.Counters)
	if s.Note != "" {
		lines = append(lines, s.Note)
	}
	return lines
}
