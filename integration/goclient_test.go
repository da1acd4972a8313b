//go:build interop && linux

package integration

import (
	"fmt"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

const (
	goSessionTimeout = 9 * time.Second
	waitTimeout      = 30 * time.Second
)

var openACL = zk.WorldACL(zk.PermAll)

// goClient is a session of go-zookeeper/zk and the states it went through.
type goClient struct {
	*zk.Conn
	mu     sync.Mutex
	states []zk.State
}

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

// dial opens a session and closes it when the test ends.
func dial(t *testing.T, addr string) *goClient {
	c, err := dialTimeout(addr, goSessionTimeout)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func dialTimeout(addr string, timeout time.Duration) (*goClient, error) {
	conn, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	c := &goClient{Conn: conn}
	go func() {
		for event := range events {
			if event.Type == zk.EventSession {
				c.mu.Lock()
				c.states = append(c.states, event.State)
				c.mu.Unlock()
			}
		}
	}()
	deadline := time.Now().Add(waitTimeout)
	for conn.State() != zk.StateHasSession {
		if time.Now().After(deadline) {
			conn.Close()
			return nil, fmt.Errorf("no session at %s within %v", addr, waitTimeout)
		}
		time.Sleep(2 * time.Millisecond) // between two looks at the state
	}
	return c, nil
}

// sessions returns how often the client has become connected with a session.
func (c *goClient) sessions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, state := range c.states {
		if state == zk.StateHasSession {
			n++
		}
	}
	return n
}

func (c *goClient) sawState(state zk.State) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.states {
		if s == state {
			return true
		}
	}
	return false
}

func (c *goClient) make(t *testing.T, path string) {
	_, err := c.Create(path, []byte{}, 0, openACL)
	require.NoError(t, err)
}

func expectEvent(t *testing.T, events <-chan zk.Event, want zk.EventType, path string) {
	t.Helper()
	select {
	case event := <-events:
		require.NoError(t, event.Err)
		require.Equal(t, want, event.Type)
		require.Equal(t, path, event.Path)
	case <-time.After(waitTimeout):
		require.Failf(t, "no event", "%v %s", want, path)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, waitTimeout, 5*time.Millisecond, what)
}

// TestInteropGo is the go-zookeeper/zk client at work.
func TestInteropGo(t *testing.T) { goAtWork(t, startServer(t, serverUnderTest(t), nil)) }

func goAtWork(t *testing.T, server *harness.Server) {
	proxy, err := harness.NewProxy(server.Addr())
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	env := goEnv{server, proxy}
	t.Run("create-get-set-delete", env.basics)
	t.Run("modes", env.modes)
	t.Run("children", env.children)
	t.Run("unicode-names", env.unicodeNames)
	t.Run("watches", env.watches)
	t.Run("watches-after-reconnect", env.watchesAfterReconnect)
	t.Run("session-survives-restart", func(t *testing.T) { env.sessionSurvives(t, "restart") })
	t.Run("session-survives-kill", func(t *testing.T) { env.sessionSurvives(t, "kill") })
	t.Run("session-expires", env.sessionExpires)
	t.Run("acls-and-auth", env.aclsAndAuth)
	t.Run("multi", env.multi)
	t.Run("locks", env.locks)
	t.Run("pipelined-order", env.pipelinedOrder)
	t.Run("sync-and-reconfig", env.syncAndReconfig)
}

type goEnv struct {
	server *harness.Server
	proxy  *harness.Proxy
}

