package peer

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"zabra/zab"
	"zabra/zab/zxid"
)

// The structs below mirror the bodies element by element: the order of the fields is part of the dialect. The fields
// have the width of the wire; tell narrows them after a check.

type notificationBody struct {
	Round         uint64
	Role          uint64
	Leader        int64
	Zxid          int64
	Epoch         uint64
	ConfigVersion int64
}

func (b *notificationBody) fill(m *zab.Message) error {
	*b = notificationBody{
		m.Round, uint64(m.Role), int64(m.Vote.Leader), int64(m.Vote.Zxid), uint64(m.Vote.Epoch), m.ConfigVersion,
	}
	return b.tell(&zab.Message{})
}

func (b *notificationBody) tell(m *zab.Message) error {
	if b.Role > uint64(zab.RoleObserving) {
		return fmt.Errorf("role %d", b.Role)
	}
	m.Round, m.Role, m.ConfigVersion = b.Round, zab.Role(b.Role), b.ConfigVersion
	m.Vote = zab.Vote{Leader: zxid.ServerID(b.Leader), Zxid: zxid.Zxid(b.Zxid), Epoch: zxid.Epoch(b.Epoch)}
	return cmp.Or(checkEpoch(b.Epoch), checkConfigVersion(b.ConfigVersion))
}

type epochBody struct{ Epoch uint64 }

func (b *epochBody) fill(m *zab.Message) error {
	b.Epoch = uint64(m.Epoch)
	return checkEpoch(b.Epoch)
}

func (b *epochBody) tell(m *zab.Message) error {
	m.Epoch = zxid.Epoch(b.Epoch)
	return checkEpoch(b.Epoch)
}

type infoBody struct {
	Epoch         uint64
	ConfigVersion int64
}

func (b *infoBody) fill(m *zab.Message) error {
	b.Epoch, b.ConfigVersion = uint64(m.Epoch), m.ConfigVersion
	return b.tell(&zab.Message{})
}

func (b *infoBody) tell(m *zab.Message) error {
	m.Epoch, m.ConfigVersion = zxid.Epoch(b.Epoch), b.ConfigVersion
	return cmp.Or(checkEpoch(b.Epoch), checkConfigVersion(b.ConfigVersion))
}

type zxidBody struct{ Zxid int64 }

func (b *zxidBody) fill(m *zab.Message) error {
	b.Zxid = int64(m.Zxid)
	return checkZxid("zxid", b.Zxid)
}

func (b *zxidBody) tell(m *zab.Message) error {
	m.Zxid = zxid.Zxid(b.Zxid)
	return checkZxid("zxid", b.Zxid)
}

type epochZxidBody struct {
	Epoch uint64
	Zxid  int64
}

func (b *epochZxidBody) fill(m *zab.Message) error {
	b.Epoch, b.Zxid = uint64(m.Epoch), int64(m.Zxid)
	return b.tell(&zab.Message{})
}

func (b *epochZxidBody) tell(m *zab.Message) error {
	m.Epoch, m.Zxid = zxid.Epoch(b.Epoch), zxid.Zxid(b.Zxid)
	return cmp.Or(checkEpoch(b.Epoch), checkZxid("zxid", b.Zxid))
}

type idBody struct{ ID uint64 }

func (b *idBody) fill(m *zab.Message) error {
	b.ID = m.ID
	return nil
}

func (b *idBody) tell(m *zab.Message) error {
	m.ID = b.ID
	return nil
}

type syncedBody struct {
	ID   uint64
	Zxid int64
}

func (b *syncedBody) fill(m *zab.Message) error {
	b.ID, b.Zxid = m.ID, int64(m.Zxid)
	return checkZxid("zxid", b.Zxid)
}

func (b *syncedBody) tell(m *zab.Message) error {
	m.ID, m.Zxid = b.ID, zxid.Zxid(b.Zxid)
	return checkZxid("zxid", b.Zxid)
}

type ackEpochBody struct {
	Epoch      uint64
	Zxid       int64
	Ends       []byte // zxids of eight bytes each, big-endian
	Floor      int64
	NoVote     bool
	From       int64 // of here on: what is left of a transfer; all zero and "" for nothing
	FileZxid   int64
	FileName   string
	FileOffset int64
}

func (b *ackEpochBody) fill(m *zab.Message) error {
	r := &m.Resume
	*b = ackEpochBody{
		uint64(m.Epoch), int64(m.Zxid), make([]byte, 0, 8*len(m.Ends)), int64(m.Floor), m.NoVote,
		int64(r.From), int64(r.File.Zxid), r.File.Name, r.Offset,
	}
	for _, z := range m.Ends {
		b.Ends = binary.BigEndian.AppendUint64(b.Ends, uint64(z))
	}
	return b.tell(&zab.Message{})
}

