package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"zabra/zab"
	"zabra/zab/zxid"
)

// requestsBody is a run of requests: one after the other, each as origin (server, connection, sequence), session, cxid,
// opcode, identities and length of the record, all big-endian, and the record. The identities are their number and, for each,
// length and text of scheme and id; identitiesAgain in place of the number stands for those of the request before, and has to
// where they are the same.
type requestsBody struct{ Requests []byte }

// identitiesAgain says that the identities are those of the request before.
const identitiesAgain = 0xffff

func (b *requestsBody) fill(m *zab.Message) error {
	n := 0
	for i := range m.Requests {
		q := &m.Requests[i]
		if len(q.Identities) > identitiesMax {
			return fmt.Errorf("%d identities", len(q.Identities))
		}
		n += requestFixedBytes + len(q.Body)
		for _, id := range q.Identities {
			n += 8 + len(id.Scheme) + len(id.ID)
		}
	}
	switch {
	case n == 0:
		return errNoRequest
	case n > bulkBytesMax-scalarBodyBytesMax:
		return fmt.Errorf("%d requests of %d bytes are too long for a frame", len(m.Requests), n)
	}
	out := b.Requests[:0]
	for i := range m.Requests {
		out = appendRequest(out, m.Requests, i)
	}
	b.Requests = out
	return nil
}

var errNoRequest = errors.New("there is no request")

func appendRequest(b []byte, list []zab.Request, i int) []byte {
	q := &list[i]
	b = binary.BigEndian.AppendUint64(b, uint64(q.Origin.Server))
	b = binary.BigEndian.AppendUint64(b, q.Origin.Conn)
	b = binary.BigEndian.AppendUint64(b, q.Origin.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(q.Session))
	b = binary.BigEndian.AppendUint32(b, uint32(q.Cxid))
	b = binary.BigEndian.AppendUint32(b, uint32(q.Op))
	if i > 0 && slices.Equal(q.Identities, list[i-1].Identities) {
		b = binary.BigEndian.AppendUint16(b, identitiesAgain)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(q.Identities)))
		for _, id := range q.Identities {
			b = appendText(appendText(b, id.Scheme), id.ID)
		}
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(q.Body)))
	return append(b, q.Body...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// tell cuts the byte string into requests. Their records are parts of it.
func (b *requestsBody) tell(m *zab.Message) error {
	c := cutter{rest: b.Requests}
	for n := 0; len(c.rest) > 0 || n == 0; n++ {
		q, err := c.request(m.Requests)
		if err != nil {
			return fmt.Errorf("request %d of a batch: %w", n+1, err)
		}
		m.Requests = append(m.Requests, q)
	}
	return nil
}

// cutter takes pieces off the front of a byte string.
type cutter struct{ rest []byte }

var errCut = errors.New("it ends too early")

func (c *cutter) take(n uint32) ([]byte, error) {
	if uint64(n) > uint64(len(c.rest)) {
		return nil, errCut
	}
	piece := c.rest[:n:n]
	c.rest = c.rest[n:]
	return piece, nil
}

// sized takes a piece behind its length.
func (c *cutter) sized() ([]byte, error) {
	head, err := c.take(4)
	if err != nil {
		return nil, err
	}
	return c.take(binary.BigEndian.Uint32(head))
}

// request takes one request off; before are those in front of it.
func (c *cutter) request(before []zab.Request) (q zab.Request, err error) {
	head, err := c.take(requestHeadBytes)
	if err != nil {
		return q, err
	}
	q.Origin = origin(int64(binary.BigEndian.Uint64(head)), binary.BigEndian.Uint64(head[8:]), binary.BigEndian.Uint64(head[16:]))
	q.Session = zxid.SessionID(binary.BigEndian.Uint64(head[24:]))
	q.Cxid, q.Op = int32(binary.BigEndian.Uint32(head[32:])), int32(binary.BigEndian.Uint32(head[36:]))
	if q.Identities, err = c.identities(binary.BigEndian.Uint16(head[40:]), before); err != nil {
		return q, err
	}
	body, err := c.sized()
	if len(body) > 0 {
		q.Body = body
	}
	return q, err
}

func (c *cutter) identities(n uint16, before []zab.Request) (ids []zab.Identity, err error) {
	switch {
	case n == identitiesAgain && len(before) == 0:
		return nil, errors.New("it has the identities of a request before, and there is none")
	case n == identitiesAgain:
		return before[len(before)-1].Identities, nil
	case n > identitiesMax:
		return nil, fmt.Errorf("%d identities", n)
	}
	for range n {
		scheme, err := c.sized()
		if err != nil {
			return nil, err
		}
		id, err := c.sized()
		if err != nil {
			return nil, err
		}
		ids = append(ids, zab.Identity{Scheme: string(scheme), ID: string(id)})
	}
	if len(before) > 0 && slices.Equal(ids, before[len(before)-1].Identities) {
		return nil, errors.New("it repeats the identities of the request before")
	}
	return ids, nil
}
