package wire

import (
	"errors"
	"fmt"

	"zabra/jute"
)

// MultiResult is the result of one operation of a multi or multiRead. It is a union: Op says which fields are used.
type MultiResult struct {
	// Op is OpCreate (Path), OpCreate2 (Path, Stat; the result of createContainer and createTTL too), OpDelete or OpCheck
	// (nothing), OpSetData (Stat), OpGetData (Data, Stat), OpGetChildren (Children), or OpError (Err).
	Op       Op
	Err      Code
	Path     []byte
	Stat     Stat
	Data     []byte
	Children [][]byte
}

var errMultiResult = errors.New("wire: result of an operation that a multi cannot have")

// AppendMultiResults writes the body of the reply to a multi or multiRead. Results of OpCreateContainer and OpCreateTTL
// are written as those of OpCreate2, as ZooKeeper does. An operation that a multi cannot hold is a bug of the caller, and
// panics.
func AppendMultiResults(e *jute.Encoder, results []MultiResult) {
	for i := range results {
		results[i].encode(e)
	}
	appendMultiEnd(e)
}

// DecodeMultiResults reads the body of a reply into the memory of results and returns the list, which aliases the
// decoder's input. After an error the list is empty.
func DecodeMultiResults(d *jute.Decoder, results []MultiResult) ([]MultiResult, error) {
	results = results[:0]
	for {
		var h MultiHeader
		h.Decode(d)
		if d.Err() != nil {
			return results[:0], fmt.Errorf("multi, result %d: %w", len(results), d.Err())
		}
		if h.Done {
			return results, nil
		}
		results = append(results, MultiResult{Op: h.Type})
		results[len(results)-1].decode(d)
		if d.Err() != nil {
			return results[:0], fmt.Errorf("multi, result %d (%v): %w", len(results)-1, h.Type, d.Err())
		}
	}
}

func (r *MultiResult) encode(e *jute.Encoder) {
	h := MultiHeader{Type: r.Op}
	switch r.Op {
	case OpCreateContainer, OpCreateTTL:
		h.Type = OpCreate2
	case OpError:
		h.Err = r.Err
	}
	h.Encode(e)
	switch h.Type {
	case OpCreate:
		e.UString(r.Path)
	case OpCreate2:
		e.UString(r.Path)
		r.Stat.Encode(e)
	case OpDelete, OpCheck:
	case OpSetData:
		r.Stat.Encode(e)
	case OpGetData:
		e.Buffer(r.Data)
		r.Stat.Encode(e)
	case OpGetChildren:
		encodeStrings(e, r.Children)
	case OpError:
		e.Int32(int32(r.Err))
	default:
		panic(fmt.Sprintf("wire: %v cannot be in the reply to a multi", r.Op))
	}
}

func (r *MultiResult) decode(d *jute.Decoder) {
	switch r.Op {
	case OpCreate:
		r.Path = d.UString()
	case OpCreate2:
		r.Path = d.UString()
		r.Stat.Decode(d)
	case OpDelete, OpCheck:
	case OpSetData:
		r.Stat.Decode(d)
	case OpGetData:
		r.Data = d.Buffer()
		r.Stat.Decode(d)
	case OpGetChildren:
		r.Children = decodeStrings(d, nil)
	case OpError:
		// The header has the code too; clients go by this one.
		r.Err = Code(d.Int32())
	default:
		d.Fail(errMultiResult)
	}
}
