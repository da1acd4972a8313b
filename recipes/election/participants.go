package election

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/recipes/lock"
)

// Participant is one who takes part in an election.
type Participant struct {
	// ID is what it calls itself.
	ID string
	// Leader tells that its turn has come. It may not know yet, or be gone already.
	Leader bool
	// Token is the fencing token of its term, the present one or the one that it waits for.
	Token int64
	// Session is the id of its session.
	Session int64
	// Path is that of its node, below the client's namespace.
	Path string
}

// Participants returns those who take part in the election at path, in the order in which their turn comes. One need not
// take part oneself. It asks the server, so it may differ from what a latch of this process knows, and by the time it
// returns it may have changed.
func Participants(ctx context.Context, c *recipes.Client, path string) ([]Participant, error) {
	line, err := lock.NewMutex(c, path, lock.Options{}).Participants(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Participant, len(line))
	for i, p := range line {
		list[i] = Participant{ID: string(p.Identity), Leader: i == 0, Token: p.Token, Session: p.Session, Path: p.Path}
	}
	return list, nil
}

// Leader returns the participant whose turn it is, or false if nobody takes part. As with Participants, one need not take
// part oneself, and it may have changed by the time it returns.
func Leader(ctx context.Context, c *recipes.Client, path string) (Participant, bool, error) {
	names, _, err := c.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return Participant{}, false, nil
	}
	if err != nil {
		return Participant{}, false, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return recipes.Sequence(name) < 0 })
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(recipes.Sequence(a), recipes.Sequence(b)) })
	for _, name := range names {
		node := path + "/" + name
		id, stat, err := c.Get(ctx, node)
		switch {
		case err == nil:
			return Participant{ID: string(id), Leader: true, Token: stat.Czxid, Session: stat.EphemeralOwner, Path: node}, true, nil
		case !errors.Is(err, zk.ErrNoNode):
			return Participant{}, false, err
		}
	}
	return Participant{}, false, nil
}
