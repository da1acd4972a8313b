//go:build interop && linux

package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// ledger keeps what was asked of a server and what it acknowledged, over as many crashes as a test makes. Each key is
// written by one goroutine at a time, with numbers that only grow.
type ledger struct {
	mu    sync.Mutex
	keys  map[string]*ledgerKey
	dirs  map[string]*ledgerDir
	acked atomic.Int64 // acknowledged writes in all
}

// ledgerKey is a node whose data is a growing number.
type ledgerKey struct{ acked, asked int64 }

// ledgerDir is a parent of sequential nodes whose data is a growing number. Acked maps names to numbers.
type ledgerDir struct {
	asked int64
	acked map[string]int64
}

func newLedger() *ledger {
	return &ledger{keys: map[string]*ledgerKey{}, dirs: map[string]*ledgerDir{}}
}

const (
	ledgerWriters   = 4  // sessions of go-zookeeper/zk
	ledgerPipelines = 2  // raw sessions
	ledgerDepth     = 64 // writes that a raw session has outstanding
	ledgerKeys      = 5  // keys of one writer
)

func (l *ledger) key(path string) *ledgerKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys[path] == nil {
		l.keys[path] = &ledgerKey{acked: -1, asked: -1}
	}
	return l.keys[path]
}

func (l *ledger) dir(path string) *ledgerDir {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirs[path] == nil {
		l.dirs[path] = &ledgerDir{acked: map[string]int64{}}
	}
	return l.dirs[path]
}

// prepare makes the parents; it must be called once, before load.
func (l *ledger) prepare(t *testing.T, addr string) {
	c := dial(t, addr)
	defer c.Close()
	c.make(t, "/ledger")
	for w := range ledgerWriters {
		c.make(t, fmt.Sprintf("/ledger/w%d", w))
		c.make(t, fmt.Sprintf("/ledger/w%d/seq", w))
	}
	for p := range ledgerPipelines {
		c.make(t, fmt.Sprintf("/ledger/p%d", p))
	}
}

// load writes until kill has been called and every writer has met the end of its connection. kill is called once
// the load has run for the given time.
func (l *ledger) load(t *testing.T, addr string, run time.Duration, kill func()) {
	var stopped atomic.Bool
	var wg sync.WaitGroup
	errs := make(chan error, ledgerWriters+ledgerPipelines)
	for w := range ledgerWriters {
		c, err := dialTimeout(addr, 10*time.Second)
		require.NoError(t, err)
		seed := rand.Uint64()
		wg.Go(func() {
			errs <- l.write(c, w, rand.New(rand.NewPCG(seed, 1)), &stopped)
			go c.Close() // takes a second without a server
		})
	}
	for p := range ledgerPipelines {
		raw, err := harness.DialRaw(addr, 10000, 0, [16]byte{})
		require.NoError(t, err)
		wg.Go(func() {
			defer raw.Close()
			errs <- l.pipeline(raw, fmt.Sprintf("/ledger/p%d", p))
		})
	}
	time.Sleep(run) // how long the load runs, not a wait for something
	kill()
	stopped.Store(true)
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// write is one real client: sets, sequential creates, multis, and creates with deletes, each awaited.
func (l *ledger) write(c *goClient, w int, rnd *rand.Rand, stopped *atomic.Bool) error {
	base := fmt.Sprintf("/ledger/w%d", w)
	for !stopped.Load() {
		path := fmt.Sprintf("%s/k%d", base, rnd.IntN(ledgerKeys))
		var err error
		switch rnd.IntN(4) {
		case 0:
			err = l.sequential(c, base+"/seq")
		case 1:
			err = l.both(c, path, fmt.Sprintf("%s/m%d", base, rnd.IntN(ledgerKeys)))
		default:
			err = l.set(c, path)
		}
		if errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrClosing) {
			return nil // the server is gone; what was asked last may or may not have happened
		}
		if err != nil {
			return fmt.Errorf("writer %d: %w", w, err)
		}
		l.acked.Add(1)
	}
	return nil
}

func (l *ledger) set(c *goClient, path string) error {
	key := l.key(path)
	key.asked++
	data := []byte(strconv.FormatInt(key.asked, 10))
	_, err := c.Set(path, data, -1)
	if errors.Is(err, zk.ErrNoNode) {
		_, err = c.Create(path, data, 0, openACL)
	}
	if err == nil {
		key.acked = key.asked
	}
	return err
}

