//go:build interop && linux

package integration

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// Environment variables of TestOracle.
const (
	envOracleSeeds   = "ORACLE_SEEDS"   // A-B, or one seed
	envOracleProfile = "ORACLE_PROFILE" // all seeds run this profile
)

const (
	// The seeds that are run when none are asked for: each profile several times, within a minute.
	oracleSeedFirst, oracleSeedLast = 1, 36
	oracleShrinkTime                = 60 * time.Second
	oracleFailuresMax               = 12
	oracleLostMax                   = 3
)

// TestOracle sends the same requests of random clients to Zabra and to Apache ZooKeeper and compares all that comes back:
// every reply, every event, its place in the stream, and the tree at the end. A seed makes the same run each time; a run with
// a difference is made as short as possible before it is shown.
func TestOracle(t *testing.T) {
	first, last := oracleSeeds(t)
	pairs := map[bool]*oraclePair{}
	failures, lost := 0, 0
	for seed := first; seed <= last; seed++ {
		profile := oracleProfileOf(t, seed)
		pair := pairs[profile.reaping]
		if pair == nil {
			pair = startPair(t, profile.reaping)
			pairs[profile.reaping] = pair
		}
		steps := profile.generate(seed)
		begin := time.Now()
		diff, err := pair.run(steps)
		if errors.Is(err, errOracleLost) {
			lost++
			t.Logf("seed %d (%s): %v", seed, profile.name, err)
			require.Less(t, lost, oracleLostMax, "the reference server ends too often")
			require.NoError(t, pair.renew())
			continue
		}
		require.NoError(t, err, "seed %d (%s)", seed, profile.name)
		if diff == nil {
			t.Logf("seed %d (%s): %d steps in %v", seed, profile.name, len(steps), time.Since(begin).Round(time.Millisecond))
			continue
		}
		t.Errorf("seed %d (%s): %s", seed, profile.name, shrunk(pair, steps, diff))
		if failures++; failures >= oracleFailuresMax {
			t.Fatal("too many differences, the rest of the seeds is left out")
		}
	}
}

func oracleSeeds(t *testing.T) (first, last uint64) {
	text := os.Getenv(envOracleSeeds)
	if text == "" {
		return oracleSeedFirst, oracleSeedLast
	}
	from, to, ranged := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 10, 64)
	require.NoError(t, err, envOracleSeeds)
	if !ranged {
		return first, first
	}
	last, err = strconv.ParseUint(to, 10, 64)
	require.NoError(t, err, envOracleSeeds)
	require.LessOrEqual(t, first, last, envOracleSeeds)
	return first, last
}

func oracleProfileOf(t *testing.T, seed uint64) *oracleProfile {
	name := os.Getenv(envOracleProfile)
	if name == "" {
		return oracleProfiles[seed%uint64(len(oracleProfiles))]
	}
	for _, p := range oracleProfiles {
		if p.name == name {
			return p
		}
	}
	require.Failf(t, "unknown profile", "%s=%s", envOracleProfile, name)
	return nil
}

// startPair starts both servers on the same settings. Containers and outlived nodes are deleted either quickly or never.
func startPair(t *testing.T, reaping bool) *oraclePair {
	interval := "3600000"
	if reaping {
		interval = "200"
	}
	p := &oraclePair{}
	for i, kind := range []harness.Kind{harness.Apache395, serverUnderTest(t)} {
		server, err := harness.New(kind, t.TempDir(), map[string]string{"maxSessionTimeout": "60000", "enforceQuota": "true"})
		require.NoError(t, err)
		server.Defines = []string{"-Dznode.container.checkIntervalMs=" + interval}
		t.Cleanup(server.Kill)
		require.NoError(t, server.Start())
		p.servers[i] = server
	}
	return p
}

// shrunk makes a run with a difference short and tells it.
func shrunk(p *oraclePair, steps []oracleStep, diff *oracleDiff) string {
	var b strings.Builder
	fmt.Fprintf(&b, "of %d steps, %s", len(steps), diff)
	deadline := time.Now().Add(oracleShrinkTime)
	fails := func(candidate []oracleStep) bool {
		if time.Now().After(deadline) {
			return false
		}
		d, err := p.run(candidate)
		if err != nil {
			_ = p.renew()
			return false
		}
		if d != nil {
			diff = d
		}
		return d != nil
	}
	steps = steps[:min(diff.at+1, len(steps))]
	if !fails(steps) {
		fmt.Fprintf(&b, "  the difference does not come again (run %d of these servers)\n", p.runs)
		return b.String()
	}
	steps = shrinkSteps(steps[:min(diff.at+1, len(steps))], fails)
	steps = shrinkRequests(steps, fails)
	fails(steps)
	fmt.Fprintf(&b, "  shrunk to %d steps:\n", len(steps))
	for i := range steps {
		fmt.Fprintf(&b, "    %d: %s\n", i, steps[i].String())
	}
	fmt.Fprintf(&b, "  there, %s", diff)
	return b.String()
}

// shrinkSteps takes steps away as long as the rest fails: first in large pieces.
func shrinkSteps(steps []oracleStep, fails func([]oracleStep) bool) []oracleStep {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for again := true; again; {
			again = false
			for from := 0; from < len(steps); {
				shorter := append(append([]oracleStep(nil), steps[:from]...), steps[min(from+size, len(steps)):]...)
				if len(shorter) > 0 && fails(shorter) {
					steps, again = shorter, size == 1
				} else {
					from += size
				}
			}
		}
	}
	return steps
}

// shrinkRequests takes away single requests of batches and single operations of multis.
func shrinkRequests(steps []oracleStep, fails func([]oracleStep) bool) []oracleStep {
	try := func(i int, reqs []oracleReq) bool {
		candidate := append([]oracleStep(nil), steps...)
		candidate[i].reqs = reqs
		if !fails(candidate) {
			return false
		}
		steps = candidate
		return true
	}
	for i := range steps {
		for at := 0; at < len(steps[i].reqs) && len(steps[i].reqs) > 1; {
			if !try(i, append(append([]oracleReq(nil), steps[i].reqs[:at]...), steps[i].reqs[at+1:]...)) {
				at++
			}
		}
		for r := range steps[i].reqs {
			for at := 0; at < len(steps[i].reqs[r].subs); {
				reqs := append([]oracleReq(nil), steps[i].reqs...)
				subs := reqs[r].subs
				reqs[r].subs = append(append([]oracleSub(nil), subs[:at]...), subs[at+1:]...)
				if !try(i, reqs) {
					at++
				}
			}
		}
	}
	return steps
}
