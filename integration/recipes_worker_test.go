//go:build interop && linux

package integration

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
	"zabra/integration/judge"
)

// The languages of workers: package recipes, Curator and kazoo.
const (
	inGo     = "go"
	inJava   = "java"
	inPython = "python"
)

const (
	workerSession = 2 * time.Second // so long others wait for a holder that was killed
	workerWait    = 90 * time.Second
	workerLines   = 1 << 16 // answers that nobody has waited for yet
)

// worker is a process that takes part in recipes: integration/recipeworker, RecipeWorker.java or recipes.py. It says READY when it
// is connected and then does what it is told:
//
//	run KIND DIR JOURNAL [LEASES]  takes turns until told to stop; KIND is lock, rw, semaphore, latch or election, or lock-stock or
//	                               rw-stock for kazoo as it comes
//	keep                           keeps its next turn: KEPT TOKEN
//	free                           makes another record, LATE accepted or refused, and lets go
//	stop                           ends the turns: STOPPED
//	enter DIR JOURNAL MEMBERS      comes into a double barrier: ENTERED
//	leave JOURNAL                  leaves it: LEFT
//	register DIR NAME ID HOST PORT PAYLOAD, and unregister: REGISTERED, UNREGISTERED
//	watch DIR NAME                 says SEES ID=HOST:PORT/PAYLOAD,... now and after each change
//
// Each turn is a record for package handover: IN TOKEN, or REFUSED TOKEN when its node is not there any more, GONE when it was not
// there before, and FAULT with what the library threw. It ends in order with its standard input.
type worker struct {
	name, language string

	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  strings.Builder
	answers chan string // all lines but the four of a turn; closed when the process has ended
}

// crowd is the workers of a test and how they reach the servers.
type crowd struct {
	life    *testing.T // the test that the processes end with
	t       *testing.T // the one that is under way, life or a subtest
	e       *harness.Ensemble
	rnd     *rand.Rand
	proxies []*harness.Proxy
	workers []*worker
	playing []*worker    // those that take part at the moment
	turns   atomic.Int64 // IN lines of all workers
	mu      sync.Mutex
	notes   map[string]int // how often a turn came to something else
}

// newCrowd starts three servers with a proxy in front of each.
func newCrowd(t *testing.T) *crowd {
	c := &crowd{life: t, t: t, notes: map[string]int{}}
	seed := rand.Uint64()
	c.rnd = rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	// Sessions are 2 to 20 ticks. A leader that is gone is noticed by its connections, well within the limits.
	c.e = startEnsemble(t, harness.Plan{Kind: serverUnderTest(t), Servers: 3,
		Settings: map[string]string{"tickTime": "200", "initLimit": "50", "syncLimit": "10", "maxSessionTimeout": ""}})
	for _, m := range c.e.Members {
		proxy, err := harness.NewProxy(m.Addr())
		require.NoError(t, err)
		t.Cleanup(proxy.Close)
		c.proxies = append(c.proxies, proxy)
	}
	return c
}

func (c *crowd) hosts() string {
	addrs := make([]string, len(c.proxies))
	for i, p := range c.proxies {
		addrs[i] = p.Addr()
	}
	return strings.Join(addrs, ",")
}

// goWorker builds the worker in Go, once.
var goWorker = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(harness.Root(), "bin", "recipeworker")
	build := exec.Command("go", "build", "-o", binary, "./integration/recipeworker")
	build.Dir = harness.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
})

// hire starts so many workers of each language and waits until all are connected.
func (c *crowd) hire(n int, languages ...string) {
	var fresh []*worker
	for _, language := range languages {
		for i := range n {
			w := &worker{name: fmt.Sprintf("%s-%d", language, i+1), language: language}
			c.start(w)
			fresh = append(fresh, w)
		}
	}
	c.workers = append(c.workers, fresh...)
	c.playing = c.workers
	for _, w := range fresh {
		c.expect(w, "READY")
	}
}

