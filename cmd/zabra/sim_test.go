package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSim(t *testing.T) {
	for _, tc := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"a few seeds", []string{"--seeds", "1-2"}, exitOK, "seeds 1 to 2: 2 worlds", ""},
		{"one seed", []string{"--seeds", "7"}, exitOK, "seeds 7 to 7: 1 worlds", ""},
		{"a planted bug is found", []string{"--seeds", "1-5", "--plant", "ack-early", "--trace", "5"}, exitOK, "seed 1 FAILS: E-14", ""},
		{"a planted bug that does not show", []string{"--seeds", "1", "--plant", "sync-without-quorum"}, exitFailure, "", "is not found"},
		{"the planted bugs", []string{"--plant", "list"}, exitOK, "commit-minority\n", ""},
		{"no such bug", []string{"--plant", "nonsense"}, exitConfig, "", "no bug is called"},
		{"seeds the wrong way round", []string{"--seeds", "9-3"}, exitConfig, "", "--seeds"},
		{"no seeds", []string{"--seeds", "all"}, exitConfig, "", "--seeds"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, tc.code, run(append([]string{"sim"}, tc.args...), &stdout, &stderr), stderr.String())
			require.Contains(t, stdout.String(), tc.stdout)
			require.Contains(t, stderr.String(), tc.stderr)
		})
	}
}
