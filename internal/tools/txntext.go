package tools

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// logTxn is a decoded record of a log.
type logTxn struct {
	head   znode.TxnHeader
	body   znode.Txn
	digest znode.Digest
	// hasDigest tells that there is one; raw is the payload.
	hasDigest bool
	raw       []byte
}

func decodeLogTxn(payload []byte) (*logTxn, error) {
	t := &logTxn{raw: payload}
	var err error
	t.digest, t.hasDigest, err = znode.DecodeTxn(payload, fieldBytesMax, &t.head, &t.body)
	return t, err
}

// line is the record as ZooKeeper's log tool prints it, without the line's end.
func (t *logTxn) line(o Output) string {
	return fmt.Sprintf("%s session 0x%x cxid 0x%x zxid 0x%x %s %s", o.at(t.head.Time, layoutRecord), uint64(t.head.ClientID),
		uint64(int64(t.head.Cxid)), uint64(t.head.Zxid), opName(t.head.Type), t.text())
}

// opName is the name of a transaction's type.
func opName(op wire.Op) string {
	if !op.Known() {
		return "unknown " + strconv.Itoa(int(op))
	}
	return op.String()
}

// text is the body. Creates and changes of data are printed field by field; for all else ZooKeeper prints its generic form
// of a record, in which strings begin with a quote.
func (t *logTxn) text() string {
	b := &t.body
	switch t.head.Type {
	case wire.OpCreate, wire.OpCreate2:
		return fmt.Sprintf("%s,%s,%s,%t,%d", b.Path, javaText(b.Data), aclText(b.ACL), b.Ephemeral, b.ParentCVersion)
	case wire.OpCreateContainer:
		return fmt.Sprintf("%s,%s,%s,%d", b.Path, javaText(b.Data), aclText(b.ACL), b.ParentCVersion)
	case wire.OpCreateTTL:
		return fmt.Sprintf("%s,%s,%s,%d,%d", b.Path, javaText(b.Data), aclText(b.ACL), b.ParentCVersion, b.TTL)
	case wire.OpSetData, wire.OpReconfig:
		return fmt.Sprintf("%s,%s,%d", b.Path, javaText(b.Data), b.Version)
	case wire.OpDelete, wire.OpDeleteContainer:
		return csvText(b.Path)
	case wire.OpSetACL:
		return fmt.Sprintf("%s,%s,%d", csvText(b.Path), csvACL(b.ACL), b.Version)
	case wire.OpError:
		return strconv.Itoa(int(b.Err))
	case wire.OpCreateSession:
		return strconv.Itoa(int(b.Timeout))
	case wire.OpCloseSession:
		return closeText(b)
	case wire.OpMulti:
		return multiText(t.raw)
	}
	return ""
}

func closeText(b *znode.Txn) string {
	if !b.HasPaths {
		return ""
	}
	paths := make([]string, len(b.Paths))
	for i, p := range b.Paths {
		paths[i] = csvText(p)
	}
	return "v{" + strings.Join(paths, ",") + "}"
}

// multiText prints each operation's type and its undecoded bytes, as ZooKeeper does.
func multiText(payload []byte) string {
	const headerBytes = 32
	d := jute.NewDecoder(payload[min(len(payload), headerBytes):], fieldBytesMax)
	n, _ := d.Vector(8)
	var ops []string
	for range n {
		op, body := wire.Op(d.Int32()), d.Buffer()
		if d.Err() != nil {
			break
		}
		ops = append(ops, opName(op)+":"+javaText(body))
	}
	return strings.Join(ops, ";")
}

// javaText takes bytes for UTF-8 as Java does: what is malformed is replaced, in the same places.
func javaText(b []byte) string {
	field := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	d := jute.NewDecoder(field, len(b)+1)
	return string(d.UString())
}

