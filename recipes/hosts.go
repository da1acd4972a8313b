package recipes

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
)

// hosts gives package zk one server after the other. Unlike the provider that comes with it, it keeps names, so that each
// connection resolves them anew and finds a server that has moved; and it lets a connection that broke be replaced at once,
// where there is a single server, too.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since the last connection that stood
}

// Init takes the servers in an order of its own, so that not all clients begin with the same.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(servers) == 0 {
		return errors.New("recipes: no servers")
	}
	h.servers = slices.Clone(servers)
	rand.Shuffle(len(h.servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
	return nil
}

// Len is the number of servers.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next returns a server, and whether all have been tried in vain, after which package zk waits for a second.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	retryStart = h.tried > 0 && h.tried%len(h.servers) == 0
	h.tried++
	return server, retryStart
}

// Connected notes that the last server is a good one. The next connection goes to another.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}
