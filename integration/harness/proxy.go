//go:build linux

package harness

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy forwards TCP connections to a server and can cut them all, as a network does, while the server lives on.
type Proxy struct {
	target string
	addr   string

	mu       sync.Mutex
	listener net.Listener // nil while paused
	conns    map[net.Conn]struct{}
	wg       sync.WaitGroup
}

// NewProxy listens on a free loopback port and forwards to target.
func NewProxy(target string) (*Proxy, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, addr: fmt.Sprintf("127.0.0.1:%d", port), conns: map[net.Conn]struct{}{}}
	return p, p.Resume()
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.addr }

// Pause refuses new connections, as the port of a stopped server does. Those that are open stay so.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Resume accepts connections again.
func (p *Proxy) Resume() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := net.Listen("tcp4", p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.wg.Add(1)
	go p.accept(l)
	return nil
}

// Cut resets every connection and returns how many there were; new ones are served at once.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.conns)
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly close
		}
		c.Close()
	}
	return n / 2
}

// Close stops listening and cuts what is open.
func (p *Proxy) Close() {
	p.Pause()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) accept(l net.Listener) {
	defer p.wg.Done()
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		if p.listener != l { // paused meanwhile
			client.Close()
			server.Close()
			p.mu.Unlock()
			continue
		}
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.wg.Add(2)
		p.mu.Unlock()
		go p.pipe(client, server)
		go p.pipe(server, client)
	}
}

// pipe copies until one side ends and then closes both, so that the end of either direction ends the connection.
func (p *Proxy) pipe(dst, src net.Conn) {
	defer p.wg.Done()
	_, _ = io.Copy(dst, src)
	p.mu.Lock()
	delete(p.conns, src)
	delete(p.conns, dst)
	p.mu.Unlock()
	src.Close()
	dst.Close()
}
