package client

import (
	"context"
	"errors"
	"fmt"

	"zabra/jute"
	"zabra/wire"
)

// MultiError tells which operation of a multi made it fail. The error of a failed multi is one, and is its Code in the
// sense of errors.Is.
type MultiError struct {
	Index int
	Code  wire.Code
}

func (e *MultiError) Error() string {
	return fmt.Sprintf("operation %d of the multi: %v", e.Index, e.Code)
}

// Unwrap returns the code.
func (e *MultiError) Unwrap() error { return e.Code }

// Multi does all of the operations or none of them. If the server refused one, the results are returned as well as a
// *MultiError.
func (c *Client) Multi(ctx context.Context, ops ...wire.MultiOp) ([]wire.MultiResult, error) {
	results, err := c.multi(ctx, wire.OpMulti, ops)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if r.Op == wire.OpError && r.Err != wire.CodeOK && r.Err != wire.CodeRuntimeInconsistency {
			return results, &MultiError{Index: i, Code: r.Err}
		}
	}
	return results, nil
}

// MultiRead does several reads at once. Each has a result of its own, which may be an error.
func (c *Client) MultiRead(ctx context.Context, ops ...wire.MultiOp) ([]wire.MultiResult, error) {
	return c.multi(ctx, wire.OpMultiRead, ops)
}

var errMultiCount = errors.New("number of results differs from that of operations")

func (c *Client) multi(ctx context.Context, op wire.Op, ops []wire.MultiOp) ([]wire.MultiResult, error) {
	var reply multiReply
	if err := c.call(ctx, op, multiRequest(ops), &reply); err != nil {
		return nil, err
	}
	if len(reply.results) != len(ops) {
		return nil, fmt.Errorf("%w: %v: %w: %d, %d", ErrProtocol, op, errMultiCount, len(reply.results), len(ops))
	}
	return reply.results, nil
}

// MultiRequest makes a record of operations, for Go and Send. It can only be encoded.
func MultiRequest(ops ...wire.MultiOp) wire.Record { return multiRequest(ops) }

// MultiResults reads the body of the reply to a multi or multiRead.
func MultiResults(body []byte) ([]wire.MultiResult, error) {
	d := jute.NewDecoder(body, len(body))
	return wire.DecodeMultiResults(&d, nil)
}

type multiRequest []wire.MultiOp

func (r multiRequest) Encode(e *jute.Encoder) { wire.AppendMulti(e, r) }
func (r multiRequest) Decode(*jute.Decoder)   { panic("client: a multi request is never decoded here") }

type multiReply struct{ results []wire.MultiResult }

func (r *multiReply) Encode(e *jute.Encoder) { wire.AppendMultiResults(e, r.results) }

func (r *multiReply) Decode(d *jute.Decoder) {
	var err error
	if r.results, err = wire.DecodeMultiResults(d, nil); err != nil {
		d.Fail(err)
	}
}

// CreateOp is a create in a multi; flags as in Client.Create.
func CreateOp(path string, data []byte, acl []wire.ACL, flags int32) wire.MultiOp {
	return createOp(wire.OpCreate, path, data, acl, flags)
}

// Create2Op is a create in a multi whose result has the Stat.
func Create2Op(path string, data []byte, acl []wire.ACL, flags int32) wire.MultiOp {
	return createOp(wire.OpCreate2, path, data, acl, flags)
}

// CreateContainerOp is a createContainer in a multi.
func CreateContainerOp(path string, data []byte, acl []wire.ACL) wire.MultiOp {
	return createOp(wire.OpCreateContainer, path, data, acl, wire.FlagContainer)
}

// CreateTTLOp is a createTTL in a multi.
func CreateTTLOp(path string, data []byte, acl []wire.ACL, flags int32, ttlMs int64) wire.MultiOp {
	op := createOp(wire.OpCreateTTL, path, data, acl, flags)
	op.Create.TTL = ttlMs
	return op
}

func createOp(op wire.Op, path string, data []byte, acl []wire.ACL, flags int32) wire.MultiOp {
	return wire.MultiOp{Op: op, Create: wire.CreateTTLRequest{Path: []byte(path), Data: data, ACL: acl, Flags: flags}}
}

// DeleteOp is a delete in a multi.
func DeleteOp(path string, version int32) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpDelete, Path: []byte(path), Version: version}
}

// SetDataOp is a setData in a multi.
func SetDataOp(path string, data []byte, version int32) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpSetData, Path: []byte(path), Data: data, Version: version}
}

// CheckOp makes a multi fail unless the node has the version; -1 stands for any.
func CheckOp(path string, version int32) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpCheck, Path: []byte(path), Version: version}
}

// GetDataOp is a getData in a multiRead.
func GetDataOp(path string) wire.MultiOp { return wire.MultiOp{Op: wire.OpGetData, Path: []byte(path)} }

// GetChildrenOp is a getChildren in a multiRead.
func GetChildrenOp(path string) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpGetChildren, Path: []byte(path)}
}
