package tools

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Output says where and how a tool prints.
type Output struct {
	// Out gets the result, Err what went wrong on the way.
	Out, Err io.Writer
	// JSON prints one object on a line instead of text.
	JSON bool
	// Location is the time zone of all times; nil is the local one.
	Location *time.Location
}

// The layouts in which ZooKeeper's tools print times: Java's for the American locale, and that of its class Date.
const (
	layoutRecord   = "1/2/06, 3:04:05 PM MST"
	layoutNode     = "Mon Jan 02 15:04:05 MST 2006"
	layoutFile     = "Jan 2, 2006, 3:04:05 PM"
	layoutReadable = "2006-01-02 15:04:05 MST"
)

// at renders a moment, given in milliseconds since 1970.
func (o Output) at(ms int64, layout string) string { return o.in(time.UnixMilli(ms)).Format(layout) }

func (o Output) in(t time.Time) time.Time {
	if o.Location == nil {
		return t.Local()
	}
	return t.In(o.Location)
}

// iso renders a moment for JSON.
func (o Output) iso(ms int64) string { return o.in(time.UnixMilli(ms)).Format(time.RFC3339Nano) }

// buffered returns a printer on o.Out whose end must be called.
func (o Output) buffered() *printer { return &printer{Output: o, w: bufio.NewWriter(o.Out)} }

// printer writes a long result. Its first error sticks and is what end returns.
type printer struct {
	Output
	w   *bufio.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

// object prints v as JSON on a line of its own. What is in v is always encodable.
func (p *printer) object(v any) {
	enc := json.NewEncoder(p.w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil && p.err == nil {
		p.err = err
	}
}

// flush shows what was printed so far, before a question or a removal.
func (p *printer) flush() {
	if err := p.w.Flush(); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) end() error {
	p.flush()
	return p.err
}

// DamagedError ends a tool that has told already what is damaged.
type DamagedError struct{ Files int }

func (e *DamagedError) Error() string {
	if e.Files == 1 {
		return "1 file is damaged"
	}
	return fmt.Sprintf("%d files are damaged", e.Files)
}

// sizeText renders a number of bytes for people.
func sizeText(n int64) string {
	const step = 1024
	if n < step {
		return count(int(n), "byte")
	}
	value, unit := float64(n), 0
	for value >= step && unit < len(sizeUnits)-1 {
		value /= step
		unit++
	}
	return fmt.Sprintf("%.1f %s", value, sizeUnits[unit])
}

var sizeUnits = [...]string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}

// count renders "1 file", "2 files".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// base64Text renders data.
func base64Text(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// quoted renders a string as JSON.
func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