// both sets two keys to new numbers in one transaction.
func (l *ledger) both(c *goClient, first, second string) error {
	for _, path := range []string{first, second} {
		if l.key(path).acked < 0 {
			return l.set(c, path)
		}
	}
	a, b := l.key(first), l.key(second)
	a.asked++
	b.asked++
	_, err := c.Multi(
		&zk.SetDataRequest{Path: first, Data: []byte(strconv.FormatInt(a.asked, 10)), Version: -1},
		&zk.SetDataRequest{Path: second, Data: []byte(strconv.FormatInt(b.asked, 10)), Version: -1},
	)
	if err == nil {
		a.acked, b.acked = a.asked, b.asked
	}
	return err
}

func (l *ledger) sequential(c *goClient, parent string) error {
	dir := l.dir(parent)
	dir.asked++
	number := dir.asked
	path, err := c.Create(parent+"/n-", []byte(strconv.FormatInt(number, 10)), zk.FlagSequence, openACL)
	if err == nil {
		dir.acked[strings.TrimPrefix(path, parent+"/")] = number
	}
	return err
}

// pipeline is a session that keeps many writes of one key outstanding, in order, until its connection ends.
func (l *ledger) pipeline(raw *harness.Raw, path string) error {
	key := l.key(path)
	first := key.asked + 1
	next := first // the number to be asked next; xid is its distance from first
	for want := int32(0); ; want++ {
		var frames []byte
		for next-first-int64(want) < ledgerDepth {
			frames = harness.AppendSet(frames, int32(next-first), path, []byte(strconv.FormatInt(next, 10)))
			key.asked = next
			next++
		}
		if raw.Write(frames) != nil {
			return nil
		}
		reply, err := raw.ReadReply()
		if err != nil {
			return nil // the server is gone
		}
		if reply.Xid != want || reply.Code != harness.CodeOK {
			return fmt.Errorf("pipeline %s: reply xid %d code %d, want xid %d", path, reply.Xid, reply.Code, want)
		}
		key.acked = first + int64(want)
		l.acked.Add(1)
	}
}

// verify reads everything back. An acknowledged write must be there, a later one may be, and what is there must be in
// the order in which it was asked for. Writes that were not acknowledged and did happen count as happened from here on.
func (l *ledger) verify(t *testing.T, addr string) {
	c := dial(t, addr)
	defer c.Close()
	for path, key := range l.keys {
		data, _, err := c.Get(path)
		if errors.Is(err, zk.ErrNoNode) && key.acked < 0 {
			continue
		}
		require.NoError(t, err, path)
		if len(data) == 0 && key.acked < 0 {
			continue // a pipeline's node before its first write
		}
		value, err := strconv.ParseInt(string(data), 10, 64)
		require.NoError(t, err, path)
		require.GreaterOrEqual(t, value, key.acked, "%s: an acknowledged write is missing", path)
		require.LessOrEqual(t, value, key.asked, "%s: a write that nobody asked for", path)
		key.acked = value
	}
	for path, dir := range l.dirs {
		l.verifyDir(t, c, path, dir)
	}
}

func (l *ledger) verifyDir(t *testing.T, c *goClient, path string, dir *ledgerDir) {
	names, _, err := c.Children(path)
	require.NoError(t, err)
	sort.Strings(names)
	there := map[string]bool{}
	last := int64(-1)
	for _, name := range names {
		there[name] = true
		number, known := dir.acked[name]
		if !known || number%16 == 0 { // reading them all back in every round would take most of the time
			data, _, err := c.Get(path + "/" + name)
			require.NoError(t, err)
			value, err := strconv.ParseInt(string(data), 10, 64)
			require.NoError(t, err)
			require.True(t, !known || value == number, "%s/%s holds %d, acknowledged with %d", path, name, value, number)
			number = value
		}
		require.Greater(t, number, last, "%s/%s: the order of creates was not kept", path, name)
		require.LessOrEqual(t, number, dir.asked, "%s/%s: a create that nobody asked for", path, name)
		last = number
		dir.acked[name] = number
	}
	for name := range dir.acked {
		require.True(t, there[name], "%s/%s: an acknowledged create is missing", path, name)
	}
}
