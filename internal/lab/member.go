package lab

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// member is a client of the line.
type member struct {
	name string
	link *link
	c    *recipes.Client
	contender
	// present is an ephemeral node that tells, to the lab only, when the ensemble has ended the session.
	present string

	// The rest is guarded by line.mu. release is nil until the lock is held, since acquired.
	release  func(context.Context) error
	acquired time.Time
	// mark is what had passed when the present row began. The line's goroutine has it for itself.
	mark linkCounts
}

// connect makes a client with a session.
func connect(ctx context.Context, c *Config, l *link) (*recipes.Client, error) {
	within := cmp.Or(c.connectTime, connectTimeMax)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no session within %v; "+
		"the server may admit no more connections from one address: see maxClientCnxns in its configuration", within))
	defer cancel()
	return recipes.Connect(ctx, []string{c.Server}, recipes.Options{SessionTimeout: c.SessionTimeout, Dial: l.dial})
}

// newMember connects one that does not wait yet.
func newMember(ctx context.Context, c *Config, names *places, name string, changed func()) (*member, error) {
	m := &member{name: name, link: newLink(changed), present: names.present(name)}
	var err error
	if m.c, err = connect(ctx, c, m.link); err != nil {
		return nil, err
	}
	m.contender = newContender(c.Mode, m.c, names.lock(), name)
	if _, err := m.c.Create(ctx, m.present, nil, zk.FlagEphemeral); err != nil {
		m.c.Close()
		return nil, err
	}
	return m, nil
}

// since is what has passed since the mark, and whether the member waits for an event.
func (m *member) since() (counts linkCounts, waits bool) {
	now, waits := m.link.state()
	return now.minus(m.mark), waits
}

func (m *member) setMark() { m.mark, _ = m.link.state() }

// places are the nodes of a run.
type places struct{ root string }

// lock is the node that the line is about: in the queue the parent of the waiters' nodes, for the herd the lock itself.
func (p *places) lock() string { return p.root + "/lock" }

func (p *places) presence() string           { return p.root + "/present" }
func (p *places) present(name string) string { return p.presence() + "/" + name }
