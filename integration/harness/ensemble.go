//go:build linux

package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// modeTimeout bounds one look at a server: one that is suspended accepts connections and never answers.
const modeTimeout = 500 * time.Millisecond

// Plan says what an ensemble is made of.
type Plan struct {
	Kind    Kind
	Servers int
	// Observers says how many of the servers, the last ones, have no vote.
	Observers int
	Settings  map[string]string // of every zoo.cfg; they go before the harness's own
	JVM       []string          // see Server.JVM
	Defines   []string          // see Server.Defines
	// Links puts a Link into the way of every server to every other, so that Ensemble.Cut works. Without it the servers'
	// zoo.cfg files are those of an ordinary ensemble.
	Links bool
	// DiskBytes gives every server a file system of its own of that size, see Disk; 0 leaves its data below the folder.
	DiskBytes int64
}

// Member is one server of an ensemble.
type Member struct {
	*Server
	ID   int
	Disk *Disk // nil without Plan.DiskBytes

	quorumPort, electionPort int
}

// Ensemble is a set of server processes on loopback ports, each in a folder of its own with a plain zoo.cfg. It is not safe
// for concurrent use.
type Ensemble struct {
	Members []*Member
	links   map[direction][]*Link
}

// direction names a pair of servers by index: connections that one dials to the other.
type direction struct{ from, to int }

// NewEnsemble prepares an ensemble below dir, which must exist. Close must be called, also after an error of a later step.
func NewEnsemble(dir string, plan Plan) (*Ensemble, error) {
	e := &Ensemble{links: map[direction][]*Link{}}
	for i := range plan.Servers {
		m, err := newMember(filepath.Join(dir, fmt.Sprintf("server%d", i+1)), i+1, plan)
		if m != nil {
			e.Members = append(e.Members, m)
		}
		if err != nil {
			e.Close()
			return nil, err
		}
	}
	for i := range e.Members {
		if err := e.introduce(i, plan); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

func newMember(dir string, id int, plan Plan) (*Member, error) {
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		return nil, err
	}
	server, err := New(plan.Kind, dir, map[string]string{"initLimit": "10", "syncLimit": "5"})
	if err != nil {
		return nil, err
	}
	server.JVM, server.Defines = plan.JVM, plan.Defines
	m := &Member{Server: server, ID: id}
	if m.quorumPort, err = FreePort(); err != nil {
		return nil, err
	}
	if m.electionPort, err = FreePort(); err != nil {
		return nil, err
	}
	if plan.DiskBytes > 0 {
		if m.Disk, err = NewDisk(server.DataDir(), plan.DiskBytes); err != nil {
			return nil, err
		}
	}
	if err := m.WriteMyID(); err != nil {
		return m, err
	}
	return m, server.Set(plan.Settings)
}

// WriteMyID writes the file that tells the server which of the zoo.cfg's servers it is.
func (m *Member) WriteMyID() error {
	return os.WriteFile(filepath.Join(m.DataDir(), "myid"), []byte(strconv.Itoa(m.ID)+"\n"), 0o644)
}

// Wipe empties the data directory of a stopped server, but for the myid file.
func (m *Member) Wipe() error {
	entries, err := os.ReadDir(m.DataDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(m.DataDir(), entry.Name())); err != nil {
			return err
		}
	}
	return m.WriteMyID()
}

// introduce tells server i of all servers.
func (e *Ensemble) introduce(i int, plan Plan) error {
	lines := map[string]string{}
	for j, m := range e.Members {
		quorum, election := m.quorumPort, m.electionPort
		if plan.Links && i != j {
			q, err := NewLink(quorum)
			if err != nil {
				return err
			}
			e.links[direction{i, j}] = append(e.links[direction{i, j}], q)
			l, err := NewLink(election)
			if err != nil {
				return err
			}
			e.links[direction{i, j}] = append(e.links[direction{i, j}], l)
			quorum, election = q.Port, l.Port
		}
		role := ""
		if j >= plan.Servers-plan.Observers {
			role = ":observer"
		}
		lines[fmt.Sprintf("server.%d", m.ID)] = fmt.Sprintf("127.0.0.1:%d:%d%s", quorum, election, role)
	}
	return e.Members[i].Set(lines)
}

// Start launches all servers and waits until each serves clients.
func (e *Ensemble) Start() error {
	for _, m := range e.Members {
		if err := m.Launch(); err != nil {
			return err
		}
	}
	return e.WaitServing()
}

// WaitServing waits until every server serves clients.
func (e *Ensemble) WaitServing() error {
	deadline := time.Now().Add(startTimeout)
	for _, m := range e.Members {
		for m.Mode() == "" {
			if m.Exited() {
				return fmt.Errorf("server %d ended\n%s", m.ID, tail(m.Log(), 40))
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("server %d did not serve within %v\n%s", m.ID, startTimeout, tail(m.Log(), 40))
			}
			time.Sleep(10 * time.Millisecond) // between two looks
		}
	}
	return nil
}

