package znode

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlobClasses(t *testing.T) {
	last := 0
	for n := uint32(1); n <= blobClassBytesMax; n++ {
		c := blobClass(n)
		size := blobClassBytes(c)
		require.True(t, c == last || c == last+1, "class %d after %d", c, last)
		require.GreaterOrEqual(t, size, n)
		if n > blobFineBytesMax {
			require.LessOrEqual(t, size-n, n/8)
		} else {
			require.Less(t, size-n, uint32(8))
		}
		if c != last {
			require.Less(t, blobClassBytes(last), n)
		}
		last = c
	}
	require.Equal(t, blobClasses-1, last)
	require.Equal(t, blobLargeClass, blobClass(blobClassBytesMax+1))
}

// TestBlobsAgainstMap allocates and frees at random, all contents being compared, and wants the memory back at the end.
func TestBlobsAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var s blobStore
	want := make(map[blobRef][]byte)
	var refs []blobRef
	sizes := []int{0, 1, 8, 9, 100, 129, 1000, 5000, 32768, 32769, 100_000}
	check := func() {
		live, bytesHeld := 0, int64(0)
		for i := 1; i < len(s.chunks); i++ {
			live += int(s.chunks[i].used)
			bytesHeld += int64(len(s.chunks[i].buf))
		}
		require.Equal(t, s.blobs, live)
		require.Equal(t, s.bytes, bytesHeld)
	}
	drop := func(i int) {
		ref := refs[i]
		if !bytes.Equal(want[ref], s.get(ref, uint32(len(want[ref])))) {
			t.Fatalf("blob %d has changed", ref)
		}
		s.drop(ref)
		delete(want, ref)
		refs[i] = refs[len(refs)-1]
		refs = refs[:len(refs)-1]
	}
	for i := range 6000 {
		if len(refs) > 0 && rng.Intn(100) < 30+20*(i/3000) {
			drop(rng.Intn(len(refs)))
			continue
		}
		n := sizes[rng.Intn(len(sizes))]
		if n > 8 && rng.Intn(2) == 0 {
			n = rng.Intn(n)
		}
		if n > 5000 && rng.Intn(10) != 0 {
			n %= 2000
		}
		ref, b := s.put(uint32(n))
		if len(b) != n {
			t.Fatal(len(b), n)
		}
		if n == 0 {
			require.Equal(t, noBlob, ref)
			continue
		}
		rng.Read(b)
		if _, ok := want[ref]; ok {
			t.Fatalf("blob %d twice", ref)
		}
		want[ref] = bytes.Clone(b)
		refs = append(refs, ref)
	}
	check()
	for len(refs) > 0 {
		drop(len(refs) - 1)
	}
	check()
	require.Zero(t, s.blobs)
	require.Less(t, s.bytes, int64(blobClasses*chunkBytesMax))
	kept := 0
	for i := range s.chunks {
		if s.chunks[i].buf != nil {
			kept++
		}
	}
	require.LessOrEqual(t, kept, blobClasses, "one chunk for each class at most")
}

// TestMemoryMovesBetweenSizes rewrites all data with a larger size, several times: chunks of the old size must go.
func TestMemoryMovesBetweenSizes(t *testing.T) {
	s := newGrower(Config{}, 100)
	s.fill(t, 20_000)
	var peak int64
	for size := 100; size <= 400; size += 100 {
		data := make([]byte, size)
		for id := rootNode; id != noNode; id = s.t.nextBelow(rootNode, id) {
			path := s.t.AppendPath(nil, id)
			s.t.begin(id, path)
			s.t.replaceData(id, path, data)
			s.t.end(s.t.nodes.at(id), path)
		}
		require.NoError(t, s.t.Check())
		peak = max(peak, s.t.blobs.bytes)
	}
	require.Less(t, peak, int64(20_000*600), "the sum of all sizes would be a million bytes per 1,000 nodes")
}

