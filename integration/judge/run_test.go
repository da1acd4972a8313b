//go:build interop && linux

package judge

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

var (
	runDuration = flag.Duration("judge.duration", 20*time.Second, "how long TestJudge does faults")
	runServers  = flag.Int("judge.servers", 3, "servers of TestJudge's ensemble")
	runSeed     = flag.Uint64("judge.seed", 0, "seed of TestJudge's faults and operations; 0 = another one each time")
	runGroups   = flag.Int("judge.groups", 5, "key groups of TestJudge")
)

const (
	groupWorkers  = 3                     // clients of a group
	workerPeriod  = 80 * time.Millisecond // 3 clients every 80 ms are below 50 operations a second for a group
	diskBytes     = 1 << 30               // of memory, as far as it is used
	porcupineTime = 5 * time.Minute       // for all groups
)

// TestJudge lets workers loose on an ensemble, does faults to it, and judges what they saw.
func TestJudge(t *testing.T) {
	kind, err := harness.UnderTest()
	require.NoError(t, err)
	seed := *runSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("%s, %d servers, %v, -judge.seed=%d", kind, *runServers, *runDuration, seed)
	e := startEnsemble(t, kind)
	workers := unleash(t, e, seed)
	requireAnswers(t, workers)
	final := finish(t, e)
	require.NoError(t, e.Stop())

	var notes []Notes
	for _, w := range workers {
		notes = append(notes, w.notes)
	}
	judgePromises(t, notes)
	judgeLogs(t, e, notes, final)
	judgeLinearizable(t, workers)
}