func (e goEnv) basics(t *testing.T) {
	c := dial(t, e.proxy.Addr())
	c.make(t, "/g")
	path, err := c.Create("/g/a", []byte("one"), 0, openACL)
	require.NoError(t, err)
	require.Equal(t, "/g/a", path)
	data, stat, err := c.Get("/g/a")
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	require.Equal(t, zk.Stat{Czxid: stat.Czxid, Mzxid: stat.Czxid, Pzxid: stat.Czxid, Ctime: stat.Ctime, Mtime: stat.Ctime, DataLength: 3}, *stat)
	changed, err := c.Set("/g/a", []byte("three"), 0)
	require.NoError(t, err)
	require.Equal(t, int32(1), changed.Version)
	require.Greater(t, changed.Mzxid, stat.Mzxid)
	_, err = c.Set("/g/a", nil, 0)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	require.ErrorIs(t, c.Delete("/g/a", 0), zk.ErrBadVersion)
	_, err = c.Create("/g/a", nil, 0, openACL)
	require.ErrorIs(t, err, zk.ErrNodeExists)
	_, err = c.Create("/g/none/a", nil, 0, openACL)
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, _, err = c.Get("/g/none")
	require.ErrorIs(t, err, zk.ErrNoNode)
	exists, _, err := c.Exists("/g/none")
	require.NoError(t, err)
	require.False(t, exists)
	c.make(t, "/g/a/b")
	require.ErrorIs(t, c.Delete("/g/a", -1), zk.ErrNotEmpty)
	require.NoError(t, c.Delete("/g/a/b", 0))
	require.NoError(t, c.Delete("/g/a", 1))
	_, err = c.Create("/g/null", nil, 0, openACL)
	require.NoError(t, err)
	data, _, err = c.Get("/g/null")
	require.NoError(t, err)
	require.Nil(t, data, "null data stays null")
	_, err = c.Set("/g/null", []byte{}, -1)
	require.NoError(t, err)
	data, _, err = c.Get("/g/null")
	require.NoError(t, err)
	require.NotNil(t, data, "empty data is not null")
	require.Empty(t, data)
}

func (e goEnv) modes(t *testing.T) {
	c, other := dial(t, e.proxy.Addr()), dial(t, e.proxy.Addr())
	c.make(t, "/g-modes")
	path, err := c.Create("/g-modes/s-", nil, zk.FlagSequence, openACL)
	require.NoError(t, err)
	require.Equal(t, "/g-modes/s-0000000000", path)
	_, err = c.Create("/g-modes/e", nil, zk.FlagEphemeral, openACL)
	require.NoError(t, err)
	path, err = c.Create("/g-modes/s-", nil, zk.FlagEphemeral|zk.FlagSequence, openACL)
	require.NoError(t, err)
	require.Equal(t, "/g-modes/s-0000000002", path)
	path, err = c.CreateProtectedEphemeralSequential("/g-modes/p-", nil, openACL)
	require.NoError(t, err)
	require.Regexp(t, `^/g-modes/_c_[0-9a-f]{32}-p-0000000003$`, path)
	_, stat, err := other.Exists("/g-modes/e")
	require.NoError(t, err)
	require.Equal(t, c.SessionID(), stat.EphemeralOwner)
	_, err = c.Create("/g-modes/e/c", nil, 0, openACL)
	require.ErrorIs(t, err, zk.ErrNoChildrenForEphemerals)
	path, err = c.CreateContainer("/g-modes/box", nil, zk.FlagContainer, openACL)
	require.NoError(t, err)
	require.Equal(t, "/g-modes/box", path)
	path, err = c.CreateTTL("/g-modes/ttl", nil, zk.FlagTTL, openACL, 700*time.Millisecond)
	require.NoError(t, err)
	_, _, gone, err := other.ExistsW(path)
	require.NoError(t, err)
	c.make(t, "/g-modes/box/x")
	_, _, boxGone, err := other.ExistsW("/g-modes/box")
	require.NoError(t, err)
	require.NoError(t, c.Delete("/g-modes/box/x", -1))
	expectEvent(t, gone, zk.EventNodeDeleted, "/g-modes/ttl")
	expectEvent(t, boxGone, zk.EventNodeDeleted, "/g-modes/box")
	_, _, ephemeralGone, err := other.ExistsW("/g-modes/e")
	require.NoError(t, err)
	c.Close()
	expectEvent(t, ephemeralGone, zk.EventNodeDeleted, "/g-modes/e")
	names, _, err := other.Children("/g-modes")
	require.NoError(t, err)
	require.Equal(t, []string{"s-0000000000"}, names)
}

