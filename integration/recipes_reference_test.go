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
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

const (
	// recipesServer is the variable by which the recipes' tests are given a server.
	recipesServer = "ZABRA_RECIPES_SERVER"
	// recipesPassedMin is how many tests of the recipes have to pass: with fewer, they were not really run.
	recipesPassedMin = 300
)

// TestRecipesOnReferenceServer runs the recipes' own tests against a reference server. A test is skipped only where it says that it
// needs a server of its own, because it ends members of an ensemble for example; the log names it.
func TestRecipesOnReferenceServer(t *testing.T) {
	// The tests ask for sessions of 200 ms to 2 s, which are 2 and 20 ticks.
	server := newServer(t, harness.Apache395, map[string]string{"tickTime": "100"})
	server.Defines = nil // empty containers stay for a minute, as they do by default: some tests look for them
	require.NoError(t, server.Start())
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-timeout=5m", "-json", "./recipes/...")
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
		t.Logf("left out: %s: %s", skipped, strings.TrimSpace(lastLines(reason, 2)))
		require.Contains(t, reason, recipesServer, "%s is left out for another reason", skipped)
	}
	t.Logf("%d passed, %d were left out", len(outcome.ended["pass"]), len(outcome.ended["skip"]))
	require.GreaterOrEqual(t, len(outcome.ended["pass"]), recipesPassedMin)
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
