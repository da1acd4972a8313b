package peer

import (
	"math/bits"

	"zabra/zab"
	"zabra/zab/zxid"
)

// field is a set of fields of a zab.Message. A body has room for some of them; a message with others set must not be
// sent, lest they get lost without a word.
type field uint32

const (
	fieldEpoch field = 1 << iota
	fieldZxid
	fieldVote
	fieldRound
	fieldRole
	fieldConfigVersion
	fieldEnds
	fieldFloor
	fieldNoVote
	fieldResume
	fieldSnapshot
	fieldEntries
	fieldCommitted
	fieldID
	fieldTouches
	fieldRequests
	fieldCode
	fieldSession
	fieldTimeout
	fieldOwner
	fieldValid
)

var fieldNames = [...]string{
	"Epoch", "Zxid", "Vote", "Round", "Role", "ConfigVersion", "Ends", "Floor", "NoVote", "Resume", "Snapshot", "Entries", "Committed",
	"ID", "Touches", "Requests", "Code", "Session", "TimeoutMs", "Owner", "Valid",
}

// String names the first of the fields.
func (f field) String() string { return fieldNames[bits.TrailingZeros32(uint32(f))] }

// fieldsSet tells which fields of a message are not zero. From, To and Conn do not travel.
func fieldsSet(m *zab.Message) (set field) {
	mark := func(f field, isSet bool) {
		if isSet {
			set |= f
		}
	}
	mark(fieldEpoch, m.Epoch != 0)
	mark(fieldZxid, m.Zxid != 0)
	mark(fieldVote, m.Vote != zab.Vote{})
	mark(fieldRound, m.Round != 0)
	mark(fieldRole, m.Role != 0)
	mark(fieldConfigVersion, m.ConfigVersion != 0)
	mark(fieldEnds, len(m.Ends) > 0)
	mark(fieldFloor, m.Floor != 0)
	mark(fieldNoVote, m.NoVote)
	mark(fieldResume, m.Resume != zab.SnapshotProgress{})
	mark(fieldSnapshot, m.Snapshot != zab.SnapshotFile{} || m.SnapshotOffset != 0)
	mark(fieldEntries, len(m.Entries) > 0)
	mark(fieldCommitted, m.Committed != 0)
	mark(fieldID, m.ID != 0)
	mark(fieldTouches, len(m.Touches) > 0)
	mark(fieldRequests, len(m.Requests) > 0)
	mark(fieldCode, m.Code != 0)
	mark(fieldSession, m.Session != zxid.SessionID(0))
	mark(fieldTimeout, m.TimeoutMs != 0)
	mark(fieldOwner, m.Owner != zab.Origin{})
	mark(fieldValid, m.Valid)
	return set
}
