package bench

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

// mirror is a poller whose only server answers what was written last.
type mirror struct {
	reply   []byte
	replies []byte
	written int
}

func (m *mirror) write(_ *session, b []byte) (int, error) {
	m.replies = m.replies[:0]
	for rest := b; len(rest) > 0; rest = rest[4+binary.BigEndian.Uint32(rest):] {
		at := len(m.replies)
		m.replies = append(m.replies, m.reply...)
		copy(m.replies[at+4:at+8], rest[4:8])
		m.written++
	}
	return len(b), nil
}

func (m *mirror) read(_ *session, b []byte) (int, error)    { return copy(b, m.replies), nil }
func (m *mirror) dial(*session, netip.AddrPort) error       { return nil }
func (m *mirror) dialled(*session) error                    { return nil }
func (m *mirror) cut(*session)                              {}
func (m *mirror) wait(time.Duration) (e []event, err error) { return nil, nil }
func (m *mirror) wake()                                     {}
func (m *mirror) close()                                    {}

// mirrored makes a thread with one session that keeps its requests outstanding at a mirror.
func mirrored(workload string) (*thread, *session, *mirror) {
	c := Default(workload)
	c.Sessions, c.Threads = 1, 1
	r := &run{Config: c, began: time.Now(), data: randomData(c.DataBytes, 1), perWrite: 1000}
	m := &mirror{reply: (&fake{}).reply((&wire.DataReply{Data: r.data}).Encode)}
	t := &thread{run: r, poll: m, in: make([]byte, readBytes), recorder: newRecorder(time.Second)}
	t.random = newRandom(1, 0)
	t.recorder.from, t.recorder.until = 0, never
	s := newSession(0, &c)
	s.state = stateReady
	t.sessions = []*session{s}
	w := &stream{thread: t, make: t.maker(), budget: &budget{total: never}, stopAt: never}
	t.work = w
	if _, err := w.turn(); err != nil {
		panic(err)
	}
	return t, s, m
}

// The loop that everything goes through takes no memory.
func TestNoAllocations(t *testing.T) {
	for _, workload := range []string{Get, Set, Mixed, Multi, Create} {
		thread, s, m := mirrored(workload)
		allocations := testing.AllocsPerRun(1000, func() {
			if err := thread.read(s, false); err != nil {
				t.Fatal(err)
			}
		})
		require.Zero(t, allocations, workload)
		require.Equal(t, m.written, int(thread.recorder.operations+thread.recorder.run.n)+thread.flying)
		require.Equal(t, 1002*16, m.written)
	}
}

// BenchmarkLoop measures what a request costs beside the system calls.
func BenchmarkLoop(b *testing.B) {
	for _, workload := range []string{Get, Set, Mixed} {
		b.Run(workload, func(b *testing.B) {
			thread, s, _ := mirrored(workload)
			b.ReportAllocs()
			for n := 0; n < b.N; n += 16 {
				if err := thread.read(s, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
