package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"zabra/jute"
	"zabra/wire"
)

// Conn is a connection that carries frames. It has no goroutine, no lock and no opinion: what is sent need not make
// sense. Reading and writing may go on in two goroutines, but not in more.
type Conn struct {
	nc            net.Conn
	r             *bufio.Reader
	out           jute.Encoder
	frameBytesMax int
}

// NewConn makes a Conn of a connection that is established. It refuses frames of more than FrameBytesMaxDefault bytes.
func NewConn(nc net.Conn) *Conn {
	return &Conn{nc: nc, r: bufio.NewReaderSize(nc, readBufferBytes), frameBytesMax: FrameBytesMaxDefault}
}

// DialConn connects to a server over TCP and sends nothing.
func DialConn(ctx context.Context, addr string) (*Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return NewConn(nc), nil
}

// Write sends raw bytes.
func (c *Conn) Write(p []byte) (int, error) { return c.nc.Write(p) }

// Read takes raw bytes.
func (c *Conn) Read(p []byte) (int, error) { return c.r.Read(p) }

// WriteFrame sends body with its length in front.
func (c *Conn) WriteFrame(body []byte) error {
	c.out.Reset(c.out.Bytes()[:0])
	c.out.Int32(int32(len(body)))
	c.out.Raw(body)
	return c.flush()
}

// WriteRequest sends a request in a frame. A nil record is an empty body.
func (c *Conn) WriteRequest(xid int32, op wire.Op, r wire.Record) error {
	c.out.Reset(c.out.Bytes()[:0])
	wire.AppendRequest(&c.out, wire.RequestHeader{Xid: xid, Op: op}, r)
	return c.flush()
}

func (c *Conn) flush() error {
	_, err := c.nc.Write(c.out.Bytes())
	return err
}

// ReadFrame returns the body of the next frame, in memory of its own. It is io.EOF if the other side closed the
// connection between two frames.
func (c *Conn) ReadFrame() ([]byte, error) {
	var head [wire.FrameHeadBytes]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, err
	}
	n, ok := wire.FrameLength(head, c.frameBytesMax)
	if !ok {
		return nil, fmt.Errorf("frame of %d bytes, at most %d are accepted", int32(binary.BigEndian.Uint32(head[:])), c.frameBytesMax)
	}
	// Memory is taken as the bytes come in, not as they are promised.
	body := make([]byte, 0, min(n, readStepBytes))
	for len(body) < n {
		have := len(body)
		step := min(n-have, readStepBytes)
		body = append(body, make([]byte, step)...)
		if _, err := io.ReadFull(c.r, body[have:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("frame of %d bytes: %w", n, err)
		}
	}
	return body, nil
}

// ReadReply returns the header of the next frame and what follows it: the body of a reply, or a WatcherEvent if the
// header's xid is wire.XidNotification.
func (c *Conn) ReadReply() (wire.ReplyHeader, []byte, error) {
	var h wire.ReplyHeader
	frame, err := c.ReadFrame()
	if err != nil {
		return h, nil, err
	}
	d := jute.NewDecoder(frame, len(frame))
	h.Decode(&d)
	if d.Err() != nil {
		return h, nil, fmt.Errorf("reply header: %w", d.Err())
	}
	return h, d.Rest(), nil
}

// Handshake sends a ConnectRequest and returns the answer, in either of its two forms.
func (c *Conn) Handshake(req *wire.ConnectRequest) (wire.ConnectResponse, error) {
	var resp wire.ConnectResponse
	var e jute.Encoder
	req.Encode(&e)
	if err := c.WriteFrame(e.Bytes()); err != nil {
		return resp, err
	}
	frame, err := c.ReadFrame()
	if err != nil {
		return resp, err
	}
	d := jute.NewDecoder(frame, len(frame))
	resp.Decode(&d)
	if d.Err() != nil {
		return resp, fmt.Errorf("connect response: %w", d.Err())
	}
	return resp, nil
}

// SetDeadline bounds reads and writes, as on a net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.nc.SetDeadline(t) }

// LocalAddr returns this side's address.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// CloseWrite tells the server that nothing more will come, while its answers can still be read.
func (c *Conn) CloseWrite() error {
	tcp, ok := c.nc.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("%T cannot be closed by halves", c.nc)
	}
	return tcp.CloseWrite()
}

// Close closes the connection in the ordinary way.
func (c *Conn) Close() error { return c.nc.Close() }

// Reset cuts the connection off, as a crash of this side would: data on its way is lost and the server gets a TCP reset.
func (c *Conn) Reset() error {
	if tcp, ok := c.nc.(*net.TCPConn); ok {
		tcp.SetLinger(0) // an error means that the connection is gone already
	}
	return c.nc.Close()
}
