package client

import (
	"context"

	"zabra/jute"
	"zabra/wire"
)

// The operations. Each waits for its reply. Errors of the server are returned as a wire.Code that is not wrapped; those
// of a lost connection are wire.CodeConnectionLoss in the sense of errors.Is. When a context ends, the request is not
// taken back.

// Create makes a node of the kind that flags names (wire.FlagEphemeral, ...) and returns its path, which has a number at
// its end for the sequential kinds.
func (c *Client) Create(ctx context.Context, path string, data []byte, acl []wire.ACL, flags int32) (string, error) {
	var reply wire.PathReply
	req := wire.CreateRequest{Path: []byte(path), Data: data, ACL: acl, Flags: flags}
	err := c.call(ctx, wire.OpCreate, &req, &reply)
	return string(reply.Path), err
}

// Create2 is Create with the new node's Stat.
func (c *Client) Create2(ctx context.Context, path string, data []byte, acl []wire.ACL, flags int32) (string, wire.Stat, error) {
	req := wire.CreateRequest{Path: []byte(path), Data: data, ACL: acl, Flags: flags}
	return c.create(ctx, wire.OpCreate2, &req)
}

// CreateContainer makes a node that the server removes some time after its last child is gone.
func (c *Client) CreateContainer(ctx context.Context, path string, data []byte, acl []wire.ACL) (string, wire.Stat, error) {
	req := wire.CreateRequest{Path: []byte(path), Data: data, ACL: acl, Flags: wire.FlagContainer}
	return c.create(ctx, wire.OpCreateContainer, &req)
}

// CreateTTL makes a node that the server removes when it was not changed for ttlMs milliseconds and has no children.
// Flags is wire.FlagTTL or wire.FlagTTLSequential.
func (c *Client) CreateTTL(ctx context.Context, path string, data []byte, acl []wire.ACL, flags int32, ttlMs int64) (string, wire.Stat, error) {
	req := wire.CreateTTLRequest{Path: []byte(path), Data: data, ACL: acl, Flags: flags, TTL: ttlMs}
	return c.create(ctx, wire.OpCreateTTL, &req)
}

func (c *Client) create(ctx context.Context, op wire.Op, req wire.Record) (string, wire.Stat, error) {
	var reply wire.CreateReply
	err := c.call(ctx, op, req, &reply)
	return string(reply.Path), reply.Stat, err
}

// Delete removes a node that has the version; -1 stands for any.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	return c.call(ctx, wire.OpDelete, &wire.PathVersionRequest{Path: []byte(path), Version: version}, nil)
}

// Exists returns a node's Stat. If there is no node, the error is wire.CodeNoNode, and a watch is set all the same.
func (c *Client) Exists(ctx context.Context, path string, watch bool) (wire.Stat, error) {
	var reply wire.Stat
	err := c.call(ctx, wire.OpExists, &wire.PathWatchRequest{Path: []byte(path), Watch: watch}, &reply)
	return reply, err
}

// GetData returns a node's data, nil if it is null, and Stat.
func (c *Client) GetData(ctx context.Context, path string, watch bool) ([]byte, wire.Stat, error) {
	var reply wire.DataReply
	err := c.call(ctx, wire.OpGetData, &wire.PathWatchRequest{Path: []byte(path), Watch: watch}, &reply)
	return reply.Data, reply.Stat, err
}

// SetData changes the data of a node that has the version; -1 stands for any.
func (c *Client) SetData(ctx context.Context, path string, data []byte, version int32) (wire.Stat, error) {
	var reply wire.Stat
	err := c.call(ctx, wire.OpSetData, &wire.SetDataRequest{Path: []byte(path), Data: data, Version: version}, &reply)
	return reply, err
}

// GetACL returns a node's access control list and Stat.
func (c *Client) GetACL(ctx context.Context, path string) ([]wire.ACL, wire.Stat, error) {
	var reply wire.ACLReply
	err := c.call(ctx, wire.OpGetACL, &wire.PathRequest{Path: []byte(path)}, &reply)
	return reply.ACL, reply.Stat, err
}

// SetACL replaces the access control list of a node whose ACL has the version; -1 stands for any.
func (c *Client) SetACL(ctx context.Context, path string, acl []wire.ACL, version int32) (wire.Stat, error) {
	var reply wire.Stat
	err := c.call(ctx, wire.OpSetACL, &wire.SetACLRequest{Path: []byte(path), ACL: acl, Version: version}, &reply)
	return reply, err
}

// GetChildren returns the names of a node's children.
func (c *Client) GetChildren(ctx context.Context, path string, watch bool) ([]string, error) {
	var reply wire.ChildrenReply
	err := c.call(ctx, wire.OpGetChildren, &wire.PathWatchRequest{Path: []byte(path), Watch: watch}, &reply)
	return texts(reply.Children), err
}

