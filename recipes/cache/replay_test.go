package cache

import (
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"
)

// replay makes the contents from events alone, and judges their order.
type replay struct {
	entries map[string]Entry
	removed map[string]int64 // the czxid of what was removed there last
	root    string           // of the first event
	seen    map[Kind]int
}

func newReplay() *replay {
	return &replay{entries: map[string]Entry{}, removed: map[string]int64{}, seen: map[Kind]int{}}
}

// take follows one event. Its error says which promise is broken.
func (r *replay) take(e Event) error {
	r.seen[e.Kind]++
	at := e.Entry.Path
	old, there := r.entries[at]
	switch e.Kind {
	case Added:
		if r.root == "" {
			r.root = at
		}
		_, parent := r.entries[path.Dir(at)]
		switch {
		case there:
			return fmt.Errorf("%s is Added twice", at)
		case e.Entry.Stat.Czxid <= r.removed[at]:
			return fmt.Errorf("%s of %#x is Added after the Removed of %#x", at, e.Entry.Stat.Czxid, r.removed[at])
		case !parent && path.Dir(at) != path.Dir(r.root): // children without their parent are a Children
			return fmt.Errorf("%s is Added before its parent", at)
		}
		r.entries[at] = e.Entry
	case Changed:
		switch {
		case !there || describe(e.Old.Text(), &e.Old.Stat) != describe(old.Text(), &old.Stat):
			return fmt.Errorf("%s is Changed from what was not shown", at)
		case e.Entry.Stat.Czxid != old.Stat.Czxid || e.Entry.Stat.Mzxid <= old.Stat.Mzxid:
			return fmt.Errorf("%s is Changed from %+v to %+v", at, old.Stat, e.Entry.Stat)
		}
		r.entries[at] = e.Entry
	case Removed:
		if !there || describe(e.Entry.Text(), &e.Entry.Stat) != describe(old.Text(), &old.Stat) {
			return fmt.Errorf("%s is Removed, but this was not shown", at)
		}
		for below := range r.entries {
			if path.Dir(below) == at {
				return fmt.Errorf("%s is Removed before %s", at, below)
			}
		}
		delete(r.entries, at)
		r.removed[at] = e.Entry.Stat.Czxid
	case Initialized:
		if r.seen[Initialized] > 1 {
			return fmt.Errorf("initialized twice")
		}
	}
	return nil
}

func (r *replay) contents() map[string]string {
	all := map[string]string{}
	for path, e := range r.entries {
		all[path] = describe(e.Text(), &e.Stat)
	}
	return all
}

func contentsOf(entries []Entry) map[string]string {
	all := map[string]string{}
	for _, e := range entries {
		all[e.Path] = describe(e.Text(), &e.Stat)
	}
	return all
}

// describe is what a cache promises to know exactly.
func describe(data string, stat *zk.Stat) string {
	return fmt.Sprintf("%q czxid %#x mzxid %#x version %d", data, stat.Czxid, stat.Mzxid, stat.Version)
}
