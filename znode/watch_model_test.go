package znode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// watchModel is how ZooKeeper documents its watches, written down without a thought for speed.
type watchModel struct {
	entries map[modelKey]WatchMode
	ids     []WatcherID // attached, in order
}

type modelKey struct {
	table WatchTable
	path  string
	id    WatcherID
}

func (m *watchModel) trigger(table WatchTable, path string, typ int, skip []WatcherID) (reached []WatcherID, told map[WatcherID][]string) {
	told = map[WatcherID][]string{}
	for _, id := range m.ids {
		hit := m.entries[modelKey{table, path, id}] != 0
		if table == TableData {
			for p := path; p != "/"; {
				if p = p[:strings.LastIndex(p, "/")]; p == "" {
					p = "/"
				}
				hit = hit || m.entries[modelKey{table, p, id}]&WatchRecursive != 0
			}
		}
		if !hit {
			continue
		}
		reached = append(reached, id)
		m.clear(modelKey{table, path, id}, WatchStandard)
		if !slices.Contains(skip, id) {
			told[id] = append(told[id], fmt.Sprintf("%d %s", typ, path))
		}
	}
	return reached, told
}

func (m *watchModel) clear(k modelKey, modes WatchMode) {
	if m.entries[k] &^= modes; m.entries[k] == 0 {
		delete(m.entries, k)
	}
}

func (m *watchModel) change(change, path string) map[WatcherID][]string {
	all := map[WatcherID][]string{}
	fire := func(table WatchTable, path string, typ int, skip []WatcherID) []WatcherID {
		reached, told := m.trigger(table, path, typ, skip)
		for id, events := range told {
			all[id] = append(all[id], events...)
		}
		return reached
	}
	switch change {
	case "create":
		fire(TableData, path, 1, nil)
	case "set":
		fire(TableData, path, 3, nil)
		return all
	case "delete":
		fire(TableChild, path, 2, fire(TableData, path, 2, nil))
	}
	parent := path[:strings.LastIndex(path, "/")]
	if parent == "" {
		parent = "/"
	}
	fire(TableChild, parent, 4, nil)
	return all
}

func (m *watchModel) has(id WatcherID, path string, typ int32) bool {
	d, c := m.entries[modelKey{TableData, path, id}], m.entries[modelKey{TableChild, path, id}]
	return [...]bool{false, c&WatchStandard != 0, d&WatchStandard != 0, c|d != 0, d&WatchPersistent != 0, d&WatchRecursive != 0}[typ]
}

func (m *watchModel) remove(id WatcherID, path string, typ int32) bool {
	found := m.has(id, path, typ)
	d := [...]WatchMode{0, 0, WatchStandard, 7, WatchPersistent, WatchRecursive}[typ]
	c := [...]WatchMode{0, WatchStandard, 0, 7, WatchPersistent, 0}[typ]
	m.clear(modelKey{TableData, path, id}, d)
	m.clear(modelKey{TableChild, path, id}, c)
	return found
}

func (m *watchModel) set(id WatcherID, kind, path string) {
	d, c := modelKey{TableData, path, id}, modelKey{TableChild, path, id}
	switch kind {
	case "data":
		m.entries[d] |= WatchStandard
	case "child":
		m.entries[c] |= WatchStandard
	case "persistent":
		m.entries[d] |= WatchPersistent
		m.entries[c] |= WatchPersistent
	case "recursive":
		m.entries[d] |= WatchRecursive
	}
}

func TestWatchesAgainstModel(t *testing.T) {
	paths := []string{"/", "/a", "/a/b", "/a/b/c", "/ab", "/a/c"}
	rapid.Check(t, func(t *rapid.T) {
		w, m := NewWatches(), &watchModel{entries: map[modelKey]WatchMode{}}
		recorders := map[WatcherID]*recorder{}
		path := rapid.SampledFrom(paths)
		pick := func(t *rapid.T) WatcherID {
			if len(m.ids) == 0 {
				t.Skip("nobody is attached")
			}
			return rapid.SampledFrom(m.ids).Draw(t, "id")
		}
		t.Repeat(map[string]func(*rapid.T){
			"attach": func(t *rapid.T) {
				if len(m.ids) >= 5 {
					t.Skip("enough")
				}
				r := &recorder{}
				id := w.Attach(r)
				recorders[id] = r
				m.ids = append(m.ids, id)
			},
			"detach": func(t *rapid.T) {
				id := pick(t)
				w.Detach(id)
				m.ids = slices.DeleteFunc(m.ids, func(x WatcherID) bool { return x == id })
				for k := range m.entries {
					if k.id == id {
						delete(m.entries, k)
					}
				}
			},
			"set": func(t *rapid.T) {
				id, p := pick(t), path.Draw(t, "path")
				kind := rapid.SampledFrom([]string{"data", "child", "persistent", "recursive"}).Draw(t, "kind")
				setWatch(w, id, kind, p)
				m.set(id, kind, p)
			},
			"remove": func(t *rapid.T) {
				id, p, typ := pick(t), path.Draw(t, "path"), rapid.Int32Range(1, 5).Draw(t, "type")
				require.Equal(t, m.remove(id, p, typ), w.Remove(id, []byte(p), typ))
			},
			"change": func(t *rapid.T) {
				change := rapid.SampledFrom([]string{"create", "set", "delete"}).Draw(t, "change")
				p := path.Draw(t, "path")
				if p == "/" {
					change = "set"
				}
				fireChange(w, change, p)
				want := m.change(change, p)
				for id, r := range recorders {
					require.Equal(t, want[id], r.take(), "%s %s, watcher %d", change, p, id)
				}
			},
			"": func(t *rapid.T) {
				require.NoError(t, w.Check())
				require.Equal(t, len(m.entries), w.Total())
				for _, id := range m.ids {
					for _, p := range paths {
						for typ := int32(1); typ <= 5; typ++ {
							require.Equal(t, m.has(id, p, typ), w.Has(id, []byte(p), typ))
						}
					}
				}
			},
		})
	})
}
