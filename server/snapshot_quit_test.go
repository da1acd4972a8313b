package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/zab"
)

// Close does not wait until a purge has read a large snapshot to its end.
func TestVerifyingGivesUpWhenClosed(t *testing.T) {
	s := &Server{cfg: conf.Default(), quit: make(chan struct{})}
	verify := func() error { return s.verifySnapshot(strings.NewReader("no snapshot"), zab.SnapshotFile{}) }
	err := verify()
	require.Error(t, err)
	require.NotErrorIs(t, err, errSnapshotClosed)
	close(s.quit)
	require.ErrorIs(t, verify(), errSnapshotClosed)
}
