package recipes

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// frame returns the given numbers of four bytes as a frame.
func frame(words ...int32) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(4*len(words)))
	for _, w := range words {
		p = binary.BigEndian.AppendUint32(p, uint32(w))
	}
	return p
}

func TestFramesAreFoundHoweverTheyArrive(t *testing.T) {
	stream := append(append(append(frame(1, 2, 3, 4, 5, 6), frame()...), frame(7)...), frame(8, 9)...)
	want := [][]byte{frame(1, 2, 3, 4)[4:], {}, frame(7)[4:], frame(8, 9)[4:]}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var f frames
		got := [][]byte{}
		for rest := stream; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			f.feed(rest[:n], func(head []byte) { got = append(got, append([]byte{}, head...)) })
			rest = rest[n:]
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// pipe is a connection between a client whose frames are looked at and a server.
func pipe(t *testing.T, handshake func(int64, time.Duration, time.Time) *lease) (client *watchedConn, server net.Conn) {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return &watchedConn{Conn: a, handshake: handshake}, b
}

// exchange has the client send and the server receive, or the other way round.
func exchange(t *testing.T, from, to net.Conn, p []byte) {
	t.Helper()
	sent := make(chan error, 1)
	go func() { _, err := from.Write(p); sent <- err }()
	_, err := to.Read(make([]byte, len(p)))
	require.NoError(t, err)
	require.NoError(t, <-sent)
}

func TestLeaseCountsFromTheYoungestRequestThatWasAnswered(t *testing.T) {
	var sentAt []time.Time
	l := &lease{id: 77}
	client, server := pipe(t, func(id int64, timeout time.Duration, sent time.Time) *lease {
		require.Equal(t, int64(77), id)
		require.Equal(t, 4*time.Second, timeout)
		sentAt = append(sentAt, sent)
		l.negotiate(timeout, sent)
		return l
	})
	request := func() { exchange(t, client, server, frame(1, 4, 0)) }
	reply := func(xid int32) { exchange(t, server, client, frame(xid, 0, 9, 0)) }
	last := func() time.Time {
		client.mu.Lock()
		defer client.mu.Unlock()
		return client.mu.sent[len(client.mu.sent)-1]
	}

	exchange(t, client, server, frame(0, 0, 0, 4000, 0, 0, 0))
	exchange(t, server, client, frame(0, 4000, 0, 77, 0))
	granted := l.until()
	require.Equal(t, sentAt[0].Add(4*time.Second), granted)

	request()
	first := last()
	request()
	second := last()
	require.Equal(t, granted, l.until(), "what was only sent proves nothing")
	reply(-1)
	require.Equal(t, granted, l.until(), "the server notifies by itself")
	reply(1)
	require.Equal(t, first.Add(4*time.Second), l.until())
	reply(-2)
	require.Equal(t, second.Add(4*time.Second), l.until())
	reply(5)
	require.Equal(t, second.Add(4*time.Second), l.until(), "a reply to nothing proves nothing")
}

func TestRefusedHandshakeGivesNoLease(t *testing.T) {
	c := newClient(Options{SessionTimeout: time.Second})
	client, server := pipe(t, c.granted)
	exchange(t, client, server, frame(0, 0, 0, 4000, 0, 0, 0))
	exchange(t, server, client, frame(0, 0, 0, 0, 0))
	require.Nil(t, c.mu.granted)
	exchange(t, client, server, frame(1, 4, 0))
	exchange(t, server, client, frame(1, 0, 9, 0)) // nothing to extend, and no panic
}

// On a connection that goes on with a session, no reply comes before the watches are on their way.
func TestRepliesWaitForTheWatches(t *testing.T) {
	l := &lease{id: 77}
	l.negotiate(time.Second, time.Now())
	client, server := pipe(t, func(_ int64, timeout time.Duration, sent time.Time) *lease {
		l.negotiate(timeout, sent)
		return l
	})
	client.watching = func() bool { return true }
	exchange(t, client, server, frame(0, 101, 101, 4000, 0, 0, 0)) // the last zxid looks like the operation
	exchange(t, server, client, frame(0, 4000, 0, 77, 0))
	exchange(t, client, server, frame(1, 4, 0))
	client.mu.Lock()
	hold := client.mu.hold
	client.mu.Unlock()
	require.NotNil(t, hold, "replies are held")
	read := make(chan error, 1)
	go func() { _, err := client.Read(make([]byte, 20)); read <- err }()
	_, err := server.Write(frame(1, 0, 9, 0))
	require.NoError(t, err)
	exchange(t, client, server, frame(2, 101, 0))
	require.NoError(t, <-read)
	<-hold
	exchange(t, server, client, frame(2, 0, 9, 0))

	// Without watches nobody sets any, and the first reply is just a little late.
	c, s := pipe(t, func(int64, time.Duration, time.Time) *lease { return l })
	c.watching = client.watching
	exchange(t, c, s, frame(0, 0, 0, 4000, 0, 0, 0))
	exchange(t, s, c, frame(0, 4000, 0, 77, 0))
	exchange(t, c, s, frame(1, 4, 0))
	exchange(t, s, c, frame(1, 0, 9, 0))
	require.Nil(t, c.mu.hold)
}

func TestTimeoutThatIsNegotiatedAnewMayBeShorter(t *testing.T) {
	now := time.Now()
	l := &lease{}
	l.negotiate(10*time.Second, now)
	l.negotiate(2*time.Second, now.Add(time.Second))
	require.Equal(t, now.Add(3*time.Second), l.until())
}

func TestHostsAreTriedInTurn(t *testing.T) {
	var h hosts
	require.Error(t, h.Init(nil))
	require.NoError(t, h.Init([]string{"a:1", "b:1"}))
	require.Equal(t, 2, h.Len())
	first, again := h.Next()
	require.False(t, again)
	second, again := h.Next()
	require.False(t, again)
	require.ElementsMatch(t, []string{"a:1", "b:1"}, []string{first, second})
	third, again := h.Next()
	require.True(t, again, "all were tried in vain")
	require.Equal(t, first, third)
	h.Connected()
	_, again = h.Next()
	require.False(t, again, "the first attempt after a connection that stood is made at once")
}
