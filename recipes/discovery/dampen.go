package discovery

import (
	"cmp"
	"slices"
	"time"
)

// Dampening protects callers from losing all instances at once when it is not the instances that are ill but ZooKeeper or the
// network, and every session expires at the same time.
//
// An instance that vanishes is still handed out, with what was last known of it, until Wait has passed; if it comes back
// before, it never was away. And of those whose wait is over, at most RemovalsPerMinute are let go within any minute. The
// price is that an instance which really is gone is handed out for longer: Provider.NoteError takes it out, and an instance
// that has been set to Disabled before it is unregistered is let go at once and counts for nothing.
type Dampening struct {
	// Wait is for how long a vanished instance is kept. 0 does not wait.
	Wait time.Duration
	// RemovalsPerMinute bounds how many are let go. 0 is no bound.
	RemovalsPerMinute int
}

// dampener decides when instances that have vanished are let go. It has no clock of its own.
type dampener struct {
	Dampening
	vanished map[string]time.Time // when the wait began
	removals []time.Time          // those within the last minute, oldest first
}

// vanish begins the wait of an instance.
func (d *dampener) vanish(node string, now time.Time) {
	if _, waiting := d.vanished[node]; !waiting {
		d.vanished[node] = now
	}
}

// appear ends it: the instance is back.
func (d *dampener) appear(node string) { delete(d.vanished, node) }

// due takes out the instances that are to be let go now, the longest vanished first, and tells when to ask again. next is
// zero if nothing waits.
func (d *dampener) due(now time.Time) (nodes []string, next time.Time) {
	for len(d.removals) > 0 && now.Sub(d.removals[0]) >= removalWindow {
		d.removals = d.removals[1:]
	}
	for _, node := range d.queue() {
		next = d.vanished[node].Add(d.Wait)
		if free := d.nextFree(); free.After(next) {
			next = free
		}
		if next.After(now) {
			return nodes, next
		}
		delete(d.vanished, node)
		nodes = append(nodes, node)
		if d.RemovalsPerMinute > 0 {
			d.removals = append(d.removals, now)
		}
	}
	return nodes, time.Time{}
}

// nextFree is when one more may be let go; zero is at once.
func (d *dampener) nextFree() time.Time {
	if d.RemovalsPerMinute <= 0 || len(d.removals) < d.RemovalsPerMinute {
		return time.Time{}
	}
	return d.removals[len(d.removals)-d.RemovalsPerMinute].Add(removalWindow)
}

// queue is the order in which they are let go.
func (d *dampener) queue() []string {
	nodes := make([]string, 0, len(d.vanished))
	for node := range d.vanished {
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, func(a, b string) int {
		return cmp.Or(d.vanished[a].Compare(d.vanished[b]), cmp.Compare(a, b))
	})
	return nodes
}
