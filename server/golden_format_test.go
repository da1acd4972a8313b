package server_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A recording is a file of one JSON object per line: a header, then steps. Each step says what a client does and what
// arrived then at each session of Apache ZooKeeper: out on 3.8, out39 on 3.9 where that differs.

// goldenLineBytesMax is the longest line that a recording may have.
const goldenLineBytesMax = 16 << 20

type goldenHeader struct {
	Name   string `json:"name"`
	About  string `json:"about"`
	Server struct {
		ContainerCheckMs string `json:"containerCheckMs"`
		EnforceQuota     string `json:"enforceQuota"`
	} `json:"server"`
}

type goldenArgs map[string]any

// goldenResults is what arrived in a step, by session, as JSON values.
type goldenResults map[string][]any

type goldenStep struct {
	I         int           `json:"i"`
	Session   string        `json:"s"`
	Op        string        `json:"op"`
	Args      goldenArgs    `json:"args"`
	Steps     []goldenStep  `json:"steps"`
	Save      string        `json:"save"`
	Unordered bool          `json:"unordered"`
	Note      string        `json:"note"`
	Out       goldenResults `json:"out"`
	Out39     goldenResults `json:"out39"`
	Flaky     bool          `json:"flaky39"`
	Loose     bool          `json:"loose39"`
}

// want is what ZooKeeper 3.9 answered.
func (s *goldenStep) want() goldenResults {
	if s.Out39 != nil {
		return s.Out39
	}
	return s.Out
}

func readRecording(file string) (goldenHeader, []goldenStep, error) {
	var h goldenHeader
	f, err := os.Open(file)
	if err != nil {
		return h, nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, goldenLineBytesMax)
	var steps []goldenStep
	for n := 1; lines.Scan(); n++ {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if n == 1 {
			err = d.Decode(&h)
		} else {
			var s goldenStep
			err = d.Decode(&s)
			steps = append(steps, s)
		}
		if err != nil {
			return h, nil, fmt.Errorf("%s, line %d: %w", file, n, err)
		}
	}
	return h, steps, lines.Err()
}

// field is a string, buffer or vector of a request as it goes over the wire.
type field struct {
	b     []byte
	null  bool
	count *int32 // a length with nothing behind it
}

func (a goldenArgs) has(name string) bool { _, ok := a[name]; return ok }

func (a goldenArgs) integer(name string, fallback int64) int64 {
	n, ok := a[name].(json.Number)
	if !ok {
		return fallback
	}
	v, err := n.Int64()
	if err != nil {
		panic(fmt.Sprintf("argument %s: %v", name, err))
	}
	return v
}

func (a goldenArgs) text(name, fallback string) string {
	if s, ok := a[name].(string); ok {
		return s
	}
	return fallback
}

func (a goldenArgs) truth(name string) bool { b, _ := a[name].(bool); return b }

// goldenField reads a string or buffer: text, null, {"hex":...}, {"prefix","fill","len"} (fill len times) or {"count":n}.
func goldenField(v any, saved map[string]string) field {
	switch v := v.(type) {
	case nil:
		return field{null: true}
	case string:
		return field{b: []byte(substitute(v, saved))}
	case map[string]any:
		a := goldenArgs(v)
		if a.has("count") {
			n := int32(a.integer("count", 0))
			return field{count: &n}
		}
		if a.has("hex") {
			return field{b: mustHex(a.text("hex", ""))}
		}
		fill := strings.Repeat(a.text("fill", ""), int(a.integer("len", 0)))
		return field{b: []byte(substitute(a.text("prefix", ""), saved) + fill)}
	}
	panic(fmt.Sprintf("no string or buffer: %v", v))
}

// substitute puts the paths of earlier replies in the place of ${name}.
func substitute(s string, saved map[string]string) string {
	for name, path := range saved {
		s = strings.ReplaceAll(s, "${"+name+"}", path)
	}
	return s
}

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// parseZxid reads a zxid argument: a number, or base, last or last@B, each with +n or -n behind it.
func parseZxid(v any, session string, base int64, last func(session string) int64) int64 {
	s := fmt.Sprint(v)
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return n
	}
	name, delta := s, int64(0)
	if i := strings.LastIndexAny(s, "+-"); i > 0 {
		n, err := strconv.ParseInt(s[i:], 10, 64)
		if err != nil {
			panic(err)
		}
		name, delta = s[:i], n
	}
	switch {
	case name == "base":
		return base + delta // the server is fresh
	case name == "last":
		return last(session) + delta
	case strings.HasPrefix(name, "last@"):
		return last(name[len("last@"):]) + delta
	}
	panic("no zxid: " + s)
}
