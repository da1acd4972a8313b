package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeVariable makes a process of the test binary a fake server, which ends with its standard input.
const fakeVariable = "ZABRA_BENCH_FAKE"

func TestMain(m *testing.M) {
	if os.Getenv(fakeVariable) == "" {
		os.Exit(m.Run())
	}
	f, err := newFake()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, f.addr())
	go f.accept()
	bufio.NewReader(os.Stdin).ReadString(0)
	os.Exit(0)
}

// forkFake starts a fake server in a process of its own, and returns its address.
func forkFake(t testing.TB) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fakeVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(addr)
}

// BenchmarkGenerator measures the most that the generator can ask of a server, and what that costs it per operation. What
// it shares the machine with is a server that answers without looking.
func BenchmarkGenerator(b *testing.B) {
	for _, load := range []struct {
		workload              string
		sessions, outstanding int
	}{{Get, 64, 16}, {Set, 64, 16}, {Mixed, 64, 16}, {Get, 16, 1}, {Get, 1, 1}} {
		b.Run(fmt.Sprintf("%s %dx%d", load.workload, load.sessions, load.outstanding), func(b *testing.B) {
			c := Default(load.workload)
			c.Servers, c.Sessions, c.Outstanding = []string{forkFake(b)}, load.sessions, load.outstanding
			c.Warmup, c.Duration, c.Count = 200*time.Millisecond, 0, int64(b.N)
			b.ResetTimer()
			res, err := Run(context.Background(), c)
			require.NoError(b, err)
			b.ReportMetric(res.OperationsPerSecond, "ops/s")
			b.ReportMetric(res.Latency.P50, "p50-us")
			b.ReportMetric(res.DurationSeconds*1e9/float64(res.Operations), "ns/op")
			b.ReportMetric(res.GeneratorCPUSeconds*1e9/float64(res.Operations), "cpu-ns/op")
		})
	}
}
