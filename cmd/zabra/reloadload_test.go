package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/wire"
)

// TestReloadUnderLoad: while clients write, the configuration is loaded again and again, with everything that a running server
// takes switched on and off. No request fails and no session is lost.
func TestReloadUnderLoad(t *testing.T) {
	const clients, reloads = 8, 12
	port, dir := freePort(t), t.TempDir()
	text := fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n", dir, port)
	file := writeFile(t, "zoo.cfg", text)
	r, _ := launch(t, program(t, "server", file), "] - serving {")

	stop := make(chan struct{})
	var writing sync.WaitGroup
	var all []*client.Client
	failures := make(chan error, clients)
	for i := range clients {
		c, err := client.Dial(t.Context(), fmt.Sprint("127.0.0.1:", port), client.Options{})
		require.NoError(t, err)
		t.Cleanup(c.Abandon)
		all = append(all, c)
		path := fmt.Sprint("/e", i)
		_, err = c.Create(t.Context(), path, nil, wire.OpenACL, wire.FlagEphemeral)
		require.NoError(t, err)
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.SetData(t.Context(), path, []byte("x"), -1); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	on := text + fmt.Sprintf(`maxClientCnxns=3
maxCnxns=3
globalOutstandingLimit=2
request_throttle_max_requests=1
largeRequestThreshold=1000
connection_throttle_tokens=1
connection_throttle_fill_time=1000000
snapCount=50
autopurge.purgeInterval=1
enforceQuota=true
audit.enable=true
zabra.audit.format=json
zabra.audit.file=%s/audit.log
4lw.commands.whitelist=*
root.logger=WARN
console.threshold=ERROR
`, t.TempDir())
	for i := range reloads {
		now, line := text, "configuration loaded again"
		if i%2 == 0 {
			now = on
		}
		require.NoError(t, os.WriteFile(file, []byte(now), 0o600))
		require.NoError(t, r.cmd.Process.Signal(syscall.SIGHUP))
		r.await(t, line)
	}
	close(stop)
	writing.Wait()
	select {
	case err := <-failures:
		require.NoError(t, err)
	default:
	}
	for i, c := range all {
		stat, err := c.Exists(t.Context(), fmt.Sprint("/e", i), false)
		require.NoError(t, err)
		require.Equal(t, c.Session(), stat.EphemeralOwner, "client %d has lost its session", i)
		require.Positive(t, stat.Version)
	}
	require.NoError(t, r.stop(t, syscall.SIGTERM))
}
