package discovery

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Strategy chooses one of several instances. Pick gets the names of the nodes that can be handed out, sorted and never empty,
// and returns an index. It is called from any goroutine. A strategy belongs to one Provider.
type Strategy interface {
	Pick(nodes []string) int
}

// RoundRobin hands out one after the other.
func RoundRobin() Strategy { return &roundRobin{} }

type roundRobin struct{ next atomic.Uint64 }

func (r *roundRobin) Pick(nodes []string) int { return int((r.next.Add(1) - 1) % uint64(len(nodes))) }

// Random hands out any of them.
func Random() Strategy { return random{} }

type random struct{}

func (random) Pick(nodes []string) int { return rand.IntN(len(nodes)) }

// Sticky hands out the same instance for as long as it can be handed out. first chooses it, and the next one after it.
func Sticky(first Strategy) Strategy { return &sticky{first: first} }

type sticky struct {
	first Strategy
	mu    sync.Mutex
	node  string
}

func (s *sticky) Pick(nodes []string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, found := slices.BinarySearch(nodes, s.node); found {
		return i
	}
	i := s.first.Pick(nodes)
	if i >= 0 && i < len(nodes) {
		s.node = nodes[i]
	}
	return i
}
