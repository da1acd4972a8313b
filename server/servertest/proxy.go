package servertest

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"zabra/wire"
	"zabra/zab/zxid"
)

// Opcodes of requests, for Proxy.DropReply and its like.
const (
	// OpConnect stands for the handshake that begins a connection; its reply is the ConnectResponse.
	OpConnect         = int32(wire.OpCreateSession)
	OpCloseSession    = int32(wire.OpCloseSession)
	OpCreate          = int32(wire.OpCreate)
	OpDelete          = int32(wire.OpDelete)
	OpExists          = int32(wire.OpExists)
	OpGetData         = int32(wire.OpGetData)
	OpSetData         = int32(wire.OpSetData)
	OpGetChildren     = int32(wire.OpGetChildren)
	OpSync            = int32(wire.OpSync)
	OpPing            = int32(wire.OpPing)
	OpGetChildren2    = int32(wire.OpGetChildren2) // what go-zookeeper/zk sends for Children
	OpMulti           = int32(wire.OpMulti)
	OpCreate2         = int32(wire.OpCreate2)
	OpCreateContainer = int32(wire.OpCreateContainer)
	OpCreateTTL       = int32(wire.OpCreateTTL)
	OpSetWatches      = int32(wire.OpSetWatches)
	OpAddWatch        = int32(wire.OpAddWatch)
)

// Proxy is a network that fails when it is told to. It stands between clients and one server, which may be any that
// speaks ZooKeeper's protocol without TLS. It passes sessions only: whoever sends a four-letter word is cut off.
//
// It counts and drops requests as they pass on to the server, and replies as they pass on to the client, that is, after
// Delay and not while it is frozen. Its methods may be called from any goroutine.
type Proxy struct {
	t        testing.TB
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu   sync.Mutex
	wake sync.Cond // on mu: whoever is held up has to look again
	proxyState
}

// proxyState is what Proxy.mu guards.
type proxyState struct {
	closed, refusing, frozen bool
	expiring                 int // how many calls of Expire are under way
	delay                    time.Duration
	passages                 map[*passage]struct{}
	// dropRequests and dropReplies are how many requests of an opcode are still to be dropped, and of how many the reply.
	dropRequests, dropReplies map[int32]int
	requests                  map[int32]int
	notifications             int
	// session is the one whose handshake was answered last.
	session  zxid.SessionID
	password []byte
}

// NewProxy starts a proxy in front of the server at addr, on a free port of the loopback interface. The server need not
// be there yet. The proxy ends with the test, and its connections with it.
func NewProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("servertest: proxy: %v", err)
	}
	p := &Proxy{t: t, target: addr, listener: l}
	p.wake.L = &p.mu
	p.passages = make(map[*passage]struct{})
	p.dropRequests, p.dropReplies, p.requests = make(map[int32]int), make(map[int32]int), make(map[int32]int)
	p.running.Go(p.acceptLoop)
	t.Cleanup(p.close)
	return p
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut cuts all connections at once; what was on its way is lost. New ones are taken.
func (p *Proxy) Cut() {
	p.change(func() {
		for l := range p.passages {
			l.cut()
		}
	})
}

// Refuse switches on or off that new connections are cut as soon as they come in. Those that exist stay.
func (p *Proxy) Refuse(on bool) { p.change(func() { p.refusing = on }) }

// Freeze has nothing pass any more either way, not even the end of a connection. Connections stay, and new ones are taken,
// which get no answer.
func (p *Proxy) Freeze() { p.change(func() { p.frozen = true }) }

// Thaw ends Freeze: what was held up passes on, in order.
func (p *Proxy) Thaw() { p.change(func() { p.frozen = false }) }

// Delay makes each frame that comes in from now on, either way, take d longer. Their order stays.
func (p *Proxy) Delay(d time.Duration) { p.change(func() { p.delay = d }) }

// DropReply waits for the next request of that opcode, passes it on, swallows the reply to this very request and cuts the
// connection. So the request was carried out, and the client does not know. Called again, it does so once more.
func (p *Proxy) DropReply(op int32) { p.change(func() { p.dropReplies[op]++ }) }

// DropRequest waits for the next request of that opcode and cuts the connection instead of passing it on. So the request
// was not carried out, and the client does not know. Called again, it does so once more.
func (p *Proxy) DropRequest(op int32) { p.change(func() { p.dropRequests[op]++ }) }

// Requests returns how many requests of that opcode have passed on to the server.
func (p *Proxy) Requests(op int32) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[op]
}

// Notifications returns how many watch events have passed on to clients.
func (p *Proxy) Notifications() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.notifications
}

// Expire ends the session that came through last, and returns when its ephemeral nodes are gone at the server. The client
// loses its connection, and hears of the end of its session when it connects again. Meanwhile no new connection gets
// through here, so that the client cannot take the session back.
func (p *Proxy) Expire() {
	p.t.Helper()
	p.mu.Lock()
	session, password := p.session, p.password
	p.expiring++
	p.mu.Unlock()
	defer p.change(func() { p.expiring-- })
	if session == 0 {
		p.t.Error("servertest: no session has come through the proxy that could expire")
		return
	}
	if err := endSession(p.target, session, password); err != nil {
		p.t.Errorf("servertest: session %v does not end: %v", session, err)
	}
}

// change changes the state and wakes whoever waits for that.
func (p *Proxy) change(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	p.wake.Broadcast()
}

// take uses up one of the drops that were asked for. The caller holds mu.
func take(drops map[int32]int, op int32) bool {
	if drops[op] == 0 {
		return false
	}
	drops[op]--
	return true
}

func (p *Proxy) acceptLoop() {
	for {
		nc, err := p.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				p.t.Errorf("servertest: proxy: %v", err)
			}
			return
		}
		p.running.Go(func() { newPassage(p, nc).run() })
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.change(func() { p.closed = true })
	p.Cut()
	p.running.Wait()
}
