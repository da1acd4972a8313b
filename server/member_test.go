package server

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"zabra/wire/peer"
	"zabra/zab"
	"zabra/zab/ensemble"
)

const memberWaitMax = 30 * time.Second

// loneMember is the network side of a member, with nobody who steps.
func loneMember(t *testing.T) (*member, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	s := &Server{log: zap.New(core), clock: newClock(nil), quit: make(chan struct{})}
	s.steps.init()
	s.steps.end()
	m := &member{s: s, id: 1, limits: memberLimits{dial: memberWaitMax, write: memberWaitMax, quiet: memberWaitMax}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.linkCtx, m.unlink = context.WithCancel(m.ctx)
	m.conns.init()
	m.trouble.init()
	t.Cleanup(func() {
		m.close()
		s.steps.close()
		s.running.Wait()
	})
	return m, logs
}

// inputs waits until the inputs so far end with the kind, and returns all of them.
func inputs(t *testing.T, m *member, last zab.InputKind) (list []zab.Input) {
	t.Helper()
	for deadline := time.Now().Add(memberWaitMax); ; time.Sleep(time.Millisecond) {
		list = append(list, m.s.steps.take(nil).inputs...)
		if len(list) > 0 && list[len(list)-1].Kind == last {
			return list
		}
		require.True(t, time.Now().Before(deadline), "%v", list)
	}
}

func kinds(list []zab.Input) (kinds []zab.InputKind) {
	for _, in := range list {
		kinds = append(kinds, in.Kind)
	}
	return kinds
}

// tcpPair returns both ends of a connection.
func tcpPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	require.NoError(t, b.SetDeadline(time.Now().Add(memberWaitMax)))
	return a, b
}

// learnerConn is a connection to server 2 that is being served, and the other end of it.
func learnerConn(t *testing.T, m *member) (*quorumConn, net.Conn) {
	t.Helper()
	near, far := tcpPair(t)
	m.conns.beginRole(1)
	c := m.conns.add(m, near, 2, 1)
	require.NotNil(t, c)
	m.s.spawn(c.serve)
	return c, far
}

