package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// show plays a run of three rows.
func show(t *testing.T, b Board) *Summary {
	t.Helper()
	c := Default()
	c.Server, c.Waiters = "10.0.0.1:2181", 3
	b.Begin(&c)
	sum := &Summary{Mode: c.Mode, Waiters: c.Waiters, Server: c.Server, Counters: "mntr of 10.0.0.1:2181", SessionTimeoutMs: 5000}
	for _, row := range []Row{
		{Round: 1, Cause: Released, Winner: "c2", Waiters: 3, Notifications: number(1), WakeUps: 1, Requests: number(2), Futile: number(0), HandOverMs: 1.5},
		{Round: 2, Cause: WaiterKilled, Killed: "c4", Waiters: 3, Notifications: number(1), WakeUps: 1, Requests: number(2), Futile: number(2), HandOverMs: 4800},
		{Round: 2, Cause: HolderKilled, Winner: "c3", Killed: "c2", Waiters: 3, Notifications: number(1), WakeUps: 1, Requests: number(1), Futile: number(0), HandOverMs: 5012.5},
	} {
		b.Now(Now{Holder: "c1", Waiting: 3})
		if row.Killed != "" {
			b.Say(row.Killed + " is killed")
		}
		sum.add(row)
		b.Row(row)
	}
	b.Now(Now{Holder: "c3", Waiting: 3, Paused: true, KillHolder: true, KillWaiter: true})
	require.NoError(t, b.End(sum))
	return sum
}

var rowsText = []string{
	"round  what           winner waiters notified  woken requests  futile      time",
	"    1  released       c2           3        1      1        2       0   1.50 ms",
	"    2  waiter killed  -            3        1      1        2       2    4.80 s",
	"    2  holder killed  c3           3        1      1        1       0    5.01 s",
}

var summaryText = []string{
	"hand-overs     2 with 3 waiters, mode queue, session timeout 5s; killed: 1 as holder, 1 as waiter",
	"notifications  3 in all",
	"wake-ups       3",
	"requests       5, of which 2 futile",
	"time           1.50 ms median, 1.50 ms at most; releases: 1",
	"               5.01 s median; killed holders: 1",
	"counted by     the server: mntr of 10.0.0.1:2181",
}

func TestPlainBoard(t *testing.T) {
	var out bytes.Buffer
	show(t, Plain(&out))
	want := append([]string{"A lock with 3 waiters, mode queue, server 10.0.0.1:2181"}, rowsText[:2]...)
	want = append(want, "# c4 is killed", rowsText[2], "# c2 is killed", rowsText[3], "")
	want = append(append(want, summaryText...), "")
	require.Equal(t, want, strings.Split(out.String(), "\n"))
}

func TestJSONBoard(t *testing.T) {
	var out bytes.Buffer
	show(t, JSON(&out))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 4)
	require.JSONEq(t, `{"type":"round","round":1,"cause":"released","winner":"c2","waiters":3,"notifications":1,"wake_ups":1,"requests":2,"futile":0,"hand_over_ms":1.5}`, lines[0])
	require.JSONEq(t, `{"type":"round","round":2,"cause":"waiter killed","killed":"c4","waiters":3,"notifications":1,"wake_ups":1,"requests":2,"futile":2,"hand_over_ms":4800}`, lines[1])
	require.JSONEq(t, `{"type":"summary","mode":"queue","waiters":3,"server":"10.0.0.1:2181","counters":"mntr of 10.0.0.1:2181","session_timeout_ms":5000,
		"hand_overs":2,"holders_killed":1,"waiters_killed":1,"notifications":3,"wake_ups":3,"requests":5,"futile":2,
		"hand_over_median_ms":1.5,"hand_over_max_ms":1.5,"killed_holder_median_ms":5012.5}`, lines[3])
}

// A number that is not known is no number.
func TestUnknownNumbers(t *testing.T) {
	row := Row{Round: 7, Cause: Released, Winner: "c1"}
	require.Equal(t, "    7  released       c1           0        -      0        -       -   0.00 ms", row.text())
	text, err := json.Marshal(row)
	require.NoError(t, err)
	require.Contains(t, string(text), `"notifications":null`)
	var s Summary
	s.add(Row{Requests: number(1)})
	s.add(row)
	s.add(Row{Requests: number(1)})
	require.Nil(t, s.Requests, "a sum of which a part is not known")
	s.Note = "Not told."
	lines := s.text()
	require.Contains(t, lines, "requests       -, of which - futile")
	require.Equal(t, "Not told.", lines[len(lines)-1])
}

