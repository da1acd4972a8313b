//go:build interop && linux

package integration

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"zabra/integration/harness"
)

// oracleAct is what a step does.
type oracleAct int

const (
	actSend oracleAct = iota
	actRaw
	actOpen
	actAttach
	actEnsure
	actDrop
	actAwaitGone
	actRestart
)

// oracleStep is one step of a run; it is carried out to its end on both servers before the next one begins.
type oracleStep struct {
	session int
	act     oracleAct
	reqs    []oracleReq
	raw     []byte
	connect oracleConnect
	path    string
	// loose: the events of one transaction come in no fixed order, as when a session with ephemeral nodes ends.
	loose bool
}

func (s *oracleStep) String() string {
	name := fmt.Sprintf("s%d ", s.session)
	switch s.act {
	case actSend:
		return name + s.requests()
	case actRaw:
		return name + fmt.Sprintf("bytes %x", s.raw)
	case actOpen:
		return name + fmt.Sprintf("new session %+v ", s.connect) + s.requests()
	case actAttach:
		return name + fmt.Sprintf("attach %+v ", s.connect) + s.requests()
	case actEnsure:
		return name + "ensure"
	case actDrop:
		return name + "drop"
	case actRestart:
		return "the server is killed and started again"
	default:
		return name + s.requests() + ", then await the end of " + s.path
	}
}

func (s *oracleStep) requests() string {
	texts := make([]string, len(s.reqs))
	for i := range s.reqs {
		texts[i] = s.reqs[i].String()
	}
	return strings.Join(texts, " | ")
}

// sortEvents sorts each unbroken series of events of one transaction.
func sortEvents(lines []string) {
	zxidOf := func(line string) string {
		if !strings.HasPrefix(line, "event ") {
			return ""
		}
		return line[strings.LastIndex(line, " z"):]
	}
	for from := 0; from < len(lines); {
		to := from + 1
		for zxidOf(lines[from]) != "" && to < len(lines) && zxidOf(lines[to]) == zxidOf(lines[from]) {
			to++
		}
		sort.Strings(lines[from:to])
		from = to
	}
}

// errOracleLost is when the reference server has ended, which some requests can bring about.
var errOracleLost = errors.New("the reference server is gone")

// oracleDiff is where the servers differ first.
type oracleDiff struct {
	at   int // index of the step; the number of steps for the tree at the end
	what string
	want map[string][]string // by Apache
	got  map[string][]string
}

func (d *oracleDiff) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at step %d: %s\n", d.at, d.what)
	names := map[string]bool{}
	for name := range d.want {
		names[name] = true
	}
	for name := range d.got {
		names[name] = true
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	for _, name := range sorted {
		if slices.Equal(d.want[name], d.got[name]) {
			continue
		}
		for i := range max(len(d.want[name]), len(d.got[name])) {
			want, got := lineAt(d.want[name], i), lineAt(d.got[name], i)
			if want == got {
				continue
			}
			fmt.Fprintf(&b, "    %s apache: %.1500s\n    %s zabra:  %.1500s\n", name, want, name, got)
		}
	}
	return b.String()
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "-"
}

// oraclePair is the two servers: the reference first.
type oraclePair struct {
	servers [2]*harness.Server
	sides   [2]*oracleSide
	runs    int
}

// both does f on both sides at once.
func (p *oraclePair) both(f func(s *oracleSide) map[string][]string) (out [2]map[string][]string) {
	var wg sync.WaitGroup
	for i, s := range p.sides {
		wg.Add(1)
		go func() {
			defer wg.Done()
			out[i] = f(s)
		}()
	}
	wg.Wait()
	return out
}

func sameOutput(a, b map[string][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, lines := range a {
		if !slices.Equal(lines, b[name]) {
			return false
		}
	}
	return true
}

// run carries the steps out on both servers and returns the first difference. It begins with an empty tree and leaves no
// session behind.
func (p *oraclePair) run(steps []oracleStep) (*oracleDiff, error) {
	if err := p.prepare(); err != nil {
		return nil, err
	}
	defer p.both(func(s *oracleSide) map[string][]string { s.closeAll(); return nil })
	for i := range steps {
		step := &steps[i]
		out := p.both(func(s *oracleSide) map[string][]string { return s.do(step) })
		if !sameOutput(out[0], out[1]) {
			return p.difference(&oracleDiff{at: i, what: step.String(), want: out[0], got: out[1]})
		}
	}
	out := p.both((*oracleSide).dump)
	if !sameOutput(out[0], out[1]) {
		return p.difference(&oracleDiff{at: len(steps), what: "the tree and the counts at the end", want: out[0], got: out[1]})
	}
	return nil, nil
}

// difference returns a difference, unless it comes from the end of the reference server.
func (p *oraclePair) difference(d *oracleDiff) (*oracleDiff, error) {
	if _, err := harness.FourLetter(p.servers[0].Addr(), "ruok"); err != nil {
		return nil, fmt.Errorf("%w: %s", errOracleLost, d.what)
	}
	return d, nil
}

// prepare empties both trees. Where the servers' own nodes have come to differ, both get new data.
func (p *oraclePair) prepare() error {
	for try := 0; ; try++ {
		for i, server := range p.servers {
			p.sides[i] = newOracleSide(server, oracleSessions)
		}
		var err [2]error
		out := p.both(func(s *oracleSide) map[string][]string {
			lines, e := s.clean()
			if e != nil {
				return map[string][]string{"error": {e.Error()}}
			}
			return map[string][]string{"nodes": lines}
		})
		for i := range out {
			if text := out[i]["error"]; text != nil {
				err[i] = fmt.Errorf("%s: %s", p.servers[i].Kind, text[0])
			}
		}
		if err := errors.Join(err[:]...); err == nil && sameOutput(out[0], out[1]) {
			p.runs++
			return nil
		} else if try == 2 {
			return fmt.Errorf("the servers cannot be brought to the same state: %w\n%v", err, out)
		}
		if err := p.renew(); err != nil {
			return err
		}
	}
}