func (b *ackEpochBody) tell(m *zab.Message) error {
	m.Epoch, m.Zxid, m.Floor, m.NoVote = zxid.Epoch(b.Epoch), zxid.Zxid(b.Zxid), zxid.Zxid(b.Floor), b.NoVote
	m.Resume = zab.SnapshotProgress{
		From: zxid.ServerID(b.From), File: zab.SnapshotFile{Zxid: zxid.Zxid(b.FileZxid), Name: b.FileName}, Offset: b.FileOffset,
	}
	err := cmp.Or(checkEpoch(b.Epoch), checkZxid("zxid", b.Zxid), checkZxid("floor", b.Floor))
	if err == nil && m.Resume != (zab.SnapshotProgress{}) {
		err = checkSnapshot(b.FileZxid, b.FileName, b.FileOffset)
	}
	if err == nil {
		m.Ends, err = parseEnds(b.Ends, m.Zxid)
	}
	return err
}

// parseEnds reads the ends of epochs: ascending, none after last.
func parseEnds(b []byte, last zxid.Zxid) (ends []zxid.Zxid, err error) {
	if len(b)%8 != 0 || len(b) > 8*zab.EndsMax {
		return nil, fmt.Errorf("%d bytes are not the ends of at most %d epochs", len(b), zab.EndsMax)
	}
	for ; len(b) > 0; b = b[8:] {
		z := zxid.Zxid(binary.BigEndian.Uint64(b))
		if z < 0 || z > last || len(ends) > 0 && z <= ends[len(ends)-1] {
			return nil, fmt.Errorf("the end %v of an epoch is out of order", z)
		}
		ends = append(ends, z)
	}
	return ends, nil
}

func checkSnapshot(z int64, name string, offset int64) error {
	if offset < 0 {
		return fmt.Errorf("offset %d is negative", offset)
	}
	return cmp.Or(checkZxid("zxid of the snapshot", z), checkName(name))
}

type snapBody struct {
	Zxid       int64
	FileZxid   int64
	FileName   string
	FileOffset int64
}

func (b *snapBody) fill(m *zab.Message) error {
	*b = snapBody{int64(m.Zxid), int64(m.Snapshot.Zxid), m.Snapshot.Name, m.SnapshotOffset}
	return b.tell(&zab.Message{})
}

func (b *snapBody) tell(m *zab.Message) error {
	m.Zxid = zxid.Zxid(b.Zxid)
	m.Snapshot, m.SnapshotOffset = zab.SnapshotFile{Zxid: zxid.Zxid(b.FileZxid), Name: b.FileName}, b.FileOffset
	return cmp.Or(checkZxid("zxid", b.Zxid), checkSnapshot(b.FileZxid, b.FileName, b.FileOffset))
}

type refusedBody struct {
	Server    int64
	Conn, Seq uint64
	Code      int64
}

func (b *refusedBody) fill(m *zab.Message) error {
	*b = refusedBody{int64(m.Owner.Server), m.Owner.Conn, m.Owner.Seq, int64(m.Code)}
	return nil
}

func (b *refusedBody) tell(m *zab.Message) error {
	m.Owner, m.Code = origin(b.Server, b.Conn, b.Seq), int32(b.Code)
	return checkInt32("code", b.Code)
}

type revalidateBody struct {
	ID        uint64
	Session   int64
	TimeoutMs int64
	Server    int64
	Conn, Seq uint64
}

func (b *revalidateBody) fill(m *zab.Message) error {
	*b = revalidateBody{m.ID, int64(m.Session), int64(m.TimeoutMs), int64(m.Owner.Server), m.Owner.Conn, m.Owner.Seq}
	return checkTimeout("timeout", b.TimeoutMs)
}

func (b *revalidateBody) tell(m *zab.Message) error {
	m.ID, m.Session, m.TimeoutMs = b.ID, zxid.SessionID(b.Session), int32(b.TimeoutMs)
	m.Owner = origin(b.Server, b.Conn, b.Seq)
	return checkTimeout("timeout", b.TimeoutMs)
}

type revalidatedBody struct {
	ID      uint64
	Session int64
	Valid   bool
	Zxid    int64
}

func (b *revalidatedBody) fill(m *zab.Message) error {
	*b = revalidatedBody{m.ID, int64(m.Session), m.Valid, int64(m.Zxid)}
	return checkZxid("zxid", b.Zxid)
}

func (b *revalidatedBody) tell(m *zab.Message) error {
	m.ID, m.Session, m.Valid, m.Zxid = b.ID, zxid.SessionID(b.Session), b.Valid, zxid.Zxid(b.Zxid)
	return checkZxid("zxid", b.Zxid)
}
