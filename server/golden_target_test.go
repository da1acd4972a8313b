package server_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
)

// goldenCommandVariable names an environment variable with a shell command. If it is set, the recordings are replayed
// against the servers that this command starts, one for each, which is how the replayer itself was checked against
// Apache ZooKeeper. The command finds in its environment GOLDEN_PORT, GOLDEN_DIR (an empty directory), GOLDEN_CHECK_MS
// (the container check interval) and GOLDEN_QUOTA (whether quotas are enforced); the rest of the set-up is the one in
// goldenOptions. It must not return before the server ends.
const goldenCommandVariable = "ZABRA_GOLDEN_COMMAND"

const (
	// goldenCheckMs is far away, so that no scan for containers falls into a recording that is not about one, however long its
	// replay takes.
	goldenCheckMs     = "86400000"
	goldenSuperDigest = "super:HXvGvgF2Ib4CYqqs04RcSgJn1Zo=" // password zkdiff
	goldenStartWait   = time.Minute
)

// goldenTarget is what recordings are replayed against.
type goldenTarget uint8

const (
	goldenStandalone goldenTarget = iota
	goldenLeader                  // of an ensemble of three
	goldenFollower
)

// goldenEpoch is the beginning of the epoch that an ensemble is in. It is the first one, unless a machine that is very busy made
// it elect twice.
func goldenEpoch(t *testing.T, e *servertest.Ensemble) int64 {
	text, err := os.ReadFile(filepath.Join(e.Server(e.Leader()).DataDir(), "version-2", "currentEpoch"))
	require.NoError(t, err)
	epoch, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	require.NoError(t, err)
	return epoch << 32
}

// startGolden starts a fresh server in the set-up of a recording and returns its address, and the zxid that it begins at.
func startGolden(t *testing.T, h *goldenHeader, target goldenTarget) (addr string, base int64) {
	checkMs, quota := goldenCheckMs, "false"
	if h.Server.ContainerCheckMs != "" {
		checkMs = h.Server.ContainerCheckMs
	}
	if h.Server.EnforceQuota != "" {
		quota = h.Server.EnforceQuota
	}
	if command := os.Getenv(goldenCommandVariable); command != "" {
		return startCommand(t, command, checkMs, quota), 0
	}
	opts := []servertest.Option{
		servertest.WithConfig("tickTime", "500"),
		servertest.WithConfig("maxClientCnxns", "0"),
		servertest.WithConfig("4lw.commands.whitelist", "*"),
		servertest.WithConfig("extendedTypesEnabled", "true"),
		servertest.WithConfig("DigestAuthenticationProvider.superDigest", goldenSuperDigest),
		servertest.WithConfig("znode.container.checkIntervalMs", checkMs),
		servertest.WithConfig("enforceQuota", quota),
	}
	if target == goldenStandalone {
		return servertest.Start(t, opts...).Addr(), 0
	}
	e := servertest.StartEnsemble(t, 3, opts...)
	if target == goldenFollower {
		return e.Server(e.Follower()).Addr(), goldenEpoch(t, e)
	}
	return e.Server(e.Leader()).Addr(), goldenEpoch(t, e)
}

func startCommand(t *testing.T, command, checkMs, quota string) string {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().(*net.TCPAddr)
	require.NoError(t, free.Close())

	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), fmt.Sprint("GOLDEN_PORT=", addr.Port), "GOLDEN_DIR="+t.TempDir(), "GOLDEN_CHECK_MS="+checkMs, "GOLDEN_QUOTA="+quota)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	serving := func() bool {
		r := newGoldenRun(addr.String(), 0)
		r.out = goldenResults{}
		r.fourLetterWord(goldenArgs{"cmd": "srvr", "prefix": "Zookeeper version: "})
		return r.out["4lw"][0].(goldenObject)["text"] == true
	}
	require.Eventually(t, serving, goldenStartWait, 50*time.Millisecond)
	return addr.String()
}
