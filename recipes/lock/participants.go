package lock

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// Participant is one who holds a lock or waits for it.
type Participant struct {
	// Path is that of the node, below the client's namespace; what Revoke takes.
	Path string
	// Identity is what the participant says of itself, empty if nothing or if it has been revoked.
	Identity []byte
	// Revoked tells that it has been asked to give up.
	Revoked bool
	// Session is the id of its session.
	Session int64
	// Token is the zxid at which its node was created: the fencing token, unless it is a reader by the grace of its own write
	// lock, whose token counts.
	Token int64
	// Reader tells that it shares the lock with other readers.
	Reader bool
	// Holder tells that it has the lock. Others wait.
	Holder bool
}

// participants reads the line.
func (l *line) participants(ctx context.Context) ([]Participant, error) {
	children, _, err := l.c.Children(ctx, l.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	line := order(children)
	var list []Participant
	for _, c := range line {
		p, err := l.participant(ctx, c.name)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_, waits := before(line, c)
		p.Reader, p.Holder = c.reader, !waits
		list = append(list, p)
	}
	return list, nil
}

// participant reads one node.
func (l *line) participant(ctx context.Context, name string) (Participant, error) {
	p := Participant{Path: l.path(name)}
	data, stat, err := l.c.Get(ctx, p.Path)
	if err != nil {
		return p, err
	}
	p.Session, p.Token = stat.EphemeralOwner, stat.Czxid
	if p.Revoked = bytes.Equal(data, revocation); !p.Revoked {
		p.Identity = data
	}
	return p, nil
}