// aclText is an ACL as the fields of a create are printed, each entry with a line's end.
func aclText(acl []wire.ACL) string {
	if acl == nil {
		return "null"
	}
	entries := make([]string, len(acl))
	for i, a := range acl {
		entries[i] = fmt.Sprintf("%d,s{%s,%s}\n", a.Perms, csvID(a.Scheme, a.NullScheme), csvID(a.ID, a.NullID))
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

// csvACL is an ACL in the generic form.
func csvACL(acl []wire.ACL) string {
	entries := make([]string, len(acl))
	for i, a := range acl {
		entries[i] = fmt.Sprintf("s{%d,s{%s,%s}}", a.Perms, csvID(a.Scheme, a.NullScheme), csvID(a.ID, a.NullID))
	}
	return "v{" + strings.Join(entries, ",") + "}"
}

func csvID(s string, null bool) string {
	if null {
		return ""
	}
	return csvText([]byte(s))
}

// csvEscapes are the characters that would break the generic form.
var csvEscapes = strings.NewReplacer("\x00", "%00", "\n", "%0A", "\r", "%0D", ",", "%2C", "}", "%7D", "%", "%25")

// csvText is a string in the generic form; a null one is empty.
func csvText(s []byte) string {
	if s == nil {
		return ""
	}
	return "'" + csvEscapes.Replace(string(s))
}

// jsonACL is an entry of an ACL in JSON.
type jsonACL struct {
	Perms  int32  `json:"perms"`
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// jsonTxn is a record of a log in JSON, or an operation of a multi, which has the body's fields only. Data are base64, null
// if they are null.
type jsonTxn struct {
	File    string `json:"file,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Zxid    string `json:"zxid,omitempty"`
	Time    string `json:"time,omitempty"`
	Session string `json:"session,omitempty"`
	Cxid    *int32 `json:"cxid,omitempty"`
	Type    string `json:"type"`

	Path           string     `json:"path,omitempty"`
	Data           *[]byte    `json:"data,omitempty"`
	ACL            []jsonACL  `json:"acl,omitempty"`
	Ephemeral      bool       `json:"ephemeral,omitempty"`
	ParentCVersion *int32     `json:"parentCversion,omitempty"`
	TTL            int64      `json:"ttlMs,omitempty"`
	Version        *int32     `json:"version,omitempty"`
	Err            *wire.Code `json:"err,omitempty"`
	Timeout        *int32     `json:"timeoutMs,omitempty"`
	Paths          []string   `json:"paths,omitempty"`
	Ops            []*jsonTxn `json:"ops,omitempty"`
	Digest         string     `json:"digest,omitempty"`
	// Fault says what is wrong with the record; empty if nothing is.
	Fault string `json:"fault,omitempty"`
}

// json is the record with all that is known of it.
func (t *logTxn) json(o Output, file string, offset int64) *jsonTxn {
	j := bodyJSON(&t.body)
	j.File, j.Offset, j.Zxid, j.Type = file, &offset, t.head.Zxid.String(), opName(t.head.Type)
	j.Time, j.Session, j.Cxid = o.iso(t.head.Time), zxid.SessionID(t.head.ClientID).String(), &t.head.Cxid
	if t.hasDigest {
		j.Digest = strconv.FormatUint(t.digest.Value, 10)
	}
	return j
}

func bodyJSON(b *znode.Txn) *jsonTxn {
	j := &jsonTxn{Type: opName(b.Type), Path: string(b.Path), Ephemeral: b.Ephemeral, TTL: b.TTL}
	switch b.Type {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		j.Data, j.ACL, j.ParentCVersion = &b.Data, jsonACLs(b.ACL), &b.ParentCVersion
	case wire.OpSetData, wire.OpReconfig:
		j.Data, j.Version = &b.Data, &b.Version
	case wire.OpSetACL:
		j.ACL, j.Version = jsonACLs(b.ACL), &b.Version
	case wire.OpCheck:
		j.Version = &b.Version
	case wire.OpError:
		j.Err = &b.Err
	case wire.OpCreateSession:
		j.Timeout = &b.Timeout
	}
	for _, p := range b.Paths {
		j.Paths = append(j.Paths, string(p))
	}
	for i := range b.Multi {
		j.Ops = append(j.Ops, bodyJSON(&b.Multi[i]))
	}
	return j
}

func jsonACLs(acl []wire.ACL) []jsonACL {
	list := make([]jsonACL, len(acl))
	for i, a := range acl {
		list[i] = jsonACL{Perms: a.Perms, Scheme: a.Scheme, ID: a.ID}
	}
	return list
}
