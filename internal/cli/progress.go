package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// bar shows how far long work is, on a terminal only. Its methods do nothing without one.
type bar struct {
	w           io.Writer // nil if nobody watches
	what        string
	done, total int // total 0: not known
	start, next time.Time
	drawn       bool
}

// bar begins to show progress. A total of 0 is one that is not known.
func (sh *shell) bar(what string, total int) *bar {
	now := time.Now()
	return &bar{w: sh.progress, what: what, total: total, start: now, next: now.Add(barDelay)}
}

// add counts n more.
func (b *bar) add(n int) {
	b.done += n
	if b.w == nil {
		return
	}
	if now := time.Now(); now.After(b.next) {
		b.next = now.Add(barPause)
		b.draw()
	}
}

func (b *bar) draw() {
	text := fmt.Sprintf("%d %s", b.done, b.what)
	if b.total > 0 {
		full := min(barCells, barCells*b.done/b.total)
		text = fmt.Sprintf("[%s%s] %3d%% %d/%d %s", strings.Repeat("#", full), strings.Repeat(".", barCells-full),
			min(100, 100*b.done/b.total), b.done, b.total, b.what)
	}
	b.drawn = true
	fmt.Fprintf(b.w, "\r%s\x1b[K", text)
}

// end takes the bar off the screen.
func (b *bar) end() {
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

// shown is a name that somebody else has chosen, as it is written to stdout: a terminal is not to be steered by it.
func (sh *shell) shown(name string) string {
	if !sh.opt.StdoutTerminal {
		return name
	}
	return strings.ReplaceAll(printable([]byte(name)), "\n", string(utf8.RuneError))
}

// printable makes text for a terminal: what is not UTF-8 or steers a terminal is replaced.
func printable(data []byte) string {
	var b strings.Builder
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		data = data[n:]
	}
	return b.String()
}
