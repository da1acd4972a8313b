package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"zabra/conf"
)

// TestLogInAFile: with the properties of ZooKeeper's log4j.properties the log goes to a file, which is opened anew at SIGHUP.
func TestLogInAFile(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	file := filepath.Join(dir, "zk.log")
	cfg := writeFile(t, "zoo.cfg", fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n", t.TempDir(), port))
	cmd := program(t, "server", "-Dzookeeper.root.logger=INFO,CONSOLE,ROLLINGFILE", "-Dzookeeper.log.dir="+dir, "-Dzookeeper.log.file=zk.log",
		"-Dzookeeper.console.threshold=WARN", "-Dzookeeper.audit.enable=true", cfg)
	stdout := filepath.Join(t.TempDir(), "stdout")
	out, err := os.Create(stdout)
	require.NoError(t, err)
	defer out.Close()
	cmd.Stdout = out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	await := func(path, text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(readText(path), text) }, deadline, time.Millisecond, text)
	}
	await(file, "] - serving {")
	require.Regexp(t, `(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \[myid:\] - INFO  \[main:server@\d+\] - serving \{`, readText(file))
	await(filepath.Join(dir, "zookeeper_audit.log"), "operation=serverStart\tresult=success\n")
	require.NoError(t, os.Rename(file, file+".moved"))
	require.NoError(t, os.WriteFile(cfg, []byte("clientPort=x\n"), 0o600))
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	await(stdout, "the configuration has faults, so nothing has changed")
	require.NoError(t, os.WriteFile(cfg, []byte(fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nroot.logger=DEBUG\n", t.TempDir(), port)), 0o600))
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	await(file, "configuration loaded again")
	await(file, "root.logger: where the log goes changes at a restart; its level counts at once")
	require.Contains(t, ask(t, port, "ruok"), "ruok is not executed")
	await(file, "Processing ruok command")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	require.NotContains(t, readText(stdout), " INFO ")
	await(filepath.Join(dir, "zookeeper_audit.log"), "operation=serverStop\tresult=invoked\n")
}

func readText(path string) string {
	text, _ := os.ReadFile(path) // "" while it is not there
	return string(text)
}

// TestLevelsOfBothOutputs: each has its threshold, and none is below the level of the whole.
func TestLevelsOfBothOutputs(t *testing.T) {
	for _, tt := range []struct {
		cfg           conf.Config
		console, file zapcore.Level
	}{
		{conf.Config{}, zap.InfoLevel, zap.InfoLevel},
		{conf.Config{LogLevel: "debug", Log: conf.Log{ConsoleLevel: "warn"}}, zap.WarnLevel, zap.DebugLevel},
		{conf.Config{LogLevel: "warn", Log: conf.Log{ConsoleLevel: "debug", FileLevel: "error"}}, zap.WarnLevel, zap.ErrorLevel},
	} {
		l := levels{zap.NewAtomicLevel(), zap.NewAtomicLevel()}
		l.set(&tt.cfg)
		require.Equal(t, tt.console, l.console.Level())
		require.Equal(t, tt.file, l.file.Level())
	}
	flags := serverFlags{logLevel: "error"}
	cfg, err := flags.load([]string{writeFile(t, "zoo.cfg", "dataDir=/d\nclientPort=1\nroot.logger=INFO\nconsole.threshold=WARN\n")})
	require.NoError(t, err)
	require.Empty(t, cfg.Log.ConsoleLevel, "--log-level counts more")
	_, _, err = serverLog(&conf.Config{Log: conf.Log{ToFile: true, Dir: "/nowhere", File: "x"}}, "line", levels{})
	require.ErrorContains(t, err, "look at log.dir and log.file")
}
