package peer

import (
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"zabra/zab"
	"zabra/zab/zxid"
)

// The generators draw what the dialect allows, limits often.

func zxids(min zxid.Zxid) *rapid.Generator[zxid.Zxid] {
	return rapid.Custom(func(t *rapid.T) zxid.Zxid {
		return zxid.Zxid(rapid.Int64Range(int64(min), math.MaxInt64).Draw(t, "zxid"))
	})
}

func epochs() *rapid.Generator[zxid.Epoch] {
	return rapid.Custom(func(t *rapid.T) zxid.Epoch { return zxid.Epoch(rapid.Uint32Range(0, math.MaxInt32).Draw(t, "epoch")) })
}

func origins() *rapid.Generator[zab.Origin] {
	return rapid.Custom(func(t *rapid.T) zab.Origin {
		return zab.Origin{
			Server: zxid.ServerID(rapid.Int64().Draw(t, "server")), Conn: rapid.Uint64().Draw(t, "conn"), Seq: rapid.Uint64().Draw(t, "seq"),
		}
	})
}

func snapshots() *rapid.Generator[zab.SnapshotFile] {
	return rapid.Custom(func(t *rapid.T) zab.SnapshotFile {
		return zab.SnapshotFile{Zxid: zxids(0).Draw(t, "file"), Name: rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,254}`).Draw(t, "name")}
	})
}

// ascending draws zxids of transactions after a given one.
func ascending(t *rapid.T, after zxid.Zxid, countMax int) (list []zxid.Zxid) {
	for range rapid.IntRange(0, countMax).Draw(t, "count") {
		room := int64(math.MaxInt64 - after)
		if room < 2 {
			break
		}
		after += zxid.Zxid(rapid.Int64Range(1, room).Draw(t, "step"))
		if after.Counter() < zxid.CounterMin {
			after++
		}
		if after <= 0 {
			break
		}
		list = append(list, after)
	}
	return list
}

func entries(t *rapid.T, after zxid.Zxid) (list []zab.Entry) {
	for _, z := range ascending(t, after, 8) {
		list = append(list, zab.Entry{Zxid: z, Origin: origins().Draw(t, "origin"), Payload: rapid.SliceOfN(rapid.Byte(), 1, 400).Draw(t, "payload")})
	}
	return list
}

func touches(t *rapid.T) (list []zab.Touch) {
	for range rapid.IntRange(0, 40).Draw(t, "touches") {
		list = append(list, zab.Touch{
			Session:   zxid.SessionID(rapid.Int64().Draw(t, "session")),
			TimeoutMs: rapid.Int32Min(0).Draw(t, "timeout"), AgeMs: rapid.Int32Min(0).Draw(t, "age"),
		})
	}
	return list
}

func requests(t *rapid.T) (list []zab.Request) {
	for range rapid.IntRange(1, 5).Draw(t, "requests") {
		q := request(t)
		if len(list) > 0 && rapid.Bool().Draw(t, "same identities") {
			q.Identities = list[len(list)-1].Identities
		}
		list = append(list, q)
	}
	return list
}

func request(t *rapid.T) zab.Request {
	r := zab.Request{
		Origin: origins().Draw(t, "origin"), Session: zxid.SessionID(rapid.Int64().Draw(t, "session")),
		Cxid: rapid.Int32().Draw(t, "cxid"), Op: rapid.Int32().Draw(t, "op"),
	}
	if body := rapid.SliceOfN(rapid.Byte(), 0, 70000).Draw(t, "body"); len(body) > 0 {
		r.Body = body
	}
	for range rapid.IntRange(0, 20).Draw(t, "identities") {
		r.Identities = append(r.Identities, zab.Identity{Scheme: rapid.String().Draw(t, "scheme"), ID: rapid.StringN(-1, 300, -1).Draw(t, "id")})
	}
	return r
}

// messages draws a message of a kind with every field that travels.
func messages(kind zab.MessageKind) *rapid.Generator[*zab.Message] {
	fields := kinds[kindOf[kind]].layout.fields
	return rapid.Custom(func(t *rapid.T) *zab.Message {
		m := &zab.Message{Kind: kind}
		draw := map[field]func(){
			fieldEpoch: func() { m.Epoch = epochs().Draw(t, "epoch") },
			fieldZxid:  func() { m.Zxid = zxids(0).Draw(t, "zxid") },
			fieldVote: func() {
				m.Vote = zab.Vote{Leader: zxid.ServerID(rapid.Int64().Draw(t, "leader")), Zxid: zxids(math.MinInt64).Draw(t, "vote"), Epoch: epochs().Draw(t, "epoch")}
			},
			fieldRound:         func() { m.Round = rapid.Uint64().Draw(t, "round") },
			fieldRole:          func() { m.Role = zab.Role(rapid.IntRange(0, int(zab.RoleObserving)).Draw(t, "role")) },
			fieldConfigVersion: func() { m.ConfigVersion = rapid.Int64Min(0).Draw(t, "version") },
			fieldEnds: func() {
				if m.Ends = ascending(t, 0, zab.EndsMax); m.Ends != nil {
					m.Zxid = m.Ends[len(m.Ends)-1]
				}
			},
			fieldFloor:  func() { m.Floor = zxids(0).Draw(t, "floor") },
			fieldNoVote: func() { m.NoVote = rapid.Bool().Draw(t, "no vote") },
			fieldResume: func() {
				if rapid.Bool().Draw(t, "resume") {
					m.Resume = zab.SnapshotProgress{From: zxid.ServerID(rapid.Int64().Draw(t, "from")), File: snapshots().Draw(t, "file"), Offset: rapid.Int64Min(0).Draw(t, "offset")}
				}
			},
			fieldSnapshot: func() {
				m.Snapshot, m.SnapshotOffset = snapshots().Draw(t, "file"), rapid.Int64Min(0).Draw(t, "offset")
			},
			fieldEntries:   func() { m.Entries = entries(t, m.Zxid) },
			fieldCommitted: func() { m.Committed = zxids(0).Draw(t, "committed") },
			fieldID:        func() { m.ID = rapid.Uint64().Draw(t, "id") },
			fieldTouches:   func() { m.Touches = touches(t) },
			fieldRequests:  func() { m.Requests = requests(t) },
			fieldCode:      func() { m.Code = rapid.Int32().Draw(t, "code") },
			fieldSession:   func() { m.Session = zxid.SessionID(rapid.Int64().Draw(t, "session")) },
			fieldTimeout:   func() { m.TimeoutMs = rapid.Int32Min(0).Draw(t, "timeout") },
			fieldOwner:     func() { m.Owner = origins().Draw(t, "owner") },
			fieldValid:     func() { m.Valid = rapid.Bool().Draw(t, "valid") },
		}
		for f := field(1); f <= fieldValid; f <<= 1 {
			if fields&f != 0 {
				draw[f]()
			}
		}
		return m
	})
}

// TestRoundTrip: what is written is read, and there is one way to write it.
func TestRoundTrip(t *testing.T) {
	for kind := zab.MessageKind(1); kind.Known(); kind++ {
		t.Run(kind.String(), func(t *testing.T) {
			var e Encoder
			rapid.Check(t, func(t *rapid.T) {
				m := messages(kind).Draw(t, "message")
				b, err := e.AppendMessage(nil, m)
				require.NoError(t, err)
				frames, err := readAll(b, purposeOf(kindOf[kind]))
				require.Equal(t, io.EOF, err)
				require.Len(t, frames, 1)
				require.Equal(t, m, frames[0].Message)
				again, err := e.AppendMessage(nil, frames[0].Message)
				require.NoError(t, err)
				require.Equal(t, b, again)
			})
		})
	}
}

// TestChunksRoundTrip cuts a file into chunks and puts it together again.
func TestChunksRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SliceOfN(rapid.Byte(), 1, 5000).Draw(t, "file")
		offset := rapid.IntRange(0, len(file)).Draw(t, "offset")
		var e Encoder
		var stream []byte
		for at, last := offset, false; !last; {
			c := Chunk{Offset: int64(at), Size: int64(len(file)), Data: file[at:min(len(file), at+rapid.IntRange(1, 2000).Draw(t, "step"))]}
			var err error
			stream, err = e.AppendChunk(stream, c)
			require.NoError(t, err)
			at += len(c.Data)
			last = c.Last()
		}
		r := &repeat{t: t, stream: stream}
		require.Equal(t, file, append(append([]byte{}, file[:offset]...), r.file()...))
	})
}

// repeat reads chunks, whose data is valid until the next one.
type repeat struct {
	t      *rapid.T
	stream []byte
}

func (r *repeat) Read(b []byte) (int, error) {
	if len(r.stream) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.stream)
	r.stream = r.stream[n:]
	return n, nil
}

func (r *repeat) file() (data []byte) {
	reader := NewReader(r, PurposeQuorum)
	for {
		f, err := reader.Next()
		require.NoError(r.t, err)
		data = append(data, f.Chunk.Data...)
		if f.Chunk.Last() {
			_, err = reader.Next()
			require.Equal(r.t, io.EOF, err)
			return data
		}
	}
}
