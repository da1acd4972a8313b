package servertest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"zabra/server/client"
	"zabra/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	t.Cleanup(cancel)
	return ctx
}

func TestStart(t *testing.T) {
	s := Start(t)
	c := s.Client(t)
	_, err := c.Create(testContext(t), "/a", []byte("x"), wire.OpenACL, 0)
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(s.DataDir(), "version-2"))
	require.Equal(t, 10*time.Second, c.Timeout())
	require.NoError(t, c.Close(testContext(t)))
}

func TestServersDoNotShareAnything(t *testing.T) {
	a, b := Start(t), Start(t)
	require.NotEqual(t, a.Addr(), b.Addr())
	_, err := a.Client(t).Create(testContext(t), "/a", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	_, err = b.Client(t).Exists(testContext(t), "/a", false)
	require.Equal(t, wire.CodeNoNode, err)
}

func TestOptions(t *testing.T) {
	logged, logs := observer.New(zap.InfoLevel)
	dir := t.TempDir()
	s := Start(t, WithConfig("tickTime", "100"), WithConfig("tickTime", "200"), WithDataDir(dir), WithLog(zap.New(logged)))
	require.Equal(t, dir, s.DataDir())
	require.Equal(t, 400*time.Millisecond, s.Client(t, client.Options{Timeout: time.Nanosecond}).Timeout())
	require.NotZero(t, logs.Len())
}

func TestRestart(t *testing.T) {
	s := Start(t)
	addr := s.Addr()
	c := s.Client(t)
	_, err := c.Create(testContext(t), "/e", nil, wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)
	s.Restart()
	require.Equal(t, addr, s.Addr())
	<-c.Done()
	again := s.Client(t, client.Options{Session: c.Session(), Password: c.Password(), LastZxidSeen: c.LastZxid()})
	stat, err := again.Exists(testContext(t), "/e", false)
	require.NoError(t, err)
	require.Equal(t, c.Session(), stat.EphemeralOwner)
	s.Stop()
	_, err = client.Dial(testContext(t), addr, client.Options{})
	require.Error(t, err)
	s.Restart()
	s.Client(t)
}

// What was acknowledged survives a kill; what was not may or may not.
func TestKill(t *testing.T) {
	s := Start(t)
	acknowledged := 0
	for round := range 5 {
		c := s.Client(t)
		var calls []*client.Call
		for i := range 200 {
			calls = append(calls, c.Go(wire.OpCreate, &wire.CreateRequest{Path: fmt.Appendf(nil, "/%d-%d", round, i), ACL: wire.OpenACL}))
		}
		require.NoError(t, calls[20*round].Wait(testContext(t)))
		s.Kill()
		<-c.Done()
		var done []string
		for i, call := range calls {
			err := call.Wait(testContext(t))
			if err == nil {
				done = append(done, fmt.Sprintf("/%d-%d", round, i))
				continue
			}
			require.True(t, errors.Is(err, wire.CodeConnectionLoss), "%v", err)
		}
		acknowledged += len(done)
		s.Restart()
		again := s.Client(t)
		for _, path := range done {
			_, err := again.Exists(testContext(t), path, false)
			require.NoError(t, err, path)
		}
	}
	names, err := s.Client(t).GetChildren(testContext(t), "/", false)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(names), acknowledged+1)
}

func TestDeadDiskChangesNothing(t *testing.T) {
	disk := newMortalDisk()
	dir := t.TempDir()
	f, err := disk.Create(filepath.Join(dir, "a"))
	require.NoError(t, err)
	disk.die()
	require.ErrorIs(t, f.Sync(), errDead)
	require.ErrorIs(t, disk.Remove(filepath.Join(dir, "a")), errDead)
	require.NoError(t, f.Close())
	names, err := disk.List(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
}