func startEnsemble(t *testing.T, kind harness.Kind) *harness.Ensemble {
	dir, err := os.MkdirTemp("", "judge-")
	require.NoError(t, err)
	e, err := harness.NewEnsemble(dir, harness.Plan{Kind: kind, Servers: *runServers, Links: true, DiskBytes: diskBytes, Settings: map[string]string{
		"tickTime": "300", "initLimit": "20", "syncLimit": "4", "maxSessionTimeout": "60000",
		// Snapshots come often; the reference server sends one instead of the log when that is small.
		"snapCount": "1000", "preAllocSize": "64", "snapshotSizeFactor": "1000",
	}})
	require.NoError(t, err)
	t.Cleanup(func() {
		e.Close()
		if t.Failed() {
			t.Logf("the servers' logs are in %s", dir)
			return
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	require.NoError(t, e.Start())
	return e
}

// unleash runs workers and faults until the time is up and everything is whole again.
func unleash(t *testing.T, e *harness.Ensemble, seed uint64) []*worker {
	setup := &harness.Client{Addrs: e.Addrs(), TimeoutMs: sessionMs}
	require.NoError(t, setup.Connect(connectLimit))
	for g := range *runGroups {
		xid := setup.NextXid()
		reply, err := setup.Do(xid, harness.AppendCreate(nil, xid, filepath.Dir(Path(g, 0)), nil, 0), callLimit)
		require.NoError(t, err)
		require.EqualValues(t, harness.CodeOK, reply.Code)
	}
	setup.End(callLimit)

	var workers []*worker
	var stop atomic.Bool
	var wg sync.WaitGroup
	errs := make(chan error, *runGroups*groupWorkers)
	for g := range *runGroups {
		for range groupWorkers {
			w := newWorker(len(workers), g, e.Addrs(), seed, workerPeriod, time.Now())
			workers = append(workers, w)
		}
	}
	began := time.Now()
	for _, w := range workers {
		w.began = began
		wg.Go(func() { errs <- w.run(&stop) })
	}
	faults := &schedule{ensemble: e, rnd: rand.New(rand.NewPCG(seed, 1<<32)), logf: t.Logf}
	faultErr := faults.run(*runDuration)
	e.Heal()
	if faultErr == nil {
		faultErr = e.WaitServing()
	}
	stop.Store(true)
	wg.Wait()
	close(errs)
	require.NoError(t, faultErr)
	for err := range errs {
		require.NoError(t, err)
	}
	t.Logf("faults: %v", faults.counts)
	return workers
}

// requireAnswers proves that the run was worth judging.
func requireAnswers(t *testing.T, workers []*worker) {
	answers, open, events, expired, losses, worst := 0, 0, 0, 0, 0, time.Duration(0)
	for _, w := range workers {
		answers += w.answers
		expired += w.client.Expired
		losses += w.client.Losses
		worst = max(worst, w.pause)
		for _, op := range w.all {
			if !op.Known {
				open++
			}
		}
		for _, s := range w.notes.Steps {
			if s.Kind == StepEvent {
				events++
			}
		}
	}
	t.Logf("%d answers, %d writes with an open outcome, %d watch events, %d connections lost, %d sessions expired, longest time without an answer %v",
		answers, open, events, losses, expired, worst.Round(time.Millisecond))
	require.Greater(t, answers, int(runDuration.Seconds())*len(workers), "answers: at least one a second for each worker on average")
	require.Positive(t, events)
}

// finish waits until all servers are level and reads all keys from each.
func finish(t *testing.T, e *harness.Ensemble) []map[string]finalNode {
	require.NoError(t, e.WaitLevel())
	var all []map[string]finalNode
	for i := range e.Members {
		c := &harness.Client{Addrs: e.Addrs(), TimeoutMs: sessionMs}
		require.NoError(t, c.MoveTo(i, connectLimit))
		nodes := map[string]finalNode{}
		for g := range *runGroups {
			for k := range groupKeys {
				xid := c.NextXid()
				reply, err := c.Do(xid, harness.AppendGet(nil, xid, Path(g, k)), callLimit)
				require.NoError(t, err)
				var n finalNode
				if n.exists = reply.Code == harness.CodeOK; n.exists {
					data, stat, err := harness.ParseGet(reply.Body)
					require.NoError(t, err)
					n.data, n.stat = string(data), stat
				}
				nodes[Path(g, k)] = n
			}
		}
		c.End(callLimit)
		all = append(all, nodes)
	}
	require.NoError(t, e.WaitLevel())
	return all
}

type finalNode struct {
	data   string
	stat   harness.Stat
	exists bool
}

func judgePromises(t *testing.T, notes []Notes) {
	for _, n := range notes {
		for _, err := range first(CheckPromises(n)) {
			t.Errorf("a promise to a session is broken: %v", err)
		}
	}
}

func first(errs []error) []error { return errs[:min(len(errs), 5)] }

// judgeLogs replays the servers' log files.
func judgeLogs(t *testing.T, e *harness.Ensemble, notes []Notes, final []map[string]finalNode) {
	var logs [][]Txn
	for _, m := range e.Members {
		log, err := ReadLogs(m.DataDir())
		require.NoError(t, err)
		logs = append(logs, log)
	}
	txns, err := Merge(logs)
	require.NoError(t, err)
	replay, err := NewReplay(txns)
	require.NoError(t, err)
	for _, n := range notes {
		for _, err := range first(replay.Check(n)) {
			t.Errorf("an answer is not what the log gives: %v", err)
		}
	}
	for i, nodes := range final {
		for path, got := range nodes {
			var want finalNode
			want.data, want.stat, want.exists = replay.Final(path)
			if want != got && (want.exists || got.exists) {
				t.Errorf("server %d ends with %s = %+v, the log with %+v", i+1, path, got, want)
			}
		}
	}
	t.Logf("%d transactions replayed", len(txns))
	for _, m := range e.Members {
		requireNoServerFault(t, m.Server)
	}
}

var serverFault = regexp.MustCompile(`(?m)^(panic: |fatal error: |WARNING: DATA RACE).*$`)

// requireNoServerFault looks through the output of each start of a server.
func requireNoServerFault(t *testing.T, s *harness.Server) {
	logs, err := filepath.Glob(filepath.Join(s.Dir, "server.*.log"))
	require.NoError(t, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		if at := serverFault.FindIndex(text); at != nil {
			t.Errorf("%s: %.4000s", log, text[at[0]:])
		}
	}
}

// judgeLinearizable gives each group's writes and synced reads to porcupine.
func judgeLinearizable(t *testing.T, workers []*worker) {
	groups := map[int][]*Op{}
	for _, w := range workers {
		groups[w.group] = append(groups[w.group], w.all...)
	}
	for g := range *runGroups {
		start := time.Now()
		history := operations(groups[g])
		result, info := porcupine.CheckOperationsVerbose(model, history, porcupineTime/time.Duration(*runGroups))
		t.Logf("group %d: %d operations: %v in %v", g, len(history), result, time.Since(start).Round(time.Millisecond))
		if result != porcupine.Ok {
			picture := filepath.Join(os.TempDir(), fmt.Sprintf("judge-group-%d.html", g))
			t.Errorf("group %d is not linearizable: %v, see %s (%v)", g, result, picture, porcupine.VisualizePath(model, info, picture))
		}
	}
}
