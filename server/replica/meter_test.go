package replica

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

func TestNamespaceOfAPath(t *testing.T) {
	for path, want := range map[string]string{
		"/app": "app", "/app/a/b": "app", "/a": "a", "/": "", "": "", "//x": "", "x": "",
		"/" + string(make([]byte, namespaceBytesMax)):   string(make([]byte, namespaceBytesMax)),
		"/" + string(make([]byte, namespaceBytesMax+1)): OtherNamespaces,
	} {
		var table Namespaces
		var last *Namespace
		for range 2 {
			n := table.of([]byte(path), &last)
			if want == "" {
				require.Nil(t, n, "%q", path)
				continue
			}
			require.Equal(t, want, n.Name(), "%q", path)
			require.Same(t, n, table.of([]byte(path), new(*Namespace)))
		}
	}
	var table Namespaces
	var last *Namespace
	for _, path := range []string{"/app", "/apple", "/app/x", "/ap", "/apple/y", "/app"} {
		want := table.find([]byte(path))
		require.Same(t, want, table.of([]byte(path), &last), path)
	}
	require.Len(t, table.List(), 3)
}

// However many nodes there are below the root, a bounded number is counted by itself.
func TestNamespacesAreBounded(t *testing.T) {
	var table Namespaces
	var wg sync.WaitGroup
	const each = 10 * NamespacesMax
	for range 4 {
		wg.Go(func() {
			var last *Namespace
			for i := range each {
				table.of(fmt.Appendf(nil, "/n%d/x", i), &last).Write.Add(1)
			}
		})
	}
	wg.Wait()
	list := table.List()
	require.Len(t, list, NamespacesMax+1)
	require.Equal(t, OtherNamespaces, list[NamespacesMax].Name())
	total := uint64(0)
	for _, n := range list {
		total += n.Write.Total().Count
	}
	require.EqualValues(t, 4*each, total)
}

// What is measured of a request takes no memory.
func TestMeterDoesNotAllocate(t *testing.T) {
	var m Meter
	var last *Namespace
	paths := [][]byte{[]byte("/app/a"), []byte("/other/b")}
	n := 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		n++
		m.replied(wire.OpGetData, uint32(n), int64(n%40))
		m.replied(wire.OpSetData, uint32(n), 0)
		m.noteRead(paths[n%2], n, &last)
	}))
}

// BenchmarkMeter is what is added to a read by what is measured of it.
func BenchmarkMeter(b *testing.B) {
	var m Meter
	var last *Namespace
	path := []byte("/app/a")
	b.ReportAllocs()
	for b.Loop() {
		m.replied(wire.OpGetData, 3, 0)
		m.noteRead(path, 64, &last)
	}
}