// start starts the process of a worker, for the first time or again.
func (c *crowd) start(w *worker) {
	args := []string{c.hosts(), strconv.FormatInt(workerSession.Milliseconds(), 10), w.name}
	switch w.language {
	case inGo:
		binary, err := goWorker()
		require.NoError(c.t, err)
		w.cmd = exec.Command(binary, args...)
	case inJava:
		w.cmd = javaProgram("RecipeWorker", args...)
	case inPython:
		script := filepath.Join(harness.Root(), "integration", "interop", "python", "recipes.py")
		w.cmd = exec.Command(filepath.Join(harness.Cache(), "venv", "bin", "python"), append([]string{"-B", script}, args...)...)
	}
	var err error
	w.stdin, err = w.cmd.StdinPipe()
	require.NoError(c.t, err)
	stdout, err := w.cmd.StdoutPipe()
	require.NoError(c.t, err)
	w.stderr.Reset()
	w.cmd.Stderr = &w.stderr
	w.answers = make(chan string, workerLines)
	require.NoError(c.t, harness.StartChild(w.cmd))
	cmd := w.cmd
	c.life.Cleanup(func() { _ = cmd.Process.Kill() })
	go c.listen(stdout, w.answers)
}

func (c *crowd) listen(stdout io.Reader, answers chan<- string) {
	defer close(answers)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		verb, _, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "IN":
			c.turns.Add(1)
		case "REFUSED", "GONE":
			c.note(verb)
		case "FAULT":
			c.note(lines.Text())
		default:
			answers <- lines.Text()
		}
	}
}

func (c *crowd) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes[what]++
}

// tell sends a line to a worker.
func (c *crowd) tell(w *worker, format string, args ...any) {
	_, err := fmt.Fprintf(w.stdin, format+"\n", args...)
	require.NoError(c.t, err, "%s: %s", w.name, w.stderr.String())
}

// play picks the workers of some languages for a subtest.
func (c *crowd) play(t *testing.T, languages ...string) {
	c.t, c.playing, c.notes = t, nil, map[string]int{}
	for _, w := range c.workers {
		if slices.Contains(languages, w.language) {
			c.playing = append(c.playing, w)
		}
	}
}

func (c *crowd) tellAll(format string, args ...any) {
	for _, w := range c.playing {
		c.tell(w, format, args...)
	}
}

// answer waits for the next answer of a worker.
func (c *crowd) answer(w *worker) string {
	select {
	case line, ok := <-w.answers:
		if !ok {
			_ = w.cmd.Wait()
			require.Failf(c.t, "a worker has ended", "%s: %v: %s", w.name, w.cmd.ProcessState, lastLines(w.stderr.String(), 20))
		}
		return line
	case <-time.After(workerWait):
		require.Failf(c.t, "a worker does not answer", "%s: %s", w.name, lastLines(w.stderr.String(), 20))
	}
	return ""
}

// expect waits for an answer that must begin like this.
func (c *crowd) expect(w *worker, want string) {
	got := c.answer(w)
	require.True(c.t, got == want || strings.HasPrefix(got, want+" "), "%s said %q, not %s: %s", w.name, got, want, lastLines(w.stderr.String(), 20))
}

// sees waits until the worker says that it sees these instances and no others.
func (c *crowd) sees(w *worker, instances ...string) {
	slices.Sort(instances)
	for want := "SEES " + strings.Join(instances, ","); c.answer(w) != want; {
	}
}

// pick returns a worker of that language by chance.
func (c *crowd) pick(language string) *worker {
	var all []*worker
	for _, w := range c.playing {
		if w.language == language {
			all = append(all, w)
		}
	}
	return all[c.rnd.IntN(len(all))]
}

// names are those of the workers that take part.
func (c *crowd) names() (names []string) {
	for _, w := range c.playing {
		names = append(names, w.name)
	}
	return names
}

// awaitTurns waits until there have been so many turns since the crowd was made.
func (c *crowd) awaitTurns(n int64) {
	c.t.Helper()
	require.NoError(c.t, harness.Wait(workerWait, fmt.Sprintf("%d turns", n), func() bool { return c.turns.Load() >= n }),
		"%d turns, %v", c.turns.Load(), c.notes)
}