func (e goEnv) children(t *testing.T) {
	const count = 5000
	c := dial(t, e.proxy.Addr())
	c.make(t, "/g-many")
	want := make([]string, count)
	ops := make([]interface{}, count)
	for i := range want {
		want[i] = fmt.Sprintf("child-with-a-long-name-%08d", i)
		ops[i] = &zk.CreateRequest{Path: "/g-many/" + want[i], Data: []byte{}, Acl: openACL}
	}
	_, err := c.Multi(ops...)
	require.NoError(t, err)
	names, stat, err := c.Children("/g-many")
	require.NoError(t, err)
	sort.Strings(names)
	require.Equal(t, want, names)
	require.Equal(t, int32(count), stat.NumChildren)
	require.Equal(t, int32(count), stat.Cversion)
	names, _, err = c.Children("/g-many/" + want[0])
	require.NoError(t, err)
	require.Empty(t, names)
}

func (e goEnv) unicodeNames(t *testing.T) {
	c := dial(t, e.proxy.Addr())
	c.make(t, "/g-unicode")
	want := []string{"...x", "grüße", "with space", "日本語"}
	for _, name := range want {
		path, err := c.Create("/g-unicode/"+name, []byte(name), 0, openACL)
		require.NoError(t, err)
		require.Equal(t, "/g-unicode/"+name, path)
		data, _, err := c.Get(path)
		require.NoError(t, err)
		require.Equal(t, name, string(data))
	}
	names, _, err := c.Children("/g-unicode")
	require.NoError(t, err)
	sort.Strings(names)
	require.Equal(t, want, names)
}

func (e goEnv) watches(t *testing.T) {
	c, other := dial(t, e.proxy.Addr()), dial(t, e.proxy.Addr())
	c.make(t, "/g-watch")
	exists, _, created, err := c.ExistsW("/g-watch/n")
	require.NoError(t, err)
	require.False(t, exists)
	_, _, children, err := c.ChildrenW("/g-watch")
	require.NoError(t, err)
	other.make(t, "/g-watch/n")
	expectEvent(t, created, zk.EventNodeCreated, "/g-watch/n")
	expectEvent(t, children, zk.EventNodeChildrenChanged, "/g-watch")
	_, _, changed, err := c.GetW("/g-watch/n")
	require.NoError(t, err)
	_, err = other.Set("/g-watch/n", []byte("1"), -1)
	require.NoError(t, err)
	expectEvent(t, changed, zk.EventNodeDataChanged, "/g-watch/n")
	_, _, deleted, err := c.GetW("/g-watch/n")
	require.NoError(t, err)
	_, _, children, err = c.ChildrenW("/g-watch/n")
	require.NoError(t, err)
	require.NoError(t, other.Delete("/g-watch/n", -1))
	expectEvent(t, deleted, zk.EventNodeDeleted, "/g-watch/n")
	expectEvent(t, children, zk.EventNodeDeleted, "/g-watch/n")
}

func (e goEnv) watchesAfterReconnect(t *testing.T) {
	c, other := dial(t, e.proxy.Addr()), dial(t, e.proxy.Addr())
	for _, path := range []string{"/g-re", "/g-re/n", "/g-re/m"} {
		c.make(t, path)
	}
	_, _, changed, err := c.GetW("/g-re/n")
	require.NoError(t, err)
	_, _, created, err := c.ExistsW("/g-re/new")
	require.NoError(t, err)
	_, _, children, err := c.ChildrenW("/g-re")
	require.NoError(t, err)
	_, _, deleted, err := c.GetW("/g-re/m")
	require.NoError(t, err)
	session, before, otherBefore := c.SessionID(), c.sessions(), other.sessions()
	require.NotZero(t, e.proxy.Cut())
	eventually(t, "both connected again", func() bool { return c.sessions() > before && other.sessions() > otherBefore })
	require.Equal(t, session, c.SessionID())
	_, err = other.Set("/g-re/n", []byte("1"), -1)
	require.NoError(t, err)
	expectEvent(t, changed, zk.EventNodeDataChanged, "/g-re/n")
	other.make(t, "/g-re/new")
	expectEvent(t, created, zk.EventNodeCreated, "/g-re/new")
	expectEvent(t, children, zk.EventNodeChildrenChanged, "/g-re")
	require.NoError(t, other.Delete("/g-re/m", -1))
	expectEvent(t, deleted, zk.EventNodeDeleted, "/g-re/m")
}