func TestMedian(t *testing.T) {
	var s Summary
	for _, v := range []float64{5, 1, 3, 9} {
		s.add(Row{Cause: Released, HandOverMs: v})
	}
	require.Equal(t, [...]float64{4, 9}, [...]float64{s.HandOverMedianMs, s.HandOverMaxMs})
}

// terminal is as much of one as the board uses.
type terminal struct {
	t     *testing.T
	lines []string
	row   int
	col   int
}

// Write implements io.Writer.
func (s *terminal) Write(p []byte) (int, error) {
	text := string(p)
	for text != "" {
		rest, n := text, 0
		switch {
		case strings.HasPrefix(text, "\r"):
			s.col, rest = 0, text[1:]
		case strings.HasPrefix(text, "\n"):
			s.row, rest = s.row+1, text[1:]
		case strings.HasPrefix(text, clearToEnd):
			s.line(s.row)
			s.lines[s.row], rest = s.lines[s.row][:s.col], text[len(clearToEnd):]
		case strings.HasPrefix(text, clearScreen):
			s.lines, rest = s.lines[:min(s.row, len(s.lines))], text[len(clearScreen):]
		default:
			if _, err := fmt.Sscanf(text, cursorUp, &n); err == nil {
				require.LessOrEqual(s.t, n, s.row)
				s.row, rest = s.row-n, text[strings.IndexByte(text, 'A')+1:]
				break
			}
			s.line(s.row)
			require.Equal(s.t, byte(0), text[0]&0x80)
			s.lines[s.row] = s.lines[s.row][:s.col] + text[:1] + s.lines[s.row][min(s.col+1, len(s.lines[s.row])):]
			s.col, rest = s.col+1, text[1:]
		}
		text = rest
	}
	return len(p), nil
}

func (s *terminal) line(row int) {
	for len(s.lines) <= row {
		s.lines = append(s.lines, "")
	}
}

func TestLiveBoard(t *testing.T) {
	screen := &terminal{t: t}
	b := Live(screen, func() (int, int) { return 0, 0 }, true).(*live)
	show(t, &spy{b, func() {
		require.Equal(t, append(append([]string{"A lock with 3 waiters, mode queue, server 10.0.0.1:2181"}, rowsText...),
			"c3 holds the lock, 3 wait; to be killed: the holder, a waiter; paused",
			"c2 is killed", "", "k kills a waiter   h kills the holder   space pauses   q quits"), screen.lines)
	}})
	require.Equal(t, append(append([]string{"A lock with 3 waiters, mode queue, server 10.0.0.1:2181"}, rowsText...), summaryText...), screen.lines)
}

// spy looks at the board before its end.
type spy struct {
	Board
	look func()
}

func (s *spy) End(sum *Summary) error {
	s.look()
	return s.Board.End(sum)
}

// A small terminal shows the last rows, cut to its width, and no line is broken.
func TestLiveBoardOnASmallTerminal(t *testing.T) {
	screen := &terminal{t: t}
	b := Live(screen, func() (int, int) { return 40, 5 }, false)
	c := Default()
	b.Begin(&c)
	for i := range 20 {
		b.Row(Row{Round: i, Cause: Released})
	}
	b.Now(Now{Holder: "c1"})
	b.Say("This is a sentence that is longer than the terminal is wide.")
	require.Len(t, screen.lines, 2+liveRowsMin+1+2)
	require.Equal(t, "   19  released       -            0   ", screen.lines[4])
	require.Equal(t, []string{"This is a sentence that is longer than", "the terminal is wide."}, screen.lines[6:])
	for _, line := range screen.lines {
		require.Less(t, len(line), 40)
	}
}

// What cannot be written is told in the end.
func TestBoardThatCannotBeWritten(t *testing.T) {
	for _, b := range []Board{Plain(full{}), JSON(full{}), Live(full{}, func() (int, int) { return 80, 24 }, false)} {
		c := Default()
		b.Begin(&c)
		b.Row(Row{})
		require.ErrorIs(t, b.End(&Summary{}), errFull)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
