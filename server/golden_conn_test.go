package server_test

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"zabra/jute"
)

const (
	goldenFrameBytesMax  = 64 << 20 // replies may be larger than requests
	goldenFramesMax      = 1 << 14  // frames that wait to be looked at
	goldenWriteTimeout   = 10 * time.Second
	goldenBarrierXid     = int32(0x7f000000) // from here on up are barriers
	goldenBarrierPath    = "/zkdiff-barrier"
	goldenNoticeTime     = 50 * time.Millisecond // that the server gets to notice the end of a connection
	goldenKeepAlivePause = 200 * time.Millisecond
)

// goldenConn is a TCP connection to the server. A goroutine reads frames into a channel, which is closed with the
// connection's end, however that comes.
type goldenConn struct {
	nc     net.Conn
	frames chan []byte

	mute    bool // gets no barriers and no pings
	greet   bool // the next frame is the answer to a connect request
	inOrder bool // what is sent next begins a frame, and there is a session
	ended   bool // the end was seen
	xid     int32
	barrier int32
	pings   int // sent to keep the session alive, their replies are not looked at
}

func dialGolden(addr string) (*goldenConn, error) {
	nc, err := net.DialTimeout("tcp", addr, goldenWriteTimeout)
	if err != nil {
		return nil, err
	}
	c := &goldenConn{nc: nc, frames: make(chan []byte, goldenFramesMax), barrier: goldenBarrierXid}
	go c.read()
	return c, nil
}

func (c *goldenConn) read() {
	defer close(c.frames)
	var head [4]byte
	for {
		if _, err := io.ReadFull(c.nc, head[:]); err != nil {
			return
		}
		n := int32(binary.BigEndian.Uint32(head[:]))
		if n < 0 || n > goldenFrameBytesMax {
			return
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(c.nc, frame); err != nil {
			return
		}
		c.frames <- frame
	}
}

// write sends b. An error is no news: the reading side finds out.
func (c *goldenConn) write(b []byte) {
	_ = c.nc.SetWriteDeadline(time.Now().Add(goldenWriteTimeout))
	_, _ = c.nc.Write(b)
}

// drop ends the connection without a close request and waits for the server to notice.
func (c *goldenConn) drop(reset bool) {
	if tcp, ok := c.nc.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = c.nc.Close()
	for range c.frames { // the reader must not be left behind
	}
	time.Sleep(goldenNoticeTime)
}

func (c *goldenConn) nextXid() int32 { c.xid++; return c.xid }

// sendBarrier asks for a node that does not exist and returns the xid of the answer.
func (c *goldenConn) sendBarrier() int32 {
	c.barrier++
	var e jute.Encoder
	e.Int32(0)
	e.Int32(c.barrier)
	e.Int32(goldenOps["exists"])
	e.String(goldenBarrierPath)
	e.Bool(false)
	e.PatchInt32(0, int32(e.Len()-4))
	c.write(e.Bytes())
	return c.barrier
}

func (c *goldenConn) sendPing() {
	var e jute.Encoder
	e.Int32(8)
	e.Int32(goldenXids["ping"])
	e.Int32(goldenOps["ping"])
	c.pings++
	c.write(e.Bytes())
}