func (e goEnv) sessionSurvives(t *testing.T, how string) {
	base := "/g-" + how
	c := dial(t, e.proxy.Addr())
	c.make(t, base)
	_, err := c.Create(base+"/e", []byte("mine"), zk.FlagEphemeral, openACL)
	require.NoError(t, err)
	_, before, err := c.Get(base + "/e")
	require.NoError(t, err)
	session, sessions := c.SessionID(), c.sessions()
	require.NoError(t, serve(how, e.server, e.proxy))
	eventually(t, "connected again", func() bool { return c.sessions() > sessions })
	require.Equal(t, session, c.SessionID())
	require.False(t, c.sawState(zk.StateExpired))
	data, after, err := c.Get(base + "/e")
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
	require.Equal(t, before, after)
	path, err := c.Create(base+"/s-", nil, zk.FlagSequence, openACL)
	require.NoError(t, err)
	require.Equal(t, base+"/s-0000000001", path)
	c.Close()
	late := dial(t, e.proxy.Addr())
	names, _, err := late.Children(base)
	require.NoError(t, err)
	require.Equal(t, []string{"s-0000000001"}, names)
}

// sessionExpires cuts a client off for longer than its timeout: the others see its ephemeral go, it learns of its end.
func (e goEnv) sessionExpires(t *testing.T) {
	line, err := harness.NewProxy(e.server.Addr())
	require.NoError(t, err)
	t.Cleanup(line.Close)
	other := dial(t, e.proxy.Addr())
	c, err := dialTimeout(line.Addr(), time.Second)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	c.make(t, "/g-expire")
	_, err = c.Create("/g-expire/e", nil, zk.FlagEphemeral, openACL)
	require.NoError(t, err)
	_, _, gone, err := other.ExistsW("/g-expire/e")
	require.NoError(t, err)
	line.Pause()
	require.NotZero(t, line.Cut())
	start := time.Now()
	expectEvent(t, gone, zk.EventNodeDeleted, "/g-expire/e")
	// The last ping may be a third of the timeout old, and the client is given a tick at most.
	silence := time.Since(start)
	require.Greater(t, silence, 600*time.Millisecond)
	require.Less(t, silence, 4*time.Second)
	require.NoError(t, line.Resume())
	eventually(t, "told that it is expired", func() bool { return c.sawState(zk.StateExpired) })
	eventually(t, "a new session", func() bool { return c.State() == zk.StateHasSession })
}

func (e goEnv) aclsAndAuth(t *testing.T) {
	c, other := dial(t, e.proxy.Addr()), dial(t, e.proxy.Addr())
	c.make(t, "/g-acl")
	require.NoError(t, c.AddAuth("digest", []byte("bob:secret")))
	_, err := c.Create("/g-acl/mine", []byte("p"), 0, zk.AuthACL(zk.PermAll))
	require.NoError(t, err)
	acl, stat, err := c.GetACL("/g-acl/mine")
	require.NoError(t, err)
	require.Equal(t, zk.DigestACL(zk.PermAll, "bob", "secret"), acl)
	require.Zero(t, stat.Aversion)
	_, _, err = other.Get("/g-acl/mine")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = other.Set("/g-acl/mine", nil, -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = other.SetACL("/g-acl/mine", openACL, -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NoError(t, other.AddAuth("digest", []byte("bob:secret")))
	data, _, err := other.Get("/g-acl/mine")
	require.NoError(t, err)
	require.Equal(t, "p", string(data))
	acl = append(zk.WorldACL(zk.PermRead), zk.DigestACL(zk.PermAll, "bob", "secret")...)
	stat, err = c.SetACL("/g-acl/mine", acl, 0)
	require.NoError(t, err)
	require.Equal(t, int32(1), stat.Aversion)
	_, err = c.SetACL("/g-acl/mine", acl, 0)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	_, err = c.Create("/g-acl/bad", nil, 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "nope", ID: "x"}})
	require.ErrorIs(t, err, zk.ErrInvalidACL)
	// The credential is sent again on the next connection.
	sessions := c.sessions()
	require.NotZero(t, e.proxy.Cut())
	eventually(t, "connected again", func() bool { return c.sessions() > sessions })
	_, err = c.Set("/g-acl/mine", []byte("q"), -1)
	require.NoError(t, err)
	third := dial(t, e.proxy.Addr())
	require.Error(t, third.AddAuth("no-such-scheme", []byte("x")))
}

