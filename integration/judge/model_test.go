//go:build linux

package judge

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// model is a key group, whose operations take effect one after the other. An operation is its own output.
var model = porcupine.Model{
	Init: func() any { return Group{} },
	Step: func(state, _, output any) (bool, any) {
		ok, next := state.(Group).Explains(output.(*Op))
		return ok, next
	},
	Equal:             func(a, b any) bool { return a.(Group) == b.(Group) },
	DescribeOperation: func(_, output any) string { return fmt.Sprint(output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// operations turns the writes and synced reads of a group into a history. A write with an open outcome never returns: it may take
// effect at any later time, and if it never did, it takes effect behind everything that was seen.
func operations(ops []*Op) []porcupine.Operation {
	end := int64(0)
	for _, op := range ops {
		end = max(end, op.Return)
	}
	var history []porcupine.Operation
	for _, op := range ops {
		if len(op.Write) == 0 && !op.Synced {
			continue
		}
		returned := op.Return
		if !op.Known {
			returned = end + 1
		}
		history = append(history, porcupine.Operation{ClientId: op.Worker, Input: op, Call: op.Call, Output: op, Return: returned})
	}
	return history
}