func TestPeerThatDoesNotReadIsCutOff(t *testing.T) {
	m, logs := loneMember(t)
	c, far := learnerConn(t, m)
	payload := make([]byte, 1<<20)
	sent := 0
	for ; m.conns.get(c.id) != nil && sent < 4*peerQueueBytesMax; sent += len(payload) {
		m.conns.send(&zab.Message{Kind: zab.MessageProposal, Conn: c.id, Entries: []zab.Entry{{Zxid: 1, Payload: payload}}})
		if logs.Len() > 0 {
			break
		}
	}
	require.Equal(t, []zab.InputKind{zab.InputConnected, zab.InputDisconnected}, kinds(inputs(t, m, zab.InputDisconnected)))
	require.Equal(t, 1, logs.FilterMessageSnippet("does not take what it is sent").Len())
	require.Less(t, sent, 2*peerQueueBytesMax)
	m.conns.send(&zab.Message{Kind: zab.MessageCommit, Conn: c.id, Zxid: 1}) // to nobody
	_, err := io.Copy(io.Discard, far)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// stepDue waits until somebody is asked to take a step, after forgetting those that were asked for before.
func stepDue(t *testing.T, m *member, send func()) {
	t.Helper()
	for drained := false; !drained; {
		select {
		case <-m.s.steps.wake:
		default:
			drained = true
		}
	}
	send()
	select {
	case <-m.s.steps.wake:
	case <-time.After(memberWaitMax):
		t.Fatal("what came in waits for no step")
	}
}

// A step follows what another server sends, whatever comes behind it.
func TestMessagesCauseAStep(t *testing.T) {
	m, _ := loneMember(t)
	c, far := learnerConn(t, m)
	var enc peer.Encoder
	ack, err := enc.AppendMessage(nil, &zab.Message{Kind: zab.MessageAck, Zxid: 1})
	require.NoError(t, err)
	long, err := enc.AppendMessage(nil, &zab.Message{Kind: zab.MessageProposal, Entries: []zab.Entry{{Zxid: 1, Payload: make([]byte, 1<<20)}}})
	require.NoError(t, err)
	for _, tt := range []struct {
		name   string
		packet []byte
	}{
		{"alone", ack},
		{"before a sign of life", peer.AppendKeepAlive(bytes.Clone(ack))},
		{"before a part of the next", append(bytes.Clone(ack), long[:60<<10]...)}, // the last one: the rest never comes
	} {
		stepDue(t, m, func() { _, err = far.Write(tt.packet) })
		require.NoError(t, err, tt.name)
		got := inputs(t, m, zab.InputMessage)
		require.Equal(t, zab.MessageAck, got[len(got)-1].Message.Kind, tt.name)
	}
	require.NotNil(t, m.conns.get(c.id))
}

// So does a vote.
func TestVotesCauseAStep(t *testing.T) {
	m, _ := loneMember(t)
	l := newLink(m, ensemble.Member{ID: 2})
	near, far := tcpPair(t)
	l.attach(near)
	inputs(t, m, zab.InputLinkUp)
	var enc peer.Encoder
	vote, err := enc.AppendMessage(nil, &zab.Message{Kind: zab.MessageNotification, Round: 1, Role: zab.RoleLooking})
	require.NoError(t, err)
	stepDue(t, m, func() { _, err = far.Write(vote) })
	require.NoError(t, err)
	inputs(t, m, zab.InputMessage)
}

// Who steps never writes what takes the disk or a long time: that is left to the writing goroutine.
func TestDirectWritesAreSmall(t *testing.T) {
	m, _ := loneMember(t)
	near, far := tcpPair(t)
	m.conns.beginRole(1)
	c := m.conns.add(m, near, 2, 1) // nobody serves it: nothing is written but directly
	require.NotNil(t, c)
	c.send(&zab.Message{Kind: zab.MessageCommit, Zxid: 1})
	require.True(t, c.writeDirect())
	f, err := peer.NewReader(far, peer.PurposeQuorum).Next()
	require.NoError(t, err)
	require.EqualValues(t, 1, f.Message.Zxid)
	for _, msg := range []*zab.Message{
		{Kind: zab.MessageSnap, Snapshot: zab.SnapshotFile{Zxid: 1, Name: "snapshot.1"}},
		{Kind: zab.MessageNewLeader},
		{Kind: zab.MessageAckEpoch},
		{Kind: zab.MessageProposal, Entries: []zab.Entry{{Zxid: 2, Payload: make([]byte, peerDirectBytesMax)}}},
	} {
		c.send(msg)
		require.False(t, c.writeDirect(), msg.Kind)
		queue, _, ok := c.take(false)
		require.True(t, ok)
		require.Len(t, queue, 1, msg.Kind)
	}
}

// What was sent before a connection is ended arrives; what comes in afterwards is not for this role any more.
func TestHangUpComesBehindWhatWasSent(t *testing.T) {
	m, _ := loneMember(t)
	c, far := learnerConn(t, m)
	for range 100 {
		m.conns.send(&zab.Message{Kind: zab.MessageCommit, Conn: c.id, Zxid: 1})
	}
	m.conns.hangUp(zab.Hangup{Conn: c.id, Why: "enough"}, "")
	m.conns.send(&zab.Message{Kind: zab.MessageCommit, Conn: c.id, Zxid: 2})
	r := peer.NewReader(far, peer.PurposeQuorum)
	for range 100 {
		f, err := r.Next()
		require.NoError(t, err)
		require.EqualValues(t, 1, f.Message.Zxid)
	}
	_, err := r.Next()
	require.ErrorIs(t, err, io.EOF)
	var enc peer.Encoder
	b, err := enc.AppendMessage(nil, &zab.Message{Kind: zab.MessageAck, Zxid: 1})
	require.NoError(t, err)
	_, err = far.Write(b)
	require.NoError(t, err)
	require.NoError(t, far.Close())
	require.Equal(t, []zab.InputKind{zab.InputConnected, zab.InputDisconnected}, kinds(inputs(t, m, zab.InputDisconnected)))
}

// A new role takes no connection that was made for an earlier one, and ends those that there are.
func TestConnectionsEndWithTheRole(t *testing.T) {
	m, _ := loneMember(t)
	_, far := learnerConn(t, m)
	m.conns.beginRole(2)
	_, err := peer.NewReader(far, peer.PurposeQuorum).Next()
	require.ErrorIs(t, err, io.EOF)
	near, _ := tcpPair(t)
	require.Nil(t, m.conns.add(m, near, 2, 1))
	require.NoError(t, far.Close())
	require.Equal(t, []zab.InputKind{zab.InputConnected, zab.InputDisconnected}, kinds(inputs(t, m, zab.InputDisconnected)))
}

// A learner that connects again has given its first connection up, whether this side has noticed or not.
func TestNewConnectionOfAPeerEndsTheOldOne(t *testing.T) {
	m, _ := loneMember(t)
	old, far := learnerConn(t, m)
	near, _ := tcpPair(t)
	c := m.conns.add(m, near, 2, 1)
	require.NotNil(t, c)
	require.NotEqual(t, old.id, c.id)
	_, err := peer.NewReader(far, peer.PurposeQuorum).Next()
	require.ErrorIs(t, err, io.EOF)
}

func TestOnlyTheNewestNotificationIsSent(t *testing.T) {
	m, _ := loneMember(t)
	l := newLink(m, ensemble.Member{ID: 2})
	for round := range uint64(5) {
		l.send(&zab.Message{Kind: zab.MessageNotification, Round: round})
	}
	near, far := tcpPair(t)
	l.attach(near)
	r := peer.NewReader(far, peer.PurposeElection)
	f, err := r.Next()
	require.NoError(t, err)
	require.EqualValues(t, 4, f.Message.Round)
	l.send(&zab.Message{Kind: zab.MessageNotification, Round: 9})
	f, err = r.Next()
	require.NoError(t, err)
	require.EqualValues(t, 9, f.Message.Round)

	// Another connection takes the place of this one, and the core hears of both in order.
	again, _ := tcpPair(t)
	l.attach(again)
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	l.current().nc.Close()
	want := []zab.InputKind{zab.InputLinkUp, zab.InputLinkDown, zab.InputLinkUp, zab.InputLinkDown}
	var got []zab.Input
	for len(got) < len(want) {
		got = append(got, inputs(t, m, zab.InputLinkDown)...)
	}
	require.Equal(t, want, kinds(got))
}

// A link whose peer says nothing at all any more is down.
func TestSilentLinkGoesDown(t *testing.T) {
	m, logs := loneMember(t)
	m.limits.quiet = 50 * time.Millisecond
	l := newLink(m, ensemble.Member{ID: 2})
	near, far := tcpPair(t)
	l.attach(near)
	require.Equal(t, []zab.InputKind{zab.InputLinkUp, zab.InputLinkDown}, kinds(inputs(t, m, zab.InputLinkDown)))
	require.Equal(t, 1, logs.FilterMessage("election link lost").Len())
	f, err := peer.NewReader(far, peer.PurposeElection).Next() // this side had said that it is there
	require.NoError(t, err)
	require.Equal(t, peer.KindKeepAlive, f.Kind)
}

// Readers wait while too much waits for a step, and are let go by the step or the end.
func TestMessagesAreBounded(t *testing.T) {
	var st stepper
	st.init()
	queued := make(chan int, 10)
	put := func(n int) {
		for i := range n {
			st.message(&zab.Message{}, inputBytesMax)
			queued <- i
		}
		close(queued)
	}
	go put(4)
	require.Equal(t, 0, <-queued)
	require.Equal(t, 1, <-queued)
	select {
	case <-queued:
		t.Fatal("a message was taken beyond the bound")
	case <-time.After(20 * time.Millisecond): // there is no sign of a goroutine that goes on waiting
	}
	require.Len(t, st.take(nil).inputs, 2)
	require.Equal(t, 2, <-queued)
	st.close()
	for range queued {
	}
	require.Len(t, st.take(nil).inputs, 2)
}

func TestJoinsSlowDownWhenTheyComeToNothing(t *testing.T) {
	var j joins
	require.Zero(t, j.begin())
	j.end()
	require.Equal(t, joinBackoffMin, j.begin())
	for range 20 {
		j.end()
	}
	require.Equal(t, joinPauseMax, j.begin())
	j.succeed()
	j.end()
	require.Zero(t, j.begin())
}

// What can be logged can be sent, or the server does not start.
func TestRecordSizeOfMembers(t *testing.T) {
	require.NoError(t, checkRecordSize(peer.EntryBytesMax))
	require.ErrorContains(t, checkRecordSize(peer.EntryBytesMax+1), "lower jute.maxbuffer")
}

// The identities that travel with a request are a part of what it takes.
func TestBytesOfARequest(t *testing.T) {
	bare := messageBytes(&zab.Message{Requests: make([]zab.Request, 1)})
	full := messageBytes(&zab.Message{Requests: []zab.Request{{Body: make([]byte, 10), Identities: []zab.Identity{{Scheme: "ip", ID: "1.2.3.4"}, {Scheme: "x", ID: "y"}}}}})
	require.Equal(t, bare+10+9+2, full)
}
