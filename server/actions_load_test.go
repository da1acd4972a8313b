package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/wire"
)

// creators are clients that create nodes as long as they may, and begin anew where they are cut off.
type creators struct {
	stop    context.CancelFunc
	clients sync.WaitGroup
	mu      sync.Mutex
	created map[string]bool // and acknowledged
}

func startCreators(t *testing.T, clients int, servers ...*shell) *creators {
	t.Helper()
	l := &creators{created: map[string]bool{}}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(t.Context())
	t.Cleanup(l.stop)
	for i := range clients {
		l.clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				c, err := client.Dial(ctx, servers[(i+n)%len(servers)].Addr().String(), client.Options{})
				if err != nil {
					continue
				}
				for err == nil && ctx.Err() == nil {
					n++
					path := fmt.Sprintf("/c%d-%d", i, n)
					if _, err = c.Create(ctx, path, []byte(path), wire.OpenACL, 0); err == nil {
						l.note(path)
					}
				}
				c.Abandon()
			}
		})
	}
	return l
}

func (l *creators) note(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created[path] = true
}

func (l *creators) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.created)
}

// more waits until so many more nodes are created.
func (l *creators) more(t *testing.T, n int) {
	t.Helper()
	from := l.count()
	until(t, "clients write", func() bool { return l.count() >= from+n })
}

func (l *creators) end() {
	l.stop()
	l.clients.Wait()
}

// The lead goes round while clients write: each time to another member, and nothing that was acknowledged is lost.
func TestHandOverUnderLoad(t *testing.T) {
	members := startMembers(t, 3)
	l := startCreators(t, 4, members...)
	for range 4 {
		leader := awaitLeader(t, members)
		l.more(t, 40)
		r := members[leader-1].Act("handover", anyone, "")
		require.Zero(t, r.Status, r.Error)
		require.NotEqual(t, int64(leader), answered(t, r, "new_leader"))
	}
	l.more(t, 40)
	l.end()
	awaitLeader(t, members)
	c := members[0].client()
	_, err := c.Sync(t.Context(), "/")
	require.NoError(t, err)
	children, err := c.GetChildren(t.Context(), "/", false)
	require.NoError(t, err)
	have := map[string]bool{}
	for _, name := range children {
		have["/"+name] = true
	}
	for path := range l.created {
		require.True(t, have[path], path)
	}
}

// The state is replaced while clients write; they go on with the new one, which is also what the next start finds.
func TestRestoreUnderLoad(t *testing.T) {
	s := startShell(t, shellConfig(t, unlimited))
	l := startCreators(t, 4, s)
	l.more(t, 100)
	b := sent(t, s.Act("backup", anyone, ""))
	for range 3 {
		l.more(t, 100)
		s.SnapshotNow()
		r := s.Act("restore", anyone, string(b))
		require.Zero(t, r.Status, r.Error)
	}
	l.more(t, 100)
	l.end()
	s.shutdown()
	digest := s.Digest()
	require.EqualValues(t, 3, s.Stats().Zxid.Epoch())
	again := startShell(t, s.cfg)
	require.Equal(t, digest, again.Digest())
}
