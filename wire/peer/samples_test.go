package peer

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zxid"
)

// sample is a message under a name that stands for its golden bytes.
type sample struct {
	name    string
	message zab.Message
}

func z(e zxid.Epoch, counter uint32) zxid.Zxid { return zxid.Make(e, counter) }

// samples has at least one message of each kind, with every field that travels set in one of them.
func samples() []sample {
	owner := zab.Origin{Server: 3, Conn: 0x0102030405060708, Seq: 300}
	ids := []zab.Identity{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "digest", ID: "user:\xff"}}
	snapshot := zab.SnapshotFile{Zxid: z(7, 1000), Name: "snapshot.7000003e8.gz"}
	batch := []zab.Entry{
		{Zxid: z(8, 1), Payload: []byte("first"), Origin: owner},
		{Zxid: z(8, 2), Payload: bytes.Repeat([]byte{0xab}, 300)},
		{Zxid: z(9, 1), Payload: []byte{0}, Origin: zab.Origin{Server: -5, Conn: math.MaxUint64, Seq: math.MaxUint64}},
	}
	return []sample{
		{"notification", zab.Message{
			Kind: zab.MessageNotification, Vote: zab.Vote{Leader: 3, Zxid: z(7, 1000), Epoch: 7}, Round: 130, Role: zab.RoleLeading, ConfigVersion: 0x100000004,
		}},
		{"notification-no-vote", zab.Message{
			Kind: zab.MessageNotification, Vote: zab.Vote{Leader: math.MinInt64, Zxid: math.MinInt64}, Round: math.MaxUint64, Role: zab.RoleObserving,
		}},
		{"followerinfo", zab.Message{Kind: zab.MessageFollowerInfo, Epoch: 7, ConfigVersion: 0x100000004}},
		{"observerinfo", zab.Message{Kind: zab.MessageObserverInfo, Epoch: math.MaxInt32, ConfigVersion: math.MaxInt64}},
		{"leaderinfo", zab.Message{Kind: zab.MessageLeaderInfo, Epoch: 8}},
		{"ackepoch", zab.Message{
			Kind: zab.MessageAckEpoch, Epoch: 7, Zxid: z(7, 1000), Ends: []zxid.Zxid{z(5, 17), z(6, 2), z(7, 1000)}, Floor: z(6, 2), NoVote: true,
			Resume: zab.SnapshotProgress{From: 2, File: snapshot, Offset: 1 << 33},
		}},
		{"ackepoch-fresh", zab.Message{Kind: zab.MessageAckEpoch}},
		{"diff", zab.Message{Kind: zab.MessageDiff, Zxid: z(7, 1000)}},
		{"trunc", zab.Message{Kind: zab.MessageTrunc, Zxid: z(7, 990)}},
		{"snap", zab.Message{Kind: zab.MessageSnap, Zxid: z(7, 1000), Snapshot: snapshot, SnapshotOffset: 1 << 20}},
		{"proposal", zab.Message{Kind: zab.MessageProposal, Zxid: z(7, 1000), Committed: z(7, 999), Entries: batch}},
		{"proposal-empty", zab.Message{Kind: zab.MessageProposal, Zxid: z(7, 1000), Committed: z(7, 1000)}},
		{"inform", zab.Message{Kind: zab.MessageInform, Zxid: z(8, 1), Committed: z(8, 2), Entries: batch[1:2]}},
		{"commit", zab.Message{Kind: zab.MessageCommit, Zxid: z(8, 2)}},
		{"newleader", zab.Message{Kind: zab.MessageNewLeader, Epoch: 8, ConfigVersion: 0x100000004}},
		{"uptodate", zab.Message{Kind: zab.MessageUpToDate, Epoch: 8, Zxid: z(7, 1000)}},
		{"ack", zab.Message{Kind: zab.MessageAck, Zxid: z(8, 2)}},
		{"ack-newleader", zab.Message{Kind: zab.MessageAckNewLeader, Epoch: 8, Zxid: z(7, 1000)}},
		{"ping", zab.Message{Kind: zab.MessagePing, ID: 70000}},
		{"pong", zab.Message{Kind: zab.MessagePong, ID: 70000, Touches: []zab.Touch{
			{Session: 0x0100000000000001, TimeoutMs: 30000, AgeMs: 12}, {Session: -1, TimeoutMs: math.MaxInt32},
		}}},
		{"pong-idle", zab.Message{Kind: zab.MessagePong, ID: 1}},
		{"request", zab.Message{Kind: zab.MessageRequest, Requests: []zab.Request{
			{Origin: owner, Session: 0x0300000000000001, Cxid: 41, Op: -11, Body: []byte("/path"), Identities: ids},
			{Origin: owner, Session: 0x0300000000000001, Cxid: 42, Op: 1, Body: []byte("/path/2"), Identities: ids},
			{Origin: owner, Session: 0x0300000000000002, Cxid: 1, Op: 1, Body: []byte("/path/2"), Identities: ids[:1]},
		}}},
		{"request-bare", zab.Message{Kind: zab.MessageRequest, Requests: []zab.Request{{
			Origin: owner, Session: math.MinInt64, Cxid: math.MinInt32, Op: math.MaxInt32,
		}}}},
		{"refused", zab.Message{Kind: zab.MessageRefused, Owner: owner, Code: -112}},
		{"sync", zab.Message{Kind: zab.MessageSync, ID: 5}},
		{"synced", zab.Message{Kind: zab.MessageSynced, ID: 5, Zxid: z(8, 2)}},
		{"revalidate", zab.Message{Kind: zab.MessageRevalidate, ID: 6, Session: 0x0200000000000009, TimeoutMs: 40000, Owner: owner}},
		{"revalidated", zab.Message{Kind: zab.MessageRevalidated, ID: 6, Session: 0x0200000000000009, Valid: true, Zxid: z(8, 2)}},
	}
}

func encode(t testing.TB, m *zab.Message) []byte {
	t.Helper()
	var e Encoder
	b, err := e.AppendMessage(nil, m)
	require.NoError(t, err)
	return b
}

// purposeOf returns a purpose under which a kind may travel.
func purposeOf(k FrameKind) Purpose {
	if kinds[k].places&onElection != 0 {
		return PurposeElection
	}
	return PurposeQuorum
}

// readAll reads frames until the first error.
func readAll(b []byte, purpose Purpose) (frames []Frame, err error) {
	r := NewReader(bytes.NewReader(b), purpose)
	for {
		f, err := r.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

// TestSamplesCoverAllKinds keeps this file complete when a kind is added.
func TestSamplesCoverAllKinds(t *testing.T) {
	missing := map[zab.MessageKind]bool{}
	for k := zab.MessageKind(1); k.Known(); k++ {
		require.NotZero(t, kindOf[k], "%v has no frame", k)
		missing[k] = true
	}
	set := map[zab.MessageKind]field{}
	for _, s := range samples() {
		delete(missing, s.message.Kind)
		set[s.message.Kind] |= fieldsSet(&s.message)
	}
	require.Empty(t, missing)
	for k, fields := range set {
		require.Equal(t, kinds[kindOf[k]].layout.fields, fields, "%v: fields that travel and fields in samples", k)
	}
}
