package bench

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/wire"
)

// fake is a server without a tree: it answers everything with success, reads with data that was made before, as fast as a
// server with a goroutine per connection can. It can stand still, fall silent and cut its connections.
type fake struct {
	listener net.Listener
	data     []byte
	gate     sync.RWMutex // held for reading while something is answered
	silent   atomic.Bool  // requests are read and not answered
	admits   atomic.Int32 // so many handshakes are answered, later ones by closing the connection
	skip     atomic.Int64 // so many requests are answered, then one is left out; 0 is never
	requests atomic.Int64
	sessions atomic.Int64 // handed out

	mu struct {
		sync.Mutex
		conns map[net.Conn]bool
	}
}

func newFake() (*fake, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	f := &fake{listener: l, data: make([]byte, 100)}
	f.admits.Store(1 << 30)
	f.mu.conns = map[net.Conn]bool{}
	return f, err
}

func startFake(t testing.TB) *fake {
	t.Helper()
	f, err := newFake()
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		f.accept()
		close(served)
	}()
	t.Cleanup(func() {
		f.listener.Close()
		f.cut()
		<-served
	})
	return f
}

// accept serves connections until there is no listener any more, and no connection.
func (f *fake) accept() {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.mu.conns[conn] = true
		f.mu.Unlock()
		wg.Go(func() {
			f.serve(conn)
			conn.Close()
			f.mu.Lock()
			delete(f.mu.conns, conn)
			f.mu.Unlock()
		})
	}
}

func (f *fake) addr() string { return f.listener.Addr().String() }

// cut ends all connections.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.mu.conns {
		conn.Close()
	}
}

// stall makes the server stand still for some time.
func (f *fake) stall(d time.Duration) {
	f.gate.Lock()
	time.Sleep(d) // that is what it is
	f.gate.Unlock()
}

// reply is the frame of a reply with its xid to be set.
func (f *fake) reply(body func(e *jute.Encoder)) []byte {
	var e jute.Encoder
	start := wire.BeginFrame(&e)
	wire.AppendReplyHeader(&e, 0, 1, wire.CodeOK)
	if body != nil {
		body(&e)
	}
	wire.EndFrame(&e, start)
	return e.Bytes()
}

func (f *fake) serve(conn net.Conn) {
	stat := func(e *jute.Encoder) { (&wire.Stat{}).Encode(e) }
	data := f.reply((&wire.DataReply{Data: f.data}).Encode)
	set, plain := f.reply(stat), f.reply(nil)
	created := f.reply((&wire.PathReply{Path: []byte("/zabra-bench")}).Encode)
	in, out := make([]byte, 64<<10), []byte(nil)
	greeted := false
	for kept := 0; ; {
		n, err := conn.Read(in[kept:])
		if err != nil {
			return
		}
		b := in[:kept+n]
		out = out[:0]
		for len(b) >= 4 && len(b) >= 4+int(binary.BigEndian.Uint32(b)) {
			frame := b[4 : 4+binary.BigEndian.Uint32(b)]
			b = b[4+len(frame):]
			if !greeted {
				greeted = true
				if f.admits.Add(-1) < 0 {
					return
				}
				out = append(out, f.greeting(frame)...)
				continue
			}
			if f.requests.Add(1) == f.skip.Load() {
				continue
			}
			reply := plain
			switch wire.Op(int32(binary.BigEndian.Uint32(frame[4:]))) {
			case wire.OpGetData:
				reply = data
			case wire.OpSetData:
				reply = set
			case wire.OpCreate:
				reply = created
			}
			at := len(out)
			out = append(out, reply...)
			copy(out[at+4:at+8], frame[:4])
		}
		kept = copy(in, b)
		if f.silent.Load() {
			continue
		}
		f.gate.RLock()
		_, err = conn.Write(out)
		f.gate.RUnlock()
		if err != nil {
			return
		}
	}
}

// greeting answers a ConnectRequest: with the session that was asked for, or a new one.
func (f *fake) greeting(frame []byte) []byte {
	var req wire.ConnectRequest
	d := jute.NewDecoder(frame, len(frame))
	req.Decode(&d)
	resp := wire.ConnectResponse{TimeoutMs: req.TimeoutMs, SessionID: req.SessionID, Password: []byte("0123456789abcdef"), HasReadOnly: true}
	if req.SessionID == 0 {
		resp.SessionID = 1
		f.sessions.Add(1)
	}
	var e jute.Encoder
	start := wire.BeginFrame(&e)
	resp.Encode(&e)
	wire.EndFrame(&e, start)
	return e.Bytes()
}
