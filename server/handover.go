package server

import (
	"context"
	"time"

	"zabra/zab"
)

// handOver gives this server's role back, so that the others need not find out that it is gone: a leader's followers, who
// have everything by now, elect another at once. The answers to this server's own clients go out before, since they are
// cut when the role ends. conns are their connections.
func (m *member) handOver(ctx context.Context, conns []*conn) {
	settled, cancel := context.WithTimeout(ctx, settleTime)
	for _, c := range conns {
		c.flush()
		c.finishWhenWritten()
	}
	for _, c := range conns {
		if c.out.awaitOver(settled) != nil {
			break
		}
	}
	cancel()
	limited, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	m.input(zab.Input{Kind: zab.InputResign})
	m.await(limited, func(st *zab.Status) bool { return st.Role == zab.RoleLooking })
	m.leaveElections()
	for m.conns.len() > 0 && sleep(limited, time.Millisecond) { // they are on their way to their end
	}
}
