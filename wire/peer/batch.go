package peer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"zabra/zab"
	"zabra/zab/zxid"
)

// batchBody is a run of transactions: Entries holds one after the other, each as zxid, origin (server, connection,
// sequence) and payload length, all big-endian, and the payload.
type batchBody struct {
	After     int64
	Committed int64
	Entries   []byte
}

func (b *batchBody) fill(m *zab.Message) error {
	b.After, b.Committed = int64(m.Zxid), int64(m.Committed)
	if err := cmp.Or(checkZxid("zxid", b.After), checkZxid("committed zxid", b.Committed)); err != nil {
		return err
	}
	n := 0
	for i := range m.Entries {
		n += entryHeadBytes + len(m.Entries[i].Payload)
	}
	if n > bulkBytesMax-scalarBodyBytesMax {
		return fmt.Errorf("%d transactions of %d bytes are too long for a frame", len(m.Entries), n)
	}
	if b.Entries == nil || cap(b.Entries) < n {
		b.Entries = make([]byte, 0, n)
	}
	out, last := b.Entries[:0], m.Zxid
	for i := range m.Entries {
		e := &m.Entries[i]
		if err := checkEntry(e, last); err != nil {
			return err
		}
		last = e.Zxid
		out = appendEntry(out, e)
	}
	b.Entries = out
	return nil
}

func appendEntry(b []byte, e *zab.Entry) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(e.Zxid))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Origin.Server))
	b = binary.BigEndian.AppendUint64(b, e.Origin.Conn)
	b = binary.BigEndian.AppendUint64(b, e.Origin.Seq)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Payload)))
	return append(b, e.Payload...)
}

// checkEntry refuses a transaction that does not follow last, or is none.
func checkEntry(e *zab.Entry, last zxid.Zxid) error {
	switch {
	case e.Zxid <= last:
		return fmt.Errorf("transaction %v follows %v", e.Zxid, last)
	case e.Zxid.Epoch() > math.MaxInt32 || e.Zxid.Counter() < zxid.CounterMin:
		return fmt.Errorf("%v is not the zxid of a transaction", e.Zxid)
	case len(e.Payload) == 0:
		return fmt.Errorf("transaction %v is empty", e.Zxid)
	}
	return nil
}

// tell cuts the byte string into entries. Their payloads are parts of it.
func (b *batchBody) tell(m *zab.Message) error {
	m.Zxid, m.Committed = zxid.Zxid(b.After), zxid.Zxid(b.Committed)
	if err := cmp.Or(checkZxid("zxid", b.After), checkZxid("committed zxid", b.Committed)); err != nil {
		return err
	}
	n, err := countEntries(b.Entries)
	if n == 0 || err != nil {
		return err
	}
	m.Entries = make([]zab.Entry, n)
	rest, last := b.Entries, m.Zxid
	for i := range m.Entries {
		e := &m.Entries[i]
		e.Zxid = zxid.Zxid(binary.BigEndian.Uint64(rest))
		e.Origin = origin(int64(binary.BigEndian.Uint64(rest[8:])), binary.BigEndian.Uint64(rest[16:]), binary.BigEndian.Uint64(rest[24:]))
		end := entryHeadBytes + int(binary.BigEndian.Uint32(rest[32:]))
		e.Payload = rest[entryHeadBytes:end:end]
		rest = rest[end:]
		if err := checkEntry(e, last); err != nil {
			return err
		}
		last = e.Zxid
	}
	return nil
}

// countEntries walks over a batch and checks that it ends where an entry ends, so that no more memory is taken than
// there are entries.
func countEntries(batch []byte) (n int, err error) {
	for rest := batch; len(rest) > 0; n++ {
		if len(rest) < entryHeadBytes {
			return 0, fmt.Errorf("%d bytes are left after %d transactions", len(rest), n)
		}
		length := binary.BigEndian.Uint32(rest[32:])
		rest = rest[entryHeadBytes:]
		if int64(length) > int64(len(rest)) {
			return 0, fmt.Errorf("transaction %d of a batch has %d bytes, %d are there", n+1, length, len(rest))
		}
		rest = rest[length:]
	}
	return n, nil
}

// pongBody answers a ping. Touches holds one after the other, each as session, timeout and age, all big-endian.
type pongBody struct {
	ID      uint64
	Touches []byte
}

func (b *pongBody) fill(m *zab.Message) error {
	b.ID = m.ID
	if len(m.Touches) > (bulkBytesMax-scalarBodyBytesMax)/touchBytes {
		return fmt.Errorf("%d touches are too many for a frame", len(m.Touches))
	}
	if b.Touches == nil {
		b.Touches = []byte{}
	}
	out := b.Touches[:0]
	for _, t := range m.Touches {
		if err := cmp.Or(checkTimeout("timeout", int64(t.TimeoutMs)), checkTimeout("age", int64(t.AgeMs))); err != nil {
			return err
		}
		out = binary.BigEndian.AppendUint64(out, uint64(t.Session))
		out = binary.BigEndian.AppendUint32(out, uint32(t.TimeoutMs))
		out = binary.BigEndian.AppendUint32(out, uint32(t.AgeMs))
	}
	b.Touches = out
	return nil
}

func (b *pongBody) tell(m *zab.Message) error {
	m.ID = b.ID
	if len(b.Touches)%touchBytes != 0 {
		return fmt.Errorf("%d bytes are no whole number of touches", len(b.Touches))
	}
	if len(b.Touches) == 0 {
		return nil
	}
	m.Touches = make([]zab.Touch, len(b.Touches)/touchBytes)
	for i := range m.Touches {
		rest := b.Touches[i*touchBytes:]
		t := zab.Touch{
			Session:   zxid.SessionID(binary.BigEndian.Uint64(rest)),
			TimeoutMs: int32(binary.BigEndian.Uint32(rest[8:])),
			AgeMs:     int32(binary.BigEndian.Uint32(rest[12:])),
		}
		if err := cmp.Or(checkTimeout("timeout", int64(t.TimeoutMs)), checkTimeout("age", int64(t.AgeMs))); err != nil {
			return err
		}
		m.Touches[i] = t
	}
	return nil
}
