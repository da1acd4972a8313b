package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

// The procedure for a lost ensemble, and that for a lost server: the state is put into empty directories, and everybody
// starts with its digest.
func TestRestoreIntoEmptyDirectories(t *testing.T) {
	file := dataDirs + "/standalone-39/version-2/snapshot.3b"
	restore := func(args ...string) (digest string) {
		var out, errs bytes.Buffer
		require.Equal(t, exitOK, run(append([]string{"restore", file}, args...), &out, &errs), errs.String())
		return regexp.MustCompile(`digest (\d+)`).FindStringSubmatch(out.String())[1]
	}
	e := servertest.StartEnsemble(t, 3)
	for id := 1; id <= 3; id++ {
		e.Stop(id)
	}
	var digest string
	for id := 1; id <= 3; id++ {
		dir := e.Server(id).DataDir()
		require.NoError(t, os.Rename(filepath.Join(dir, "version-2"), filepath.Join(dir, "before")))
		digest = restore("--data-dir", dir)
		e.Start(id)
	}
	e.Await()
	for id := 1; id <= 3; id++ {
		require.Equal(t, digest, fmt.Sprint(e.Digest(id)), "server %d", id)
	}
	c := e.Client(t, e.Follower())
	_, _, err := c.GetData(t.Context(), "/big", false)
	require.NoError(t, err)
	_, err = c.Create(t.Context(), "/goes-on", nil, wire.OpenACL, 0)
	require.NoError(t, err)

	// A client that has seen more than the snapshot has is served.
	seen, err := client.Dial(t.Context(), e.Server(1).Addr(), client.Options{LastZxidSeen: 0x500})
	require.NoError(t, err)
	seen.Abandon()

	dir := t.TempDir()
	config := filepath.Join(t.TempDir(), "zoo.cfg")
	require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf("dataDir=%s\nclientPort=2181\n", filepath.ToSlash(dir))), 0o600))
	require.Equal(t, digest, restore("--config", config))
	s := servertest.Start(t, servertest.WithDataDir(dir))
	_, _, err = s.Client(t).GetData(t.Context(), "/big", false)
	require.NoError(t, err)
}

func TestRestoreCommandLine(t *testing.T) {
	file := dataDirs + "/standalone-39/version-2/snapshot.3b"
	tests := []struct {
		args []string
		code int
		says string
	}{
		{[]string{"restore", file}, exitConfig, "where to?"},
		{[]string{"restore"}, exitConfig, "accepts 1 arg"},
		{[]string{"restore", file, "--config", "/nowhere"}, exitConfig, "/nowhere"},
		{[]string{"restore", file, "--config", "a", "--data-dir", "b"}, exitConfig, "none of the others can be"},
		{[]string{"restore", file, "--data-dir", t.TempDir(), "--epoch", "3000000000"}, exitConfig, "--epoch is at most"},
		{[]string{"restore", "/nowhere", "--data-dir", t.TempDir()}, exitFailure, "/nowhere"},
		{[]string{"restore", file, "--data-dir", dataDirs + "/standalone-39"}, exitFailure, "is not empty"},
	}
	for _, tt := range tests {
		var out, errs bytes.Buffer
		require.Equal(t, tt.code, run(tt.args, &out, &errs), "%v: %s", tt.args, errs.String())
		require.Contains(t, errs.String(), tt.says)
	}
}