// Stop ends all servers with SIGTERM, all at once, and waits for them.
func (e *Ensemble) Stop() error {
	for _, m := range e.Members {
		if m.PID() != 0 {
			_ = m.Terminate()
		}
	}
	var errs []error
	for _, m := range e.Members {
		errs = append(errs, m.Stop())
	}
	return errors.Join(errs...)
}

// Close kills all servers and frees what the ensemble holds of the system. The folders stay.
func (e *Ensemble) Close() {
	for _, m := range e.Members {
		m.Kill()
	}
	for _, links := range e.links {
		for _, l := range links {
			l.Close()
		}
	}
	for _, m := range e.Members {
		if m.Disk != nil {
			_ = m.Disk.Close() // an unmount that fails leaves an empty file system behind, nothing else
		}
	}
}

// Addrs returns the client addresses of all servers.
func (e *Ensemble) Addrs() []string {
	addrs := make([]string, len(e.Members))
	for i, m := range e.Members {
		addrs[i] = m.Addr()
	}
	return addrs
}

// Mode asks the server for what it is: leader, follower, observer, standalone, or "" when it does not serve or answer.
func (m *Member) Mode() string {
	if m.Exited() {
		return ""
	}
	answer, err := fourLetterWithin(m.Addr(), "srvr", modeTimeout)
	if err != nil {
		return ""
	}
	_, mode, _ := strings.Cut(answer, "Mode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode
}

// Zxid asks the server for the last transaction it has applied.
func (m *Member) Zxid() (int64, error) {
	answer, err := fourLetterWithin(m.Addr(), "srvr", modeTimeout)
	if err != nil {
		return 0, err
	}
	_, text, found := strings.Cut(answer, "Zxid: 0x")
	text, _, _ = strings.Cut(text, "\n")
	if !found {
		return 0, fmt.Errorf("server %d does not serve: %.100q", m.ID, answer)
	}
	return strconv.ParseInt(text, 16, 64)
}

// Leader returns the index of the server that says it leads, -1 when none does.
func (e *Ensemble) Leader() int {
	for i, m := range e.Members {
		if m.Mode() == "leader" {
			return i
		}
	}
	return -1
}

// WaitLeader waits until a server leads and returns its index.
func (e *Ensemble) WaitLeader() (int, error) {
	leader := -1
	err := Wait(startTimeout, "a server leads", func() bool { leader = e.Leader(); return leader >= 0 })
	return leader, err
}

// levelSessionMs is the timeout of the session with which WaitLevel makes a transaction.
const levelSessionMs = 10000

// WaitLevel waits until all servers serve and have applied the same transactions; nobody may write meanwhile. It makes a
// transaction of its own, without which the reference server's members name different zxids behind an election.
func (e *Ensemble) WaitLevel() error {
	c := Client{Addrs: e.Addrs(), TimeoutMs: levelSessionMs}
	if err := c.Connect(startTimeout); err != nil {
		return err
	}
	c.End(startTimeout)
	return Wait(startTimeout, "all servers are level", func() bool {
		first, err := e.Members[0].Zxid()
		for _, m := range e.Members {
			if zxid, other := m.Zxid(); err != nil || other != nil || zxid != first || m.Mode() == "" {
				return false
			}
		}
		return true
	})
}

// Cut holds back everything that server from sends to server to, both by index, on connections of either. Nothing is lost: TCP
// delivers it once Heal is called, unless a server has given the connection up. Plan.Links is needed.
func (e *Ensemble) Cut(from, to int) {
	for _, l := range e.links[direction{from, to}] {
		l.Hold(true, l.heldBack())
	}
	for _, l := range e.links[direction{to, from}] {
		l.Hold(l.heldForth(), true)
	}
}

// Isolate cuts a server off from all others: what it sends, what it is sent, or both.
func (e *Ensemble) Isolate(server int, sends, receives bool) {
	for other := range e.Members {
		if other == server {
			continue
		}
		if sends {
			e.Cut(server, other)
		}
		if receives {
			e.Cut(other, server)
		}
	}
}

// Heal undoes every Cut.
func (e *Ensemble) Heal() {
	for _, links := range e.links {
		for _, l := range links {
			l.Hold(false, false)
		}
	}
}

// Reset breaks all connections between two servers; they may connect again at once.
func (e *Ensemble) Reset(a, b int) {
	for _, d := range []direction{{a, b}, {b, a}} {
		for _, l := range e.links[d] {
			l.Reset()
		}
	}
}

// Wait asks the condition again and again until it holds.
func Wait(limit time.Duration, what string, condition func() bool) error {
	for deadline := time.Now().Add(limit); !condition(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %v", what, limit)
		}
		time.Sleep(10 * time.Millisecond) // between two looks
	}
	return nil
}
