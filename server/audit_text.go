package server

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"zabra/server/replica"
	"zabra/wire"
)

// The words of the audit log are ZooKeeper's.
const (
	auditServerStart = "serverStart"
	auditServerStop  = "serverStop"
	auditSuccess     = "success"
	auditFailure     = "failure"
	auditInvoked     = "invoked"
)

var auditResults = map[replica.AuditResult]string{
	replica.AuditSuccess: auditSuccess, replica.AuditFailure: auditFailure, replica.AuditInvoked: auditInvoked,
}

func auditOperation(op wire.Op) string {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return "create"
	case wire.OpDelete, wire.OpDeleteContainer:
		return "delete"
	case wire.OpSetData:
		return "setData"
	case wire.OpSetACL:
		return "setAcl"
	case wire.OpMulti:
		return "multiOperation"
	case wire.OpReconfig:
		return "reconfig"
	case wire.OpCloseSession:
		return "ephemeralZNodeDeletionOnSessionCloseOrExpire"
	}
	return op.String()
}

// auditKind names a kind of node; empty for flags that mean none.
func auditKind(flags int32) string {
	kinds := [...]string{
		wire.FlagPersistent: "persistent", wire.FlagEphemeral: "ephemeral", wire.FlagSequential: "persistent_sequential",
		wire.FlagEphemeralSequential: "ephemeral_sequential", wire.FlagContainer: "container",
		wire.FlagTTL: "persistent_with_ttl", wire.FlagTTLSequential: "persistent_sequential_with_ttl",
	}
	if flags < 0 || int(flags) >= len(kinds) {
		return ""
	}
	return kinds[flags]
}

// auditUser joins the names of a session's identities. A client may choose a name of the scheme digest as it likes, so a comma
// inside one is marked; those of certificates are full of commas, and somebody has signed them.
func auditUser(ids []wire.ClientInfo) string {
	var names []string
	for _, id := range ids {
		name := id.User
		switch {
		case name == "":
			name = id.Scheme
		case id.Scheme != "x509":
			name = strings.ReplaceAll(name, ",", `\,`)
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

// auditACL writes a list as scheme:id:permissions. The caller has taken passwords out.
func auditACL(list []wire.ACL) string {
	var entries []string
	for _, e := range list {
		entries = append(entries, e.Scheme+":"+e.ID+":"+permissions(e.Perms))
	}
	return strings.Join(entries, ",")
}

func permissions(perms int32) string {
	var text []byte
	for _, p := range []struct {
		bit    int32
		letter byte
	}{{wire.PermCreate, 'c'}, {wire.PermDelete, 'd'}, {wire.PermRead, 'r'}, {wire.PermWrite, 'w'}, {wire.PermAdmin, 'a'}} {
		if perms&p.bit != 0 {
			text = append(text, p.letter)
		}
	}
	return string(text)
}

// auditFields are the fields of one line; empty ones are left out.
type auditFields struct {
	session, user, ip, operation, znode, kind, acl, result string
}

// visit calls f for the fields that there are, in their order.
func (a *auditFields) visit(f func(key, value string)) {
	for _, field := range [...][2]string{
		{"session", a.session}, {"user", a.user}, {"ip", a.ip}, {"operation", a.operation},
		{"znode", a.znode}, {"znode_type", a.kind}, {"acl", a.acl}, {"result", a.result},
	} {
		if field[1] != "" {
			f(field[0], field[1])
		}
	}
}

// appendText writes the fields as ZooKeeper does, between tabs.
func (a *auditFields) appendText(b []byte) []byte {
	first := len(b)
	a.visit(func(key, value string) {
		if len(b) > first {
			b = append(b, '\t')
		}
		b = append(append(b, key...), '=')
		b = appendEscaped(b, value)
	})
	return b
}

// appendEscaped writes a value so that it ends with its field: what cannot be printed, and the backslash, become \t, \n, \\,
// \u0085 and the like.
func appendEscaped(b []byte, value string) []byte {
	for i, c := range value {
		switch {
		case c >= ' ' && c <= '~' && c != '\\':
			b = append(b, byte(c))
		case c == utf8.RuneError && !strings.HasPrefix(value[i:], "\uFFFD"):
			b = append(b, `\x`...)
			b = append(b, "0123456789abcdef"[value[i]>>4], "0123456789abcdef"[value[i]&15])
		default:
			b = append(b, strings.Trim(strconv.Quote(string(c)), `"`)...)
		}
	}
	return b
}

// appendJSON writes the fields as one line of JSON.
func (a *auditFields) appendJSON(b []byte, wallMs int64) []byte {
	b = append(b, `{"time":"`...)
	b = time.UnixMilli(wallMs).AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	b = append(b, '"')
	a.visit(func(key, value string) {
		b = append(append(append(b, `,"`...), key...), `":`...)
		text, _ := json.Marshal(value) // a string always can be
		b = append(b, text...)
	})
	return append(b, "}\n"...)
}

// zap are the fields for the server's log.
func (a *auditFields) zap() (list []zap.Field) {
	a.visit(func(key, value string) { list = append(list, zap.String(key, value)) })
	return list
}
