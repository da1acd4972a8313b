package group

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"zabra/recipes"
	"zabra/recipes/node"
)

// ErrID is an id that cannot be the name of a node.
var ErrID = errors.New("group: invalid id")

// Member is this process in a group. Its methods may be called from any goroutine.
type Member struct {
	node *node.Node
	id   string
}

// Join makes this process a member of the group at path, which is below the client's namespace. It returns at once and does
// not wait for the server; AwaitJoined does. The path is made when it is missing, as a container.
func Join(c *recipes.Client, path, id string, payload []byte) (*Member, error) {
	if id == "" || id == "." || id == ".." || strings.ContainsAny(id, "/\x00") {
		return nil, fmt.Errorf("%w: %q", ErrID, id)
	}
	n, err := node.Start(c, strings.TrimSuffix(path, "/")+"/"+id, payload, node.Options{})
	if err != nil {
		return nil, err
	}
	return &Member{node: n, id: id}, nil
}

// AwaitJoined waits until the group has had this member once, with its payload. It fails as node.AwaitCreated does.
func (m *Member) AwaitJoined(ctx context.Context) error {
	_, err := m.node.AwaitCreated(ctx)
	return err
}

// ID is the member's name in the group.
func (m *Member) ID() string { return m.id }

// Payload returns what was set last.
func (m *Member) Payload() []byte { return m.node.Data() }

// SetPayload changes the payload and waits until the group can see it. It fails as node.Set does: the group still gets it, as
// soon as possible.
func (m *Member) SetPayload(ctx context.Context, payload []byte) error {
	return m.node.Set(ctx, payload)
}

// Leave takes this process out of the group, in the background if need be. A second call does nothing.
func (m *Member) Leave() { m.node.Close() }
