package conf

import (
	"fmt"
	"strings"
)

// Fault is one remark about a configuration: an error or a warning.
type Fault struct {
	// File is the file it is about, "" for the command line.
	File string
	// Line counts from 1; 0 when the remark belongs to no line, as for a key that is missing.
	Line int
	// Key is the key in question, "" if there is none.
	Key string
	// Text says what is wrong, with ZooKeeper's words where it has some.
	Text string
}

// String renders the fault as "file:line: key: text", without the parts that are unknown.
func (f Fault) String() string {
	var b strings.Builder
	switch {
	case f.File != "" && f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	case f.File != "":
		fmt.Fprintf(&b, "%s: ", f.File)
	}
	if f.Key != "" && !strings.HasPrefix(f.Text, f.Key) {
		b.WriteString(f.Key + ": ")
	}
	b.WriteString(f.Text)
	return b.String()
}

// Error is why a configuration cannot be used: every fault that was found, not just the first.
type Error struct {
	// Path is the file, "" for the command line.
	Path string
	// Faults is never empty.
	Faults []Fault
	// Warnings are what else was noticed.
	Warnings []Fault
}

// Error names all faults, one a line.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Faults)+1)
	lines = append(lines, "Error processing "+e.Path)
	if e.Path == "" {
		lines[0] = "invalid configuration"
	}
	for _, f := range e.Faults {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// shown cuts a value that is quoted in a message.
func shown(v string) string {
	if len(v) > valueShownMax {
		return v[:valueShownMax] + "..."
	}
	return v
}