// GetChildren2 is GetChildren with the node's Stat.
func (c *Client) GetChildren2(ctx context.Context, path string, watch bool) ([]string, wire.Stat, error) {
	var reply wire.Children2Reply
	err := c.call(ctx, wire.OpGetChildren2, &wire.PathWatchRequest{Path: []byte(path), Watch: watch}, &reply)
	return texts(reply.Children), reply.Stat, err
}

// GetAllChildrenNumber counts a node's descendants.
func (c *Client) GetAllChildrenNumber(ctx context.Context, path string) (int, error) {
	var reply wire.CountReply
	err := c.call(ctx, wire.OpGetAllChildrenNumber, &wire.PathRequest{Path: []byte(path)}, &reply)
	return int(reply.Total), err
}

// GetEphemerals returns the paths of the session's own ephemeral nodes that begin with prefix.
func (c *Client) GetEphemerals(ctx context.Context, prefix string) ([]string, error) {
	var reply wire.ChildrenReply
	err := c.call(ctx, wire.OpGetEphemerals, &wire.PathRequest{Path: []byte(prefix)}, &reply)
	return texts(reply.Children), err
}

// Sync returns when the server has seen everything that was committed before. The reply's path is that of the request.
func (c *Client) Sync(ctx context.Context, path string) (string, error) {
	var reply wire.PathReply
	err := c.call(ctx, wire.OpSync, &wire.PathRequest{Path: []byte(path)}, &reply)
	return string(reply.Path), err
}

// AddWatch sets a persistent watch: mode is wire.AddWatchPersistent or wire.AddWatchPersistentRecursive.
func (c *Client) AddWatch(ctx context.Context, path string, mode int32) error {
	var reply wire.ErrorReply
	err := c.call(ctx, wire.OpAddWatch, &wire.AddWatchRequest{Path: []byte(path), Mode: mode}, &reply)
	if err == nil {
		err = reply.Err.Err()
	}
	return err
}

// CheckWatches returns wire.CodeNoWatcher if there is no watch of the type (wire.WatchTypeData, ...) on the path.
func (c *Client) CheckWatches(ctx context.Context, path string, watchType int32) error {
	return c.call(ctx, wire.OpCheckWatches, &wire.WatchTypeRequest{Path: []byte(path), Type: watchType}, nil)
}

// RemoveWatches removes the watches of the type (wire.WatchTypeData, ...) on the path.
func (c *Client) RemoveWatches(ctx context.Context, path string, watchType int32) error {
	return c.call(ctx, wire.OpRemoveWatches, &wire.WatchTypeRequest{Path: []byte(path), Type: watchType}, nil)
}

// SetWatches sets the data, exist and child watches of an earlier connection again. Events that were missed come before
// it returns.
func (c *Client) SetWatches(ctx context.Context, watches *wire.SetWatchesRequest) error {
	return c.call(ctx, wire.OpSetWatches, setWatchesV1{watches}, nil)
}

// SetWatches2 is SetWatches for all five kinds of watches.
func (c *Client) SetWatches2(ctx context.Context, watches *wire.SetWatchesRequest) error {
	return c.call(ctx, wire.OpSetWatches2, watches, nil)
}

type setWatchesV1 struct{ *wire.SetWatchesRequest }

func (r setWatchesV1) Encode(e *jute.Encoder) { r.EncodeV1(e) }
func (r setWatchesV1) Decode(d *jute.Decoder) { r.DecodeV1(d) }

// AddAuth gives the connection a further identity. If the server refuses, it closes the connection as well.
func (c *Client) AddAuth(ctx context.Context, scheme string, auth []byte) error {
	return c.call(ctx, wire.OpAuth, &wire.AuthRequest{Scheme: []byte(scheme), Auth: auth}, nil)
}

// SASL sends one token of a SASL exchange and returns the server's next one. What the tokens mean is up to the caller.
func (c *Client) SASL(ctx context.Context, token []byte) ([]byte, error) {
	var reply wire.SASLRequest
	err := c.call(ctx, wire.OpSASL, &wire.SASLRequest{Token: token}, &reply)
	return reply.Token, err
}

// WhoAmI returns the connection's identities.
func (c *Client) WhoAmI(ctx context.Context) ([]wire.ClientInfo, error) {
	var reply wire.WhoAmIReply
	err := c.call(ctx, wire.OpWhoAmI, nil, &reply)
	return reply.Clients, err
}

// Reconfig changes the ensemble and returns the new configuration and the Stat of its node.
func (c *Client) Reconfig(ctx context.Context, req *wire.ReconfigRequest) ([]byte, wire.Stat, error) {
	var reply wire.DataReply
	err := c.call(ctx, wire.OpReconfig, req, &reply)
	return reply.Data, reply.Stat, err
}

// Ping waits for the answer to a ping, which comes after those to all earlier requests.
func (c *Client) Ping(ctx context.Context) error { return c.call(ctx, wire.OpPing, nil, nil) }

func texts(v [][]byte) []string {
	if v == nil {
		return nil
	}
	out := make([]string, len(v))
	for i, b := range v {
		out[i] = string(b)
	}
	return out
}
