//go:build interop && linux

package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

const (
	// recipesServer is the variable by which the recipes' tests are given a server.
	recipesServer = "ZABRA_RECIPES_SERVER"
	// recipesPassedMin is how many tests of the recipes have to pass: with fewer, they were not really run.
	recipesPassedMin = 500
)

// TestRecipesOnReferenceServer runs the recipes' own tests against reference servers. A test is skipped only where it says that it
// needs a server of its own, because it ends members of an ensemble for example; the log names it.
func TestRecipesOnReferenceServer(t *testing.T) {
	packages, err := recipePackages()
	require.NoError(t, err)
	// The tests of locks count notifications by the server's own counter, so that nobody else may be there.
	const alone = "zabra/recipes/lock"
	require.Contains(t, packages, alone)
	others := slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return p == alone })
	var passed atomic.Int64
	t.Run("packages", func(t *testing.T) {
		for name, group := range map[string][]string{"lock": {alone}, "others": others} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				passed.Add(int64(recipesOnReferenceServer(t, group)))
			})
		}
	})
	t.Logf("%d passed", passed.Load())
	require.GreaterOrEqual(t, passed.Load(), int64(recipesPassedMin))
}

func recipePackages() ([]string, error) {
	list := exec.Command("go", "list", "./recipes/...")
	list.Dir = harness.Root()
	out, err := list.Output()
	return strings.Fields(string(out)), err
}

// recipesOnReferenceServer tests packages on a server of their own and returns how many tests have passed.
func recipesOnReferenceServer(t *testing.T, packages []string) int {
	// What is durable is not in question here, and with a sync for each write the tests take far longer. The tests ask for
	// sessions of 200 ms to 2 s, which are 2 and 20 ticks.
	server := newServer(t, harness.Apache395, map[string]string{"tickTime": "100", "forceSync": "no"})
	server.Defines = nil // empty containers stay for a minute, as they do by default: some tests look for them
	require.NoError(t, server.Start())
	cmd := exec.Command("go", append([]string{"test", "-count=1", "-vet=off", "-timeout=5m", "-json"}, packages...)...)
	cmd.Dir = harness.Root()
	cmd.Env = append(os.Environ(), recipesServer+"="+server.Addr())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	outcome := readTestEvents(t, stdout)
	for _, failed := range outcome.ended["fail"] {
		t.Errorf("%s fails: %s", failed, lastLines(outcome.output[failed], 30))
	}
	require.NoError(t, err, stderr.String())
	for _, skipped := range outcome.ended["skip"] {
		reason := outcome.output[skipped]
		t.Logf("left out: %s: %s", skipped, strings.TrimSpace(lastLines(reason, 1)))
		require.Contains(t, reason, recipesServer, "%s is left out for another reason", skipped)
	}
	return len(outcome.ended["pass"])
}

// testOutcome is what go test -json tells, by the package and name of a test; a package has a name without a test.
type testOutcome struct {
	ended  map[string][]string // by "pass", "fail" and "skip"
	output map[string]string
}

func readTestEvents(t *testing.T, stdout []byte) testOutcome {
	o := testOutcome{ended: map[string][]string{}, output: map[string]string{}}
	lines := bufio.NewScanner(bytes.NewReader(stdout))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test, Output string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &event), lines.Text())
		name := strings.TrimSpace(strings.TrimPrefix(event.Package, "zabra/") + " " + event.Test)
		switch event.Action {
		case "output":
			// The lines that go test itself prints about a test tell nothing.
			if text := strings.TrimSpace(event.Output); !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- ") {
				o.output[name] += event.Output
			}
		case "pass", "skip":
			if event.Test != "" { // a package without tests is skipped, too
				o.ended[event.Action] = append(o.ended[event.Action], name)
			}
		case "fail":
			o.ended[event.Action] = append(o.ended[event.Action], name)
		}
	}
	require.NoError(t, lines.Err())
	slices.Sort(o.ended["fail"])
	return o
}
