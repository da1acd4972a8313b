package servertest

import (
	"context"
	"fmt"
	"time"

	"zabra/jute"
	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
)

// endTimeoutMs is the session timeout that a session gets whose end is asked for next.
const endTimeoutMs = 10_000

// endSession ends a session by its id and password, and returns when the server has done so. It tries again while the
// server does not answer, or while somebody else takes the session back in between.
func endSession(addr string, session zxid.SessionID, password []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	for {
		err := tryEndSession(ctx, addr, session, password)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Millisecond) // between two attempts at something that nothing tells of
	}
}

// tryEndSession sends the handshake and the end of the session together, so that whoever loses the connection to this one
// has no time to come back in between.
func tryEndSession(ctx context.Context, addr string, session zxid.SessionID, password []byte) error {
	c, err := client.DialConn(ctx, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	var e jute.Encoder
	start := wire.BeginFrame(&e)
	connect := wire.ConnectRequest{TimeoutMs: endTimeoutMs, SessionID: session, Password: password, HasReadOnly: true}
	connect.Encode(&e)
	wire.EndFrame(&e, start)
	wire.AppendRequest(&e, wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession}, nil)
	if _, err := c.Write(e.Bytes()); err != nil {
		return err
	}
	body, err := c.ReadFrame()
	if err != nil {
		return err
	}
	answer, err := decodeConnected(body)
	if err != nil || answer.TimeoutMs <= 0 { // it has ended already
		return err
	}
	reply, _, err := c.ReadReply()
	if err != nil {
		return err
	}
	if reply.Xid != 1 {
		return fmt.Errorf("the server answers request %d, which was not asked", reply.Xid)
	}
	return reply.Err.Err()
}

func decodeConnected(body []byte) (answer wire.ConnectResponse, err error) {
	d := jute.NewDecoder(body, len(body))
	answer.Decode(&d)
	return answer, d.Err()
}