// TestIndexCollisions fills the index with nodes whose hashes were chosen to be bad: equal ones, and ones that share all
// leading bits.
func TestIndexCollisions(t *testing.T) {
	for name, hash := range map[string]func(i uint32) uint32{
		"equal":       func(uint32) uint32 { return 0x12345678 },
		"same prefix": func(i uint32) uint32 { return 0xabcde000 | i&0xfff },
		"few":         func(i uint32) uint32 { return i % 7 * 0x10000001 },
		"spread":      func(i uint32) uint32 { return i * 0x9e3779b9 },
	} {
		t.Run(name, func(t *testing.T) {
			var nodes nodeStore
			var x childIndex
			x.init(0)
			var ids []Node
			for i := range uint32(6000) {
				id := nodes.alloc()
				nodes.at(id).hash = hash(i)
				x.add(&nodes, id)
				ids = append(ids, id)
			}
			require.Equal(t, len(ids), x.count)
			require.LessOrEqual(t, len(x.dir), 8*x.segments+32, "the directory stays in proportion")
			rand.New(rand.NewSource(3)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			for _, id := range ids[:4000] {
				x.remove(&nodes, id)
			}
			for _, id := range ids[:4000] {
				x.add(&nodes, id)
			}
			for _, id := range ids {
				x.remove(&nodes, id)
			}
			require.Zero(t, x.count)
			require.Panics(t, func() { x.remove(&nodes, ids[0]) })
		})
	}
}

// TestIndexReusesRoom adds and removes at a constant size, near the point where a segment is full: the index must not grow.
func TestIndexReusesRoom(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	var nodes nodeStore
	var x childIndex
	x.init(0)
	var ids []Node
	add := func() {
		id := nodes.alloc()
		nodes.at(id).hash = rng.Uint32()
		x.add(&nodes, id)
		ids = append(ids, id)
	}
	for range segmentFull - 50 {
		add()
	}
	marks := 0
	for range 50_000 {
		i := rng.Intn(len(ids))
		x.remove(&nodes, ids[i])
		nodes.release(ids[i])
		ids[i] = ids[len(ids)-1]
		ids = ids[:len(ids)-1]
		add()
		marks = max(marks, int(x.dir[0].gone))
	}
	require.LessOrEqual(t, x.segments, 2)
	require.Positive(t, marks, "the test is to make marks")
}

func TestNodesAreReused(t *testing.T) {
	g := newGrower(Config{}, 50)
	for range 3 {
		g.fill(t, 5000)
		require.NoError(t, g.t.Check())
		for i := range 5 {
			g.delete(t, fmt.Appendf(nil, "/parent-%06d", i))
		}
		require.NoError(t, g.t.Check())
		require.Equal(t, 4, g.t.NodeCount())
	}
	require.LessOrEqual(t, len(g.t.nodes.slabs), 5)
}

func TestHashDependsOnAll(t *testing.T) {
	var x childIndex
	x.init(1)
	seen := make(map[uint32]string)
	add := func(parent Node, name string) {
		h := x.hash(parent, []byte(name))
		require.NotContains(t, seen, h, "%d %q like %s", parent, name, seen[h])
		seen[h] = fmt.Sprintf("%d %q", parent, name)
	}
	for parent := range Node(20) {
		for _, name := range []string{"", "\x00", "\x00\x00", "a", "b", "ab", "ba", "abcdefgh", "abcdefg", "abcdefghi", "abcdefghabcdefgh", "\x00\x00\x00\x00\x00\x00\x00\x00"} {
			add(parent, name)
		}
	}
	before := x.hash(5, []byte("name"))
	x.seed = 2
	require.NotEqual(t, before, x.hash(5, []byte("name")))
}

// TestHeapAgainstSort sets, moves and removes at random.
func TestHeapAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	h := dueHeap{pos: make(map[Node]int32)}
	want := make(map[Node]int64)
	for range 1500 {
		id := Node(rng.Intn(200) + 1)
		if rng.Intn(3) == 0 {
			h.remove(id)
			delete(want, id)
		} else {
			at := int64(rng.Intn(100))
			h.set(id, at)
			want[id] = at
		}
		require.NoError(t, h.check())
		require.Len(t, h.items, len(want))
		before := int64(rng.Intn(100))
		got := make(map[Node]int64)
		h.visit(0, before, func(id Node) bool {
			if _, ok := got[id]; ok {
				t.Fatalf("node %d twice", id)
			}
			got[id] = want[id]
			return true
		})
		for id, at := range want {
			if _, ok := got[id]; ok != (at < before) {
				t.Fatalf("node %d, due at %d, before %d", id, at, before)
			}
		}
	}
}
