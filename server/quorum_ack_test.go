package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/server"
	"zabra/server/client"
	"zabra/wire"
)

const (
	ackMembers = 3
	// ackSessions are dealt out to the members; each has ackPipeline of its ackWrites writes in flight.
	ackSessions = 6
	ackPipeline = 16
	ackWrites   = 100
)

// ackMember is a member of an ensemble whose disk is watched from outside.
type ackMember struct {
	*server.Server
	disk   *vfs.Fault
	ledger *ledger
}

// quorumOfDisks is an ensemble, and what its clients were told too early.
type quorumOfDisks struct {
	t       *testing.T
	members []*ackMember

	mu       sync.Mutex
	answered int
	tooEarly []string
	failed   error
}

// freePorts returns ports of the loopback interface that were free a moment ago, from below the range that the system gives
// to outgoing connections.
func freePorts(t *testing.T, n int) (ports []int) {
	var held []net.Listener
	for len(ports) < n {
		port := 10_000 + rand.IntN(22_000)
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			held, ports = append(held, l), append(ports, port)
		}
	}
	for _, l := range held {
		require.NoError(t, l.Close())
	}
	return ports
}

// startQuorumOfDisks starts an ensemble in memory and returns when all members serve.
func startQuorumOfDisks(t *testing.T, more string) *quorumOfDisks {
	t.Helper()
	q := &quorumOfDisks{t: t}
	ports := freePorts(t, 2*ackMembers)
	var text strings.Builder
	fmt.Fprintf(&text, "tickTime=500\ninitLimit=20\nsyncLimit=8\nclientPort=2181\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n%s\n", more)
	for i := range ackMembers {
		fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[2*i], ports[2*i+1])
	}
	for i := range ackMembers {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(i+1)), 0o600))
		file := filepath.Join(dir, "zoo.cfg")
		require.NoError(t, os.WriteFile(file, []byte(text.String()+"dataDir="+filepath.ToSlash(dir)+"\n"), 0o600))
		cfg, err := conf.Load(file, nil)
		require.NoError(t, err)
		cfg.ClientPort = 0
		m := &ackMember{disk: vfs.NewFault(vfs.NewMem())}
		m.ledger = newLedger(m.disk)
		m.Server, err = server.New(cfg, server.Options{FS: m.ledger, Version: "test"})
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- m.Serve() }()
		t.Cleanup(func() {
			require.NoError(t, m.Close())
			require.ErrorIs(t, <-served, server.ErrServerClosed)
		})
		q.members = append(q.members, m)
	}
	for _, m := range q.members {
		until(t, "a member serves", func() bool { return m.Stats().Mode != "" })
	}
	return q
}

// slowSyncs makes every sync take time, in which writes gather.
func (q *quorumOfDisks) slowSyncs() {
	for _, m := range q.members {
		m.disk.Inject(func(op vfs.Op) error {
			if op.Kind == vfs.KindSyncData || op.Kind == vfs.KindSync {
				time.Sleep(time.Millisecond) // a disk takes its time
			}
			return nil
		})
	}
}

// run lets sessions on all members write at once, and looks at the disks with each answer.
func (q *quorumOfDisks) run() {
	ctx, cancel := context.WithTimeout(q.t.Context(), shellWaitMax)
	defer cancel()
	var writers sync.WaitGroup
	for i := range ackSessions {
		own := q.members[i%ackMembers]
		c, err := client.Dial(ctx, own.Addr().String(), client.Options{})
		require.NoError(q.t, err)
		defer c.Abandon()
		path := fmt.Sprintf("/session-%d", i)
		_, err = c.Create(ctx, path, nil, wire.OpenACL, 0)
		require.NoError(q.t, err)
		writers.Go(func() { q.write(c, own, path) })
	}
	writers.Wait()
	require.NoError(q.t, q.failed)
	require.Equal(q.t, ackSessions*ackWrites, q.answered)
}

func (q *quorumOfDisks) write(c *client.Client, own *ackMember, path string) {
	inFlight := make(chan struct{}, ackPipeline)
	for range ackWrites {
		inFlight <- struct{}{}
		set := &wire.SetDataRequest{Path: []byte(path), Data: make([]byte, 100), Version: -1}
		c.Send(wire.OpSetData, set, func(call *client.Call) {
			q.look(call, own)
			<-inFlight
		})
	}
	for range ackPipeline {
		inFlight <- struct{}{}
	}
}

// look compares an answer with what is certain on the disks: a sync that began after the transaction was written.
func (q *quorumOfDisks) look(call *client.Call, own *ackMember) {
	certain := 0
	for _, m := range q.members {
		if m.ledger.durable() >= call.Zxid {
			certain++
		}
	}
	ownHas := own.ledger.durable() >= call.Zxid
	q.mu.Lock()
	defer q.mu.Unlock()
	if call.Err != nil {
		q.failed = call.Err
		return
	}
	q.answered++
	if certain <= ackMembers/2 || !ownHas {
		q.tooEarly = append(q.tooEarly, fmt.Sprintf("%v was certain on %d disks, on that of the server that answered: %v", call.Zxid, certain, ownHas))
	}
}

// No answer to a write leaves an ensemble before the syncs that cover it have returned on a quorum, and on the server that
// answers. Many writes share a sync.
func TestNoAnswerBeforeTheSyncsOfAQuorum(t *testing.T) {
	q := startQuorumOfDisks(t, "")
	q.slowSyncs()
	var before [ackMembers]int
	for i, m := range q.members {
		before[i] = m.disk.Count(vfs.KindSyncData)
	}
	q.run()
	require.Empty(t, q.tooEarly)
	const writes = ackSessions * ackWrites
	for i, m := range q.members {
		syncs := m.disk.Count(vfs.KindSyncData) - before[i]
		t.Logf("%d writes, %d syncs by a %s", writes, syncs, m.Stats().Mode)
		require.Less(t, syncs, writes/2, "writes share syncs")
		require.GreaterOrEqual(t, syncs, ackWrites/ackPipeline, "a session's writes cannot all share one")
	}
}

// The check of that test can fail: it notices servers that do not sync.
func TestAnswersWithoutSyncsAreNoticed(t *testing.T) {
	q := startQuorumOfDisks(t, "forceSync=no")
	q.run()
	require.NotEmpty(t, q.tooEarly)
}
