package znode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/internal/ahead"
	"zabra/wire"
	"zabra/zab/zxid"
)

// readBothWays reads a snapshot on one goroutine and on two, wants the same from both, and returns that.
func readBothWays(t testing.TB, open func() io.Reader, cfg Config, z zxid.Zxid) (*Tree, SnapshotInfo, error) {
	before := goleak.IgnoreCurrent()
	alone, aloneInfo, aloneErr := ReadSnapshot(open(), cfg, 1<<20, z)
	cfg.Ahead = ahead.Run
	tree, info, err := ReadSnapshot(open(), cfg, 1<<20, z)
	goleak.VerifyNone(t, before)
	require.Equal(t, aloneErr == nil, err == nil)
	require.Equal(t, aloneInfo, info)
	if err != nil {
		require.Nil(t, tree)
		require.Equal(t, aloneErr.Error(), err.Error())
		return nil, info, err
	}
	require.Equal(t, alone.Digest(), tree.Digest())
	require.Equal(t, alone.DataSize(), tree.DataSize())
	require.Equal(t, alone.nodes, tree.nodes, "ids, order and all fields")
	require.Equal(t, alone.blobs, tree.blobs)
	require.Equal(t, alone.acls.entries, tree.acls.entries)
	require.Equal(t, alone.sessions, tree.sessions)
	require.Equal(t, alone.ephemerals, tree.ephemerals)
	require.Equal(t, alone.expiry, tree.expiry)
	require.Equal(t, alone.index, tree.index)
	return tree, info, nil
}

func readerOf(raw []byte) func() io.Reader {
	return func() io.Reader { return bytes.NewReader(raw) }
}

// sizeless hides the size of a reader, and its other methods.
type sizeless struct{ io.Reader }

// lying gives a wrong size.
type lying struct {
	io.Reader
	size int64
}

func (l lying) Size() int64 { return l.size }

// randomSnapshot is one of many batches, with data from null to larger than a batch.
func randomSnapshot(t testing.TB, seed int64) []byte {
	c := newChanger(t, seed, 1500)
	for range 300 {
		c.change()
	}
	for i, size := range []int{snapshotReadBytes - 100, snapshotReadBytes, 3 * snapshotReadBytes, 0, 1} {
		c.data = bytes.Repeat([]byte{byte(i)}, size)
		if size == 0 {
			c.data = nil
		}
		c.create(t, fmt.Appendf(nil, "/p%d/large", i))
	}
	return writeSnapshot(t, c.t, SnapshotOptions{Digest: true, LastZxid: true}, 1<<20)
}

// Nodes of very different sizes: the buffers of the slots then differ in length, and what one slot leaves unread has to fit
// into the next.
func TestReadAheadOfUnequalNodes(t *testing.T) {
	for seed := range int64(5) {
		rnd := rand.New(rand.NewSource(seed))
		tree := NewTree(Config{})
		for i := range 200 {
			data := make([]byte, int(math.Exp(rnd.Float64()*math.Log(1<<20)))-1)
			h := TxnHeader{Zxid: zxid.Zxid(i + 1), Type: wire.OpCreate}
			txn := Txn{Type: wire.OpCreate, Path: fmt.Appendf(nil, "/n%03d", i), Data: data, ACL: wire.OpenACL, ParentCVersion: int32(i + 1)}
			tree.Apply(&h, &txn, &Result{})
		}
		raw := writeSnapshotAs(t, tree, SnapshotInfo{HasDigestBlock: true, HasLastZxid: true})
		read, _, err := readBothWays(t, readerOf(raw), Config{}, tree.LastZxid())
		require.NoError(t, err)
		require.Equal(t, tree.Digest(), read.Digest())
		require.NoError(t, VerifySnapshot(bytes.NewReader(raw), 1<<20))
	}
}

func TestReadAheadGivesTheSameTree(t *testing.T) {
	for _, dir := range apacheDirs(t) {
		for _, file := range apacheFiles(t, dir, "snapshot") {
			tree, _ := readApacheSnapshot(t, file)
			raw := writeSnapshot(t, tree, SnapshotOptions{Digest: true}, 1<<20)
			got, _, err := readBothWays(t, readerOf(raw), Config{ExtendedTypes: true}, 1)
			require.NoError(t, err, file.path)
			require.NoError(t, got.Check())
		}
	}
	for seed := range int64(4) {
		raw := randomSnapshot(t, seed)
		for name, open := range map[string]func() io.Reader{
			"sized":     readerOf(raw),
			"sizeless":  func() io.Reader { return sizeless{bytes.NewReader(raw)} },
			"too long":  func() io.Reader { return lying{bytes.NewReader(raw), 1 << 62} },
			"too short": func() io.Reader { return lying{bytes.NewReader(raw), 100} },
			"bit by bit": func() io.Reader {
				rng := rand.New(rand.NewSource(seed))
				return readerFunc(func(r io.Reader, b []byte) (int, error) { return r.Read(b[:min(len(b), 1+rng.Intn(2000))]) }).of(raw)
			},
			"data with the end": func() io.Reader { return iotest.DataErrReader(bytes.NewReader(raw)) },
		} {
			tree, info, err := readBothWays(t, open, Config{}, 5)
			require.NoError(t, err, name)
			require.NoError(t, tree.Check(), name)
			require.Equal(t, info.Digest, tree.Digest())
			require.Equal(t, raw, writeSnapshotAs(t, tree, info))
			require.LessOrEqual(t, tree.index.segments, 2*reserveFactorMax*tree.NodeCount()/segmentFill+1, name)
		}
	}
}

type readerFunc func(r io.Reader, b []byte) (int, error)

