package replica

import (
	"zabra/jute"
	"zabra/wire"
)

func encode(r wire.Record) []byte {
	var e jute.Encoder
	r.Encode(&e)
	return e.Bytes()
}

// multi is the record of a multi request.
type multi []wire.MultiOp

func (m multi) Encode(e *jute.Encoder) { wire.AppendMulti(e, m) }
func (m multi) Decode(*jute.Decoder)   { panic("requests are not decoded here") }

// multiResults is the record of its reply.
type multiResults []wire.MultiResult

func (m *multiResults) Encode(*jute.Encoder) { panic("replies are not encoded here") }
func (m *multiResults) Decode(d *jute.Decoder) {
	*m, _ = wire.DecodeMultiResults(d, nil)
}
