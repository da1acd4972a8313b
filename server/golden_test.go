package server_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	goldenExceptionsMaxPercent = 0.5
	goldenFilesMin             = 155
	goldenStepsMin             = 12000
	goldenParallelMax          = 16 // recordings at once: many of them mostly wait
	goldenReportsMax           = 8  // differences that are printed of one recording
)

// TestGolden replays what was recorded of Apache ZooKeeper, each recording on a fresh server, and compares every reply,
// event, stat and zxid. The recordings run beside each other, more of them than there are processors, since they mostly
// wait: for timeouts, and for what should not come.
func TestGolden(t *testing.T) {
	replayAll(t, goldenStandalone, exceptionsByStep(t))
}

// TestGoldenLeader and TestGoldenFollower do the same with a member of an ensemble of three. The zxids begin with the
// ensemble's first epoch; otherwise a client sees no difference.
func TestGoldenLeader(t *testing.T) { replayAll(t, goldenLeader, exceptionsByStep(t)) }

func TestGoldenFollower(t *testing.T) { replayAll(t, goldenFollower, exceptionsByStep(t)) }

func replayAll(t *testing.T, target goldenTarget, exceptions map[string]string) {
	files := goldenFiles(t)
	var compared, excepted atomic.Int64
	var running sync.WaitGroup
	slots := make(chan struct{}, goldenParallelMax)
	for _, file := range files {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
				replayGolden(t, file, target, exceptions, &compared, &excepted)
			})
		})
	}
	running.Wait()
	t.Logf("%d steps compared, %d of them listed as exceptions", compared.Load(), excepted.Load())
}

// goldenFiles are the recordings, those first that take longest.
func goldenFiles(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.jsonl"))
	require.NoError(t, err)
	slow := func(file string) int { return strings.Count(file, "session-") + strings.Count(file, "malformed-") }
	slices.SortStableFunc(files, func(a, b string) int { return slow(b) - slow(a) })
	return files
}

func replayGolden(t *testing.T, file string, target goldenTarget, exceptions map[string]string, compared, excepted *atomic.Int64) {
	h, steps, err := readRecording(file)
	require.NoError(t, err)
	r := newGoldenRun(startGolden(t, &h, target))
	defer r.close()
	differences := 0
	for i := range steps {
		s := &steps[i]
		out := r.do(s)
		if i+1 < len(steps) {
			r.keepEarly(out, s.want(), &steps[i+1])
		}
		got := normalGot(out, s)
		if s.Flaky || target != goldenStandalone && seesMembership(s) {
			continue
		}
		compared.Add(1)
		want := normalWant(s.want(), s)
		same := bytes.Equal(jsonText(want), jsonText(got))
		reason, listed := exceptions[stepKey(filepath.Base(file), s.I)]
		if listed {
			excepted.Add(1)
		}
		switch {
		case listed && same:
			t.Errorf("%s, step %d is listed as an exception (%s), but does not differ", file, s.I, reason)
		case !listed && !same:
			if differences++; differences <= goldenReportsMax {
				t.Errorf("%s, step %d\n  step %s\n  want %s\n  got  %s", file, s.I, describeStep(s), jsonText(want), jsonText(got))
			}
		}
	}
	if differences > goldenReportsMax {
		t.Errorf("%s: %d further differences", file, differences-goldenReportsMax)
	}
}

// seesMembership tells whether a step may show what an ensemble has in /zookeeper/config, where a standalone server has
// an empty node. The quota of the root counts that node, too.
func seesMembership(s *goldenStep) bool {
	text := describeStep(s)
	return bytes.Contains(text, []byte("/zookeeper/config")) || bytes.Contains(text, []byte("/zookeeper/quota/zookeeper_stats"))
}

func describeStep(s *goldenStep) []byte {
	o := goldenObject{"op": s.Op, "s": s.Session}
	if s.Args != nil {
		o["args"] = s.Args
	}
	if s.Steps != nil {
		var requests []any
		for i := range s.Steps {
			requests = append(requests, goldenObject{"s": s.Steps[i].Session, "op": s.Steps[i].Op, "args": s.Steps[i].Args})
		}
		o["steps"] = requests
	}
	text := jsonText(o)
	const max = 1000
	if len(text) > max {
		text = append(text[:max:max], "..."...)
	}
	return text
}

func stepKey(file string, i int) string { return fmt.Sprintf("%s:%d", file, i) }

// The recordings are all there and each operation is known; the exceptions are few and name steps that are compared.
func TestGoldenRecordings(t *testing.T) {
	known := map[string]bool{"connect": true, "ensure": true, "drop": true, "batch": true, "par": true, "await": true, "sleep": true, "tcp": true, "raw": true, "fourlw": true, "req": true}
	for op := range goldenOps {
		known[op] = true
	}
	files := goldenFiles(t)
	require.GreaterOrEqual(t, len(files), goldenFilesMin)
	exceptions := exceptionsByStep(t)
	compared := 0
	for _, file := range files {
		h, steps, err := readRecording(file)
		require.NoError(t, err)
		base := filepath.Base(file)
		require.Equal(t, strings.TrimSuffix(base, ".jsonl"), h.Name)
		require.NotEmpty(t, steps)
		for i, s := range steps {
			require.Equal(t, i+1, s.I, base)
			require.True(t, known[s.Op], "%s, step %d: %s", base, s.I, s.Op)
			if !s.Flaky {
				compared++
				delete(exceptions, stepKey(base, s.I))
			}
		}
	}
	require.Empty(t, exceptions, "exceptions for steps that are not compared")
	require.GreaterOrEqual(t, compared, goldenStepsMin)
	excepted := len(exceptionsByStep(t))
	require.Less(t, 100*float64(excepted), goldenExceptionsMaxPercent*float64(compared), "%d exceptions of %d steps", excepted, compared)
}

// What the next step waits for may come a step early, and nothing else may.
func TestGoldenEarlyEvents(t *testing.T) {
	reply, one, two := goldenObject{"k": "reply"}, goldenObject{"k": "event", "n": 1}, goldenObject{"k": "event", "n": 2}
	await := &goldenStep{Op: "await", Session: "B"}
	tests := []struct {
		name            string
		next            *goldenStep
		got, want       []any
		left, keptEarly []any
	}{
		{"nothing early", await, []any{reply}, []any{reply}, []any{reply}, nil},
		{"both early", await, []any{reply, one, two}, []any{reply}, []any{reply}, []any{one, two}},
		{"one belongs here", await, []any{one, reply, two}, []any{one, reply}, []any{one, reply}, []any{two}},
		{"before the reply", await, []any{one, reply}, []any{reply}, []any{one, reply}, nil},
		{"another step", &goldenStep{Op: "getData", Session: "B"}, []any{reply, one}, []any{reply}, []any{reply, one}, nil},
		{"another wait", &goldenStep{Op: "await", Session: "B", Args: goldenArgs{"what": "gone"}}, []any{reply, one}, []any{reply}, []any{reply, one}, nil},
		{"another session", &goldenStep{Op: "await", Session: "A"}, []any{reply, one}, []any{reply}, []any{reply, one}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newGoldenRun("", 0)
			got := goldenResults{"B": tt.got}
			r.keepEarly(got, goldenResults{"B": tt.want}, tt.next)
			require.Equal(t, tt.left, got["B"])
			require.Equal(t, tt.keptEarly, r.early["B"])
		})
	}
}
