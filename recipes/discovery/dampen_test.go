package discovery

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Unix(1_000_000, 0)

// fakeClock stands still until it is moved.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	alarms map[chan time.Time]time.Time
}

func newFakeClock() *fakeClock { return &fakeClock{now: start, alarms: map[chan time.Time]time.Time{}} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	alarm := make(chan time.Time, 1)
	c.alarms[alarm] = c.now.Add(d)
	c.ringLocked()
	return alarm
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.ringLocked()
}

func (c *fakeClock) ringLocked() {
	for alarm, at := range c.alarms {
		if !at.After(c.now) {
			alarm <- c.now
			delete(c.alarms, alarm)
		}
	}
}

func newDampener(wait time.Duration, perMinute int) *dampener {
	return &dampener{Dampening: Dampening{wait, perMinute}, vanished: map[string]time.Time{}}
}

func TestDampenerWaits(t *testing.T) {
	d := newDampener(10*time.Second, 0)
	nodes, next := d.due(start)
	require.Empty(t, nodes)
	require.Zero(t, next)

	d.vanish("b", start)
	d.vanish("a", start.Add(time.Second))
	d.vanish("b", start.Add(9*time.Second)) // it has been away since start
	d.vanish("c", start)
	d.appear("c")
	nodes, next = d.due(start.Add(9 * time.Second))
	require.Empty(t, nodes)
	require.Equal(t, start.Add(10*time.Second), next)
	nodes, next = d.due(start.Add(10 * time.Second))
	require.Equal(t, []string{"b"}, nodes)
	require.Equal(t, start.Add(11*time.Second), next)
	nodes, next = d.due(start.Add(time.Hour))
	require.Equal(t, []string{"a"}, nodes)
	require.Zero(t, next)
}

func TestDampenerCaps(t *testing.T) {
	d := newDampener(0, 2)
	for _, node := range []string{"e", "d", "c", "b", "a"} {
		d.vanish(node, start)
	}
	nodes, next := d.due(start)
	require.Equal(t, []string{"a", "b"}, nodes)
	require.Equal(t, start.Add(time.Minute), next)
	nodes, next = d.due(start.Add(59 * time.Second))
	require.Empty(t, nodes)
	require.Equal(t, start.Add(time.Minute), next)
	d.appear("c")
	nodes, next = d.due(start.Add(80 * time.Second))
	require.Equal(t, []string{"d", "e"}, nodes)
	require.Zero(t, next)
	d.vanish("f", start.Add(81*time.Second))
	nodes, next = d.due(start.Add(81 * time.Second))
	require.Empty(t, nodes)
	require.Equal(t, start.Add(140*time.Second), next)
}

func TestDowns(t *testing.T) {
	d := newDowns(DownPolicy{})
	i, again := incarnation{"a", 1}, incarnation{"a", 2}
	d.note(i, start)
	require.False(t, d.down(i, start))
	d.note(i, start.Add(time.Second))
	require.True(t, d.down(i, start.Add(29*time.Second)))
	require.False(t, d.down(again, start.Add(2*time.Second)))
	require.False(t, d.down(i, start.Add(30*time.Second)), "the window is over")
	d.note(i, start.Add(31*time.Second))
	require.False(t, d.down(i, start.Add(31*time.Second)), "one error of a new window")
	d.forget(i)
	require.Empty(t, d.errors)
}

func TestStrategies(t *testing.T) {
	nodes := []string{"a", "b", "c"}
	r := RoundRobin()
	var seen []int
	for range 4 {
		seen = append(seen, r.Pick(nodes))
	}
	require.Equal(t, []int{0, 1, 2, 0}, seen)
	counts := map[int]int{}
	for range 300 {
		counts[Random().Pick(nodes)]++
	}
	require.Len(t, counts, 3)
	s := Sticky(RoundRobin())
	require.Equal(t, 0, s.Pick(nodes))
	require.Equal(t, 0, s.Pick(nodes))
	require.Equal(t, 1, s.Pick([]string{"_", "a"}))
	require.Equal(t, 1, s.Pick([]string{"b", "c"}), "the second choice of the first strategy")
	require.Equal(t, 1, s.Pick([]string{"b", "c"}))
}