type funcReader struct {
	r io.Reader
	f readerFunc
}

func (f readerFunc) of(raw []byte) io.Reader     { return &funcReader{bytes.NewReader(raw), f} }
func (r *funcReader) Read(b []byte) (int, error) { return r.f(r.r, b) }
func writeSnapshotAs(t testing.TB, tree *Tree, info SnapshotInfo) []byte {
	tree.lastZxid = info.LastZxid
	return writeSnapshot(t, tree, SnapshotOptions{Digest: info.HasDigestBlock, LastZxid: info.HasLastZxid}, 1<<20)
}

// TestReadAheadFindsDamage breaks a snapshot of several batches at many places.
func TestReadAheadFindsDamage(t *testing.T) {
	raw := randomSnapshot(t, 9)
	rng := rand.New(rand.NewSource(9))
	places := []int{0, 5, 16, 20, len(raw) - 1, len(raw) - 20, len(raw) - 40, len(raw) - 60}
	for range 60 {
		places = append(places, rng.Intn(len(raw)))
	}
	for _, at := range places {
		broken := bytes.Clone(raw)
		broken[at] ^= 1 << rng.Intn(8)
		_, _, err := readBothWays(t, readerOf(broken), Config{}, 1)
		require.ErrorIs(t, err, ErrSnapshot, "offset %d", at)
		_, _, err = readBothWays(t, readerOf(raw[:at]), Config{}, 1)
		if err != nil {
			require.ErrorIs(t, err, ErrSnapshot, "cut at %d", at)
		}
		boom := errors.New("boom")
		_, _, err = readBothWays(t, func() io.Reader {
			return io.MultiReader(bytes.NewReader(raw[:at]), iotest.ErrReader(boom))
		}, Config{}, 1)
		require.ErrorIs(t, err, boom, "error at %d", at)
	}
}

// TestFirstErrorCounts has two faults, of which either half finds one: the earlier is told.
func TestFirstErrorCounts(t *testing.T) {
	node := func(path string) fuzzyNode { return fuzzyNode{path: path, acl: -1} }
	outOfRange := func(path string) fuzzyNode { return fuzzyNode{path: path, acl: 1<<62 + 1} }
	for want, nodes := range map[string][]fuzzyNode{
		`node "/a" occurs twice`:                              {node(""), node("/a"), node("/a"), outOfRange("/b")},
		`node "/b" occurs twice`:                              {node(""), node("/b"), outOfRange("/b")},
		`ACL id 4611686018427387905 is out of range`:          {node(""), node("/a"), outOfRange("/b"), node("/a")},
		`node "/x/y" without a parent, or with a bad name`:    {node(""), node("/a"), outOfRange("/x/y")},
		`node "/x/y/z" without a parent, or with a bad name`:  {node(""), node("/x"), node("/x/y/z"), node("/x"), node("b")},
		`node "b" without a parent, or with a bad name`:       {node(""), node("/x"), node("b"), node("/x")},
		`node "" in the place of the root, or the root again`: {node(""), node("/x"), node(""), node("/x")},
	} {
		_, _, err := readBothWays(t, readerOf(fuzzySnapshot(nil, nil, nodes, 1, 1)), Config{}, 1)
		require.ErrorContains(t, err, want)
	}
}

// TestReadAheadNotDepthFirst reads nodes in an order that no server writes.
func TestReadAheadNotDepthFirst(t *testing.T) {
	nodes := []fuzzyNode{{path: "", acl: -1}}
	for i := range 40 {
		nodes = append(nodes, fuzzyNode{path: fmt.Sprintf("/p%d", i), acl: -1})
	}
	for j := range 60 {
		for i := range 40 {
			nodes = append(nodes, fuzzyNode{path: fmt.Sprintf("/p%d/c%d", i, j), acl: -1})
			nodes = append(nodes, fuzzyNode{path: fmt.Sprintf("/p%d/c%d/x", i, j), acl: -1})
		}
	}
	raw := fuzzySnapshot(nil, nil, nodes, 1, 1)
	tree, info, err := readBothWays(t, readerOf(raw), Config{}, 1)
	require.NoError(t, err)
	require.Equal(t, len(nodes), info.Nodes)
	require.NoError(t, tree.Check())
	require.ErrorIs(t, VerifySnapshot(bytes.NewReader(raw), 0), ErrSnapshot)
}

// TestIndexReserve grows the index ahead, with nodes in it, also with such whose hashes nothing separates.
func TestIndexReserve(t *testing.T) {
	for name, equal := range map[string]int{"spread": 0, "some equal": 3 * segmentFull} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewSource(6))
			var nodes nodeStore
			var x childIndex
			x.init(0)
			var ids []Node
			add := func(hash uint32) {
				id := nodes.alloc()
				nodes.at(id).hash = hash
				x.add(&nodes, id)
				ids = append(ids, id)
			}
			for range equal {
				add(0x12345678)
			}
			for range 3 * segmentFull {
				add(rng.Uint32())
			}
			depth := x.depth
			x.reserve(&nodes, 100)
			require.Equal(t, depth, x.depth, "there is room already")
			x.reserve(&nodes, 200*segmentFill)
			require.GreaterOrEqual(t, x.room(), 200*segmentFill)
			require.LessOrEqual(t, len(x.dir), 8*x.segments+32, "the directory stays in proportion")
			segments := x.segments
			for len(ids) < 190*segmentFill {
				add(rng.Uint32())
			}
			if equal == 0 {
				require.Equal(t, segments, x.segments, "no more was needed")
			}
			require.Equal(t, len(ids), x.count)
			for _, id := range ids {
				x.remove(&nodes, id)
			}
			require.Zero(t, x.count)
		})
	}
}
