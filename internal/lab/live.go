package lab

import (
	"fmt"
	"io"
	"strings"
)

const (
	// liveRowsMin is how many rows a small terminal shows at least; liveOtherLines is how many other lines there are.
	liveRowsMin    = 3
	liveOtherLines = 7
	// Sequences of terminals: so many lines up, and empty from here to the end of the line or the screen.
	cursorUp    = "\x1b[%dA"
	clearToEnd  = "\x1b[K"
	clearScreen = "\x1b[J"
)

// live draws the scoreboard in place.
type live struct {
	out errWriter
	// size returns the terminal's width and height.
	size func() (width, height int)
	// keys is set if somebody is at the keyboard.
	keys  bool
	drawn int // lines that stand on the screen
	cfg   *Config
	now   Now
	said  string
	rows  []Row
}

// Live returns a board for a terminal of the size that size tells, 80 by 24 if it does not know. With keys it says which keys
// there are.
func Live(w io.Writer, size func() (width, height int), keys bool) Board {
	return &live{out: errWriter{w: w}, size: size, keys: keys}
}

func (v *live) Begin(c *Config) {
	v.cfg = c
	v.said = fmt.Sprintf("%d clients connect and line up.", c.Waiters+1)
	v.draw()
}

func (v *live) Now(n Now) {
	v.now = n
	v.draw()
}

func (v *live) Say(text string) {
	v.said = text
	v.draw()
}

func (v *live) Row(r Row) {
	v.rows = append(v.rows, r)
	if most := 1000; len(v.rows) > most { // more than a screen has lines
		v.rows = v.rows[len(v.rows)-most/2:]
	}
	v.draw()
}

// End leaves the board as it is and writes the summary below.
func (v *live) End(s *Summary) error {
	v.now, v.said, v.keys = Now{}, "", false
	v.draw()
	v.out.print(strings.Join(s.text(), "\r\n") + "\r\n")
	return v.out.err
}

// draw writes the board over itself. Lines end with both characters, because a terminal that hands on each key does not add
// the first of them.
func (v *live) draw() {
	width, height := v.size()
	if width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, cursorUp, v.drawn)
	}
	lines := v.lines(width, height)
	for _, line := range lines {
		b.WriteString("\r" + clip(line, width-1) + clearToEnd + "\r\n")
	}
	b.WriteString(clearScreen)
	v.drawn = len(lines)
	v.out.print(b.String())
}

func (v *live) lines(width, height int) []string {
	rows := v.rows
	if most := max(height-liveOtherLines, liveRowsMin); len(rows) > most {
		rows = rows[len(rows)-most:]
	}
	lines := []string{title(v.cfg), heading()}
	for i := range rows {
		lines = append(lines, rows[i].text())
	}
	if v.now.Holder != "" {
		lines = append(lines, v.now.text())
	}
	if v.said != "" {
		first, rest := fold(v.said, width-1)
		lines = append(lines, first, rest)
	}
	if v.keys {
		lines = append(lines, "k kills a waiter   h kills the holder   space pauses   q quits")
	}
	return lines
}

func (n *Now) text() string {
	text := fmt.Sprintf("%s holds the lock, %d wait", n.Holder, n.Waiting)
	switch {
	case n.KillHolder && n.KillWaiter:
		text += "; to be killed: the holder, a waiter"
	case n.KillHolder:
		text += "; to be killed: the holder"
	case n.KillWaiter:
		text += "; to be killed: a waiter"
	}
	if n.Paused {
		text += "; paused"
	}
	return text
}

func clip(line string, width int) string { return line[:min(len(line), max(width, 0))] }

// fold breaks a sentence into two lines, the first of them as full as it can be.
func fold(text string, width int) (first, rest string) {
	if len(text) <= width {
		return text, ""
	}
	at := strings.LastIndexByte(clip(text, width+1), ' ')
	if at <= 0 {
		return text, ""
	}
	return text[:at], text[at+1:]
}
