package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"zabra/jute"
	"zabra/wire"
)

// control is a session for what comes before and after a load. It costs what it costs.
type control struct {
	addr    string
	conn    net.Conn
	in      *bufio.Reader
	out     jute.Encoder
	xid     int32
	silence time.Duration
	release func() bool
}

// dialControl opens a session. It ends with the context.
func (r *run) dialControl(ctx context.Context, server int) (*control, error) {
	dialer := net.Dialer{Timeout: r.SilenceMax}
	conn, err := dialer.DialContext(ctx, "tcp", r.addrs[server].String())
	if err != nil {
		return nil, err
	}
	c := &control{addr: r.Servers[server], conn: conn, in: bufio.NewReaderSize(conn, readBytes), silence: r.SilenceMax}
	c.release = context.AfterFunc(ctx, func() { conn.Close() })
	start := wire.BeginFrame(&c.out)
	password := make([]byte, wire.PasswordBytes)
	req := wire.ConnectRequest{TimeoutMs: int32(r.SessionTimeout.Milliseconds()), Password: password, HasReadOnly: true}
	req.Encode(&c.out)
	wire.EndFrame(&c.out, start)
	if err := c.greet(); err != nil {
		c.cut()
		return nil, fmt.Errorf("handshake with %s: %w", c.addr, err)
	}
	return c, nil
}

// greet sends the ConnectRequest and reads its answer.
func (c *control) greet() error {
	if err := c.flush(); err != nil {
		return err
	}
	frame, err := c.frame()
	if errors.Is(err, io.EOF) {
		return errors.New("it closed the connection: it may not be serving, or have too many connections already (maxClientCnxns)")
	}
	if err != nil {
		return err
	}
	var resp wire.ConnectResponse
	d := jute.NewDecoder(frame, len(frame))
	if resp.Decode(&d); d.Err() == nil && resp.SessionID == 0 {
		return errors.New("it gave no session")
	}
	return d.Err()
}

func (c *control) cut() {
	c.release()
	c.conn.Close()
}

// close ends the session.
func (c *control) close() {
	_, _, _ = c.call(wire.OpCloseSession, nil) // if that fails, the session ends by itself
	c.cut()
}

func (c *control) flush() error {
	_ = c.conn.SetDeadline(time.Now().Add(c.silence))
	_, err := c.conn.Write(c.out.Bytes())
	c.out.Reset(c.out.Bytes()[:0])
	return err
}

// frame reads one frame.
func (c *control) frame() ([]byte, error) {
	var head [wire.FrameHeadBytes]byte
	_ = c.conn.SetDeadline(time.Now().Add(c.silence))
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, err
	}
	n, ok := wire.FrameLength(head, frameBytesMax)
	if !ok {
		return nil, frameError(int(int32(binary.BigEndian.Uint32(head[:]))))
	}
	body := make([]byte, n)
	_, err := io.ReadFull(c.in, body)
	return body, err
}

// put adds a request to those that flush sends.
func (c *control) put(op wire.Op, record wire.Record) {
	c.xid = nextXid(c.xid)
	wire.AppendRequest(&c.out, wire.RequestHeader{Xid: c.xid, Op: op}, record)
}

// reply reads the reply to a request.
func (c *control) reply() (wire.Code, []byte, error) {
	for {
		frame, err := c.frame()
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w", c.addr, err)
		}
		var h wire.ReplyHeader
		d := jute.NewDecoder(frame, len(frame))
		if h.Decode(&d); d.Err() != nil {
			return 0, nil, fmt.Errorf("%s: reply header: %w", c.addr, d.Err())
		}
		if h.Xid > 0 {
			return h.Err, d.Rest(), nil
		}
	}
}

// call sends one request and waits for its reply.
func (c *control) call(op wire.Op, record wire.Record) (wire.Code, []byte, error) {
	c.put(op, record)
	if err := c.flush(); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", c.addr, err)
	}
	return c.reply()
}

// all sends n requests, as many at a time as are good for the server, and hands the codes over. Pings are not needed:
// no server is silent for a whole session timeout without ending this.
func (c *control) all(n int, request func(i int) (wire.Op, wire.Record), answered func(i int, code wire.Code) error) error {
	for first := 0; first < n; {
		next := first
		for ; next < n && next < first+burstRequests && c.out.Len() < burstBytes; next++ {
			c.put(request(next))
		}
		if err := c.flush(); err != nil {
			return fmt.Errorf("%s: %w", c.addr, err)
		}
		for ; first < next; first++ {
			code, _, err := c.reply()
			if err != nil {
				return err
			}
			if err := answered(first, code); err != nil {
				return err
			}
		}
	}
	return nil
}
