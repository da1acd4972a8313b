package wire

import (
	"zabra/jute"
	"zabra/zab/zxid"
)

// ConnectRequest is the first frame of a client; it has no header. It asks for a new session (SessionID 0) or for one
// that the client already has.
type ConnectRequest struct {
	// ProtocolVersion is ignored by servers.
	ProtocolVersion int32
	// LastZxidSeen is the highest zxid that the client has seen in a reply.
	LastZxidSeen zxid.Zxid
	// TimeoutMs is the session timeout that the client wishes, in milliseconds. Any value is allowed.
	TimeoutMs int32
	SessionID zxid.SessionID
	// Password may be nil or of any length when a new session is asked for.
	Password []byte
	// ReadOnly says that the client would go on with a server that is cut off from its ensemble.
	ReadOnly bool
	// HasReadOnly is false for clients that do not send ReadOnly: those of ZooKeeper 3.3 and before, and some in other
	// languages to this day. The answer to such a client must not have the field either.
	HasReadOnly bool
}

// Encode writes 45 bytes with a password of 16 and ReadOnly, 44 without ReadOnly.
func (r *ConnectRequest) Encode(e *jute.Encoder) {
	e.Int32(r.ProtocolVersion)
	e.Int64(int64(r.LastZxidSeen))
	e.Int32(r.TimeoutMs)
	e.Int64(int64(r.SessionID))
	e.Buffer(r.Password)
	encodeReadOnly(e, r.ReadOnly, r.HasReadOnly)
}

// Decode reads either form; what decides is whether anything is left behind the password.
func (r *ConnectRequest) Decode(d *jute.Decoder) {
	r.ProtocolVersion = d.Int32()
	r.LastZxidSeen = zxid.Zxid(d.Int64())
	r.TimeoutMs = d.Int32()
	r.SessionID = zxid.SessionID(d.Int64())
	r.Password = d.Buffer()
	r.ReadOnly, r.HasReadOnly = decodeReadOnly(d)
}

// ConnectResponse is the first frame of a server; it has no header. One with timeout and session id 0 tells the client
// that its session has expired.
type ConnectResponse struct {
	// ProtocolVersion is always 0.
	ProtocolVersion int32
	// TimeoutMs is the session timeout that holds, in milliseconds.
	TimeoutMs int32
	SessionID zxid.SessionID
	// Password is that of the session. Encode writes exactly PasswordBytes, because the C client reads a fixed number:
	// a shorter one is filled with zeros, so nil is the password of the answer "expired"; a longer one is cut.
	Password []byte
	// ReadOnly says that the server is read-only now. HasReadOnly is as in the request.
	ReadOnly    bool
	HasReadOnly bool
}

// Encode writes 37 bytes with ReadOnly, 36 without.
func (r *ConnectResponse) Encode(e *jute.Encoder) {
	var password [PasswordBytes]byte
	copy(password[:], r.Password)
	e.Int32(r.ProtocolVersion)
	e.Int32(r.TimeoutMs)
	e.Int64(int64(r.SessionID))
	e.Buffer(password[:])
	encodeReadOnly(e, r.ReadOnly, r.HasReadOnly)
}

// Decode reads either form; what decides is whether anything is left behind the password.
func (r *ConnectResponse) Decode(d *jute.Decoder) {
	r.ProtocolVersion = d.Int32()
	r.TimeoutMs = d.Int32()
	r.SessionID = zxid.SessionID(d.Int64())
	r.Password = d.Buffer()
	r.ReadOnly, r.HasReadOnly = decodeReadOnly(d)
}

func encodeReadOnly(e *jute.Encoder, readOnly, has bool) {
	if has {
		e.Bool(readOnly)
	}
}

func decodeReadOnly(d *jute.Decoder) (readOnly, has bool) {
	if d.Remaining() == 0 {
		return false, false
	}
	return d.Bool(), true
}
