//go:build linux

package harness

import (
	"sync"
	"time"
)

const (
	pingSessionMs = 60000
	pingLimit     = 10 * time.Second // the longest wait for an answer, and for a connection
)

// Pinger sends a ping to each of several servers again and again, in sessions of its own. Apache 3.8.0 at times lets requests
// lie in an ensemble until another one comes; any measurement of it has to have a pinger beside it.
type Pinger struct {
	stop chan struct{}
	wg   sync.WaitGroup
}

// StartPinger pings every server once in a period. Servers may come and go; nothing is reported.
func StartPinger(addrs []string, period time.Duration) *Pinger {
	p := &Pinger{stop: make(chan struct{})}
	for _, addr := range addrs {
		p.wg.Go(func() { p.run(addr, period) })
	}
	return p
}

func (p *Pinger) run(addr string, period time.Duration) {
	client := Client{Addrs: []string{addr}, TimeoutMs: pingSessionMs}
	defer client.Drop()
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			client.End(pingLimit)
			return
		case <-ticker.C:
		}
		if client.Connect(period) == nil {
			_ = client.Ping(pingLimit) // a lost connection is made anew at the next tick
		}
	}
}

// Close ends the sessions.
func (p *Pinger) Close() {
	close(p.stop)
	p.wg.Wait()
}
