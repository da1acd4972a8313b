package server_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
)

// A server that is stopped in peace under load has answered all that it carried out. The next one on the directory goes
// on as if nothing had been: the same data, sessions, ephemerals and sequence numbers. ZooKeeper would find the same, in
// logs that end with their last record.
func TestStopAndRestart(t *testing.T) {
	for name, dir := range map[string]func(t *testing.T) (vfs.FS, *conf.Config){
		"memory": func(t *testing.T) (vfs.FS, *conf.Config) { return vfs.NewMem(), durableConfig(t) },
		"disk": func(t *testing.T) (vfs.FS, *conf.Config) {
			cfg := durableConfig(t)
			cfg.DataDir, cfg.DataLogDir = t.TempDir(), t.TempDir()
			return vfs.OS{}, cfg
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			fs, cfg := dir(t)
			s := startDurable(t, fs, cfg, nil).serve()
			l := newLoad(s, 5)
			for round := range 3 {
				s, l = l.restart(round)
			}
			l.run(100)
			l.checkRound()
			s.shutdown()
			for _, c := range l.sessions {
				<-c.Done()
				c.Abandon()
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// restart stops the server in the middle of the load and starts the next one.
func (l *load) restart(round int) (*durableShell, *load) {
	t, s := l.t, l.s
	names := l.sequentialNames()
	stopped := make(chan error, 1)
	l.sessions[0].afterward(200, func() {
		ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
		defer cancel()
		stopped <- s.Shutdown(ctx)
	})
	l.run(3000)
	require.NoError(t, <-stopped)
	require.Error(t, s.ended())
	l.checkRound()
	digest, last, sessions := s.Replica().Tree().Digest(), s.Stats().Zxid, s.Stats().Sessions

	require.Equal(t, int(last), len(s.ledger.history()))
	images := []vfs.FS{s.fs}
	if mem, ok := s.fs.(*vfs.Mem); ok { // everything is certain
		images = append(images, mem.CrashClone(rand.New(rand.NewPCG(uint64(round), 2))))
	}
	for _, fs := range images {
		found, err := readStrictly(fs, s.cfg)
		require.NoError(t, err)
		require.Equal(t, last, found.last())
		require.Empty(t, found.padded)
	}
	next := l.recovers(s.fs, last)
	require.Equal(t, last, next.Stats().Zxid)
	require.Equal(t, digest, next.Replica().Tree().Digest())
	require.Equal(t, sessions, next.Stats().Sessions)
	next.serve()
	return next, l.moveTo(next, names)
}

// afterward calls f in a goroutine of its own when the client has got n answers more.
func (c *loadSession) afterward(n int, f func()) {
	c.countdown, c.then = n, f
}

// sequentialNames makes each client create a sequential ephemeral node.
func (l *load) sequentialNames() (names []string) {
	for _, c := range l.sessions {
		names = append(names, c.createSequential())
	}
	require.True(l.t, slices.IsSorted(names), "%q", names)
	return names
}

func (c *loadSession) createSequential() string {
	ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
	defer cancel()
	c.xid++
	r := &crashRequest{xid: c.xid, op: wire.OpCreate, ops: []wire.MultiOp{{Op: wire.OpCreate,
		Create: wire.CreateTTLRequest{Path: []byte("/own-"), Data: []byte{}, ACL: wire.OpenACL, Flags: wire.FlagEphemeralSequential, TTL: -1}}}}
	c.requests[r.xid] = r
	call := c.Go(r.op, r.record())
	require.NoError(c.l.t, call.Wait(ctx))
	c.pending <- struct{}{}
	c.answered(call)
	var reply wire.PathReply
	require.NoError(c.l.t, call.Decode(&reply))
	return string(reply.Path)
}

// moveTo takes all sessions up on the next server. Each still has the node that it made before.
func (l *load) moveTo(next *durableShell, names []string) *load {
	t := l.t
	again := &load{t: t, s: next, first: len(next.ledger.history())}
	ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
	defer cancel()
	for i, c := range l.sessions {
		<-c.Done()
		n := again.open(client.Options{Session: c.Session(), Password: c.Password(), LastZxidSeen: c.LastZxid()}, 10+i)
		require.Equal(t, c.Session(), n.Session())
		again.sessions = append(again.sessions, n)
		n.xid++
		call := n.Go(wire.OpExists, &wire.PathWatchRequest{Path: []byte(names[i])})
		require.NoError(t, call.Wait(ctx))
		var st wire.Stat
		require.NoError(t, call.Decode(&st))
		require.Equal(t, c.Session(), st.EphemeralOwner)
	}
	fresh := again.sequentialNames()
	require.Greater(t, fresh[0], names[len(names)-1], "sequence numbers go on")
	return again
}

// checkRound compares the answers with the log, and requires an answer to each write of this load.
func (l *load) checkRound() {
	l.t.Helper()
	l.check()
	answered := map[zxid.Zxid]bool{}
	for _, a := range l.acks {
		answered[a.z] = true
	}
	for i, payload := range l.s.ledger.history()[l.first:] {
		z := zxid.Zxid(l.first + i + 1)
		if op := typeOf(l.t, payload); op != wire.OpCreateSession {
			require.True(l.t, answered[z], "%v %v was carried out and not answered", op, z)
		}
	}
}
