package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckConfForScripts(t *testing.T) {
	t.Setenv("SERVER_JVMFLAGS", "")
	t.Setenv("JVMFLAGS", "")
	good := writeFile(t, "zoo.cfg", "dataDir=/d\nclientPort=2181\ntickTme=5\nssl.keyStore.password=hunter2\n")
	bad := writeFile(t, "zoo.cfg", "clientPort=x\ntickTme=5\n")
	tests := []struct {
		name         string
		args         []string
		code         int
		stdout, says string
	}{
		{"good, quiet", []string{"--faults-only", good}, exitOK, "", ""},
		{"bad, quiet", []string{"--faults-only", bad}, exitConfig, "", `zoo.cfg:1: clientPort: For input string: "x"`},
		{"a key", []string{"--key", "clientPort", good}, exitOK, "2181\n", ""},
		{"a default", []string{"--key", "tickTime", good}, exitOK, "3000\n", ""},
		{"a key of -D", []string{"-Dzookeeper.snapCount=7", "--key=snapCount", good}, exitOK, "7\n", ""},
		{"a key without a value", []string{"--key", "dataLogDir", good}, exitFailure, "", ""},
		{"no such key", []string{"--key", "tickTme", good}, exitFailure, "", ""},
		{"a secret", []string{"--key", "ssl.keyStore.password", good}, exitFailure, "", ""},
		{"a key of a bad file", []string{"--key", "tickTime", bad}, exitConfig, "", "dataDir is not set"},
		{"both", []string{"--key", "tickTime", "--faults-only", good}, exitConfig, "", "none of the others can be"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, stderr := execute(append([]string{"check-conf"}, tt.args...)...)
			require.Equal(t, tt.code, code)
			require.Equal(t, tt.stdout, out)
			require.Contains(t, stderr, tt.says)
			require.NotContains(t, stderr, "tickTme")
			require.NotContains(t, stderr, "hunter2")
		})
	}
}

// TestCheckConfParsesAgain: the output is a file that amounts to the same.
func TestCheckConfParsesAgain(t *testing.T) {
	code, first, _ := execute("check-conf", writeFile(t, "zoo.cfg",
		"dataDir=/d\nclientPort=2181\nsuperUser.a=b c\nleaderServes=no\n4lw.commands.whitelist=ruok, srvr\nnio.numWorkerThreads=3\n"))
	require.Equal(t, exitOK, code)
	require.Contains(t, first, "# nio.numWorkerThreads is given, its value makes no difference\n")
	code, second, _ := execute("check-conf", writeFile(t, "zoo.cfg", first))
	require.Equal(t, exitOK, code)
	settings := func(text string) (lines []string) {
		for line := range strings.SplitSeq(text, "\n") {
			if line != "" && line[0] != '#' {
				lines = append(lines, line)
			}
		}
		return lines
	}
	require.ElementsMatch(t, settings(first), settings(second))
}