// holder waits until a worker of that language holds, and keeps what it holds.
func (c *crowd) holder(language string) *worker {
	w := c.pick(language)
	c.tell(w, "keep")
	c.expect(w, "KEPT")
	return w
}

// The faults that a crowd has to live with.

// killHolder kills a holder and starts its process again; run is what the new one is told. Others get their turns once the session
// of the old one has expired.
func (c *crowd) killHolder(language, run string) {
	w := c.holder(language)
	turns := c.turns.Load()
	require.NoError(c.t, w.cmd.Process.Kill())
	_ = w.cmd.Wait() // it was killed
	c.start(w)
	c.expect(w, "READY")
	c.tell(w, "%s", run)
	c.awaitTurns(turns + 1)
	c.t.Logf("%s was killed while it held", w.name)
}

// pauseHolder stops a holder until others have had turns, and lets it go on: it believes that it still holds, and what it writes
// then is refused.
func (c *crowd) pauseHolder(language string) {
	w := c.holder(language)
	turns := c.turns.Load()
	require.NoError(c.t, w.cmd.Process.Signal(syscall.SIGSTOP))
	c.awaitTurns(turns + 3)
	require.NoError(c.t, w.cmd.Process.Signal(syscall.SIGCONT))
	c.tell(w, "free")
	require.Equal(c.t, "LATE refused", c.answer(w), w.name)
	c.t.Logf("%s was stopped while it held, its late write was refused", w.name)
}

// cut breaks the connections of all workers.
func (c *crowd) cut() {
	n := 0
	for _, p := range c.proxies {
		n += p.Cut()
	}
	require.Positive(c.t, n)
	turns := c.turns.Load()
	c.awaitTurns(turns + 1)
	c.t.Logf("%d connections were cut", n)
}

// killLeader kills the server that leads, and starts it again once there have been turns without it.
func (c *crowd) killLeader() {
	leader, err := c.e.WaitLeader()
	require.NoError(c.t, err)
	c.e.Members[leader].Kill()
	turns := c.turns.Load()
	c.awaitTurns(turns + 10)
	require.NoError(c.t, c.e.Members[leader].Launch())
	c.t.Logf("server %d, the leader, was killed", leader+1)
}

// stop lets the workers end their turns.
func (c *crowd) stop() {
	c.tellAll("stop")
	for _, w := range c.playing {
		c.expect(w, "STOPPED")
	}
}

// dismiss ends all workers in order.
func (c *crowd) dismiss() {
	for _, w := range c.workers {
		require.NoError(c.t, w.stdin.Close())
	}
	for _, w := range c.workers {
		for range w.answers {
		}
		require.NoError(c.t, w.cmd.Wait(), "%s: %s", w.name, lastLines(w.stderr.String(), 20))
	}
	c.workers = nil
}

// client opens a session on a server that is not in anybody's way.
func (c *crowd) client() *goClient { return dial(c.life, c.e.Members[0].Addr()) }

// awaitEmpty waits until a node has no children, or is not there.
func (c *crowd) awaitEmpty(client *goClient, path string) {
	c.t.Helper()
	var names []string
	err := harness.Wait(waitTimeout, path+" is empty", func() bool {
		names, _, _ = client.Children(path)
		return len(names) == 0
	})
	require.NoError(c.t, err, "%v", names)
}

// log returns what the servers have logged since they were made, once they are level.
func (c *crowd) log() []judge.Txn {
	require.NoError(c.t, c.e.WaitServing())
	require.NoError(c.t, c.e.WaitLevel())
	var logs [][]judge.Txn
	for _, m := range c.e.Members {
		log, err := judge.ReadLogs(m.DataDir())
		require.NoError(c.t, err)
		logs = append(logs, log)
	}
	all, err := judge.Merge(logs)
	require.NoError(c.t, err)
	return all
}