func (e goEnv) multi(t *testing.T) {
	c := dial(t, e.proxy.Addr())
	c.make(t, "/g-multi")
	results, err := c.Multi(
		&zk.CreateRequest{Path: "/g-multi/a", Data: []byte("1"), Acl: openACL},
		&zk.CreateRequest{Path: "/g-multi/s-", Data: []byte{}, Acl: openACL, Flags: zk.FlagSequence},
		&zk.SetDataRequest{Path: "/g-multi/a", Data: []byte("22"), Version: 0},
		&zk.CheckVersionRequest{Path: "/g-multi/a", Version: 1},
		&zk.CreateRequest{Path: "/g-multi/gone", Data: []byte{}, Acl: openACL},
		&zk.DeleteRequest{Path: "/g-multi/gone", Version: 0},
	)
	require.NoError(t, err)
	require.Len(t, results, 6)
	require.Equal(t, "/g-multi/s-0000000001", results[1].String)
	require.Equal(t, int32(1), results[2].Stat.Version)
	require.Equal(t, int32(2), results[2].Stat.DataLength)
	results, err = c.Multi(
		&zk.CreateRequest{Path: "/g-multi/b", Data: []byte{}, Acl: openACL},
		&zk.CheckVersionRequest{Path: "/g-multi/a", Version: 9},
		&zk.DeleteRequest{Path: "/g-multi/a", Version: -1},
	)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	require.Len(t, results, 3)
	require.NoError(t, results[0].Error)
	require.ErrorIs(t, results[1].Error, zk.ErrBadVersion)
	require.Error(t, results[2].Error, "runtime inconsistency")
	exists, _, err := c.Exists("/g-multi/b")
	require.NoError(t, err)
	require.False(t, exists, "rolled back")
}

func (e goEnv) locks(t *testing.T) {
	const workers, rounds = 5, 10
	c := dial(t, e.proxy.Addr())
	_, err := c.Create("/g-count", []byte("0"), 0, openACL)
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		conn := dial(t, e.proxy.Addr())
		wg.Go(func() { errs <- incrementUnderLock(conn, "/g-lock", "/g-count", rounds) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	data, _, err := c.Get("/g-count")
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(workers*rounds), string(data))
}

// incrementUnderLock adds one to a counter that only the holder of the lock may touch.
func incrementUnderLock(c *goClient, lockPath, counter string, rounds int) error {
	lock := zk.NewLock(c.Conn, lockPath, openACL)
	for range rounds {
		if err := lock.Lock(); err != nil {
			return err
		}
		data, _, err := c.Get(counter)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(data))
		if err != nil {
			return err
		}
		if _, err := c.Set(counter, []byte(strconv.Itoa(n+1)), -1); err != nil {
			return err
		}
		if err := lock.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

func (e goEnv) pipelinedOrder(t *testing.T) {
	const writers, writes = 20, 100
	c := dial(t, e.proxy.Addr())
	c.make(t, "/g-order")
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			path := fmt.Sprintf("/g-order/%d", w)
			_, errs[w] = c.Create(path, nil, 0, openACL)
			for i := 0; i < writes && errs[w] == nil; i++ {
				if _, errs[w] = c.Set(path, []byte(strconv.Itoa(i)), int32(i)); errs[w] != nil {
					return
				}
				data, stat, err := c.Get(path)
				if err == nil && (string(data) != strconv.Itoa(i) || stat.Version != int32(i+1)) {
					err = fmt.Errorf("read %q version %d behind write %d", data, stat.Version, i)
				}
				errs[w] = err
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func (e goEnv) syncAndReconfig(t *testing.T) {
	c := dial(t, e.proxy.Addr())
	path, err := c.Sync("/")
	require.NoError(t, err)
	require.Equal(t, "/", path)
	_, err = c.IncrementalReconfig([]string{"server.9=127.0.0.1:1:2:participant;3"}, nil, -1)
	require.Error(t, err, "reconfig is disabled")
	exists, _, err := c.Exists("/")
	require.NoError(t, err)
	require.True(t, exists, "the session lives on")
	ok := zk.FLWRuok([]string{e.server.Addr()}, waitTimeout)
	require.Equal(t, []bool{true}, ok)
	// Its parsers of srvr and cons do not know what ZooKeeper prints since 3.7.
}
