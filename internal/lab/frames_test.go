package lab

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

type seen struct {
	head string
	last byte
}

// A stream is cut into the same frames wherever it is broken into pieces.
func TestFramer(t *testing.T) {
	for seed := range uint64(20) {
		testFramer(t, rand.New(rand.NewPCG(seed, 0)))
	}
}

func testFramer(t *testing.T, rng *rand.Rand) {
	var stream []byte
	var want []seen
	for i := range 200 {
		body := make([]byte, 1+rng.IntN(40))
		for j := range body {
			body[j] = byte(rng.Uint32())
		}
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(body))), body...)
		if i > 0 { // the first is the handshake
			want = append(want, seen{string(body[:min(len(body), headBytes)]), body[len(body)-1]})
		}
	}
	var got []seen
	f := framer{frame: func(head []byte, last byte) { got = append(got, seen{string(head), last}) }}
	for len(stream) > 0 {
		n := min(len(stream), rng.IntN(60))
		f.feed(stream[:n])
		stream = stream[n:]
	}
	require.Equal(t, want, got)
}

// What is no frame does no harm: the connection's owner and the server see to it.
func TestFramerOfNonsense(t *testing.T) {
	frames := 0
	f := framer{frame: func([]byte, byte) { frames++ }}
	f.feed([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1})
	f.feed(nil)
	f.feed([]byte{7})
	require.Equal(t, 2, frames)
	require.Zero(t, int32At([]byte{1, 2, 3}, 0))
}

// request and reply are frames as they pass through a link.
func request(l *link, xid, op int32, watch byte) {
	head := binary.BigEndian.AppendUint32(nil, uint32(xid))
	l.sent(binary.BigEndian.AppendUint32(head, uint32(op)), watch)
}

func reply(l *link, xid, code int32) {
	head := make([]byte, headBytes)
	binary.BigEndian.PutUint32(head, uint32(xid))
	binary.BigEndian.PutUint32(head[12:], uint32(code))
	l.received(head, 0)
}

func TestLinkKnowsWhoWaits(t *testing.T) {
	changes := 0
	l := newLink(func() { changes++ })
	l.mu.asked = map[int32]int32{}
	requireState := func(requests, pings, events int64, waits bool, times int) {
		t.Helper()
		counts, w := l.state()
		require.Equal(t, linkCounts{requests, pings, events}, counts)
		require.Equal(t, waits, w)
		require.Equal(t, times, changes)
	}
	request(l, xidPing, 11, 0)
	reply(l, xidPing, errOK)
	requireState(0, 1, 0, false, 0)
	request(l, 1, opGetData, 0) // without a watch
	reply(l, 1, errOK)
	request(l, 2, opGetData, 1) // with one, in vain
	reply(l, 2, errNoNode)
	requireState(2, 1, 0, false, 0)
	request(l, 3, opGetData, 1)
	requireState(3, 1, 0, false, 0)
	reply(l, 3, errOK)
	requireState(3, 1, 0, true, 1)
	reply(l, xidEvent, errOK)
	requireState(3, 1, 1, false, 2)
	request(l, 4, opExists, 1) // which watches what is not there
	reply(l, 4, errNoNode)
	requireState(4, 1, 1, true, 3)
}

func TestLinkThatIsCut(t *testing.T) {
	l := newLink(func() {})
	l.kill()
	_, err := l.dial("tcp", "127.0.0.1:1", 0)
	require.ErrorIs(t, err, errCut)
}
