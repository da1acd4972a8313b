package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
)

// audited renders records, one a line, and forgets them.
func (w *world) audited() (lines []string) {
	w.t.Helper()
	for _, rec := range w.audit {
		line := fmt.Sprintf("%v %s %d", rec.Op, rec.Path, rec.Result)
		if rec.HasFlags {
			line += fmt.Sprintf(" flags=%d", rec.Flags)
		}
		for _, id := range rec.IDs {
			line += " " + id.Scheme + ":" + id.ID
		}
		if rec.Remote.IsValid() {
			line += " from " + rec.Remote.String()
		}
		for _, e := range rec.ACL {
			line += fmt.Sprintf(" %s:%s:%d", e.Scheme, e.ID, e.Perms)
		}
		lines = append(lines, line)
	}
	w.audit = nil
	return lines
}

func withAudit(c *Config) { c.Audit = true }

const local = " ip:127.0.0.1 from 127.0.0.1"

// TestAuditOfWrites: each write with what came of it, and nothing else.
func TestAuditOfWrites(t *testing.T) {
	w := newWorld(t, withAudit)
	cl := w.connect()
	require.Empty(t, w.audited(), "a session is no change")
	cl.mustCreate("/a", wire.FlagPersistent)
	cl.mustCreate("/a/s-", wire.FlagEphemeralSequential)
	container := &wire.CreateRequest{Path: []byte("/c"), ACL: wire.OpenACL}
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreateContainer, container).Err)
	ttl := &wire.CreateTTLRequest{Path: []byte("/t"), ACL: wire.OpenACL, Flags: wire.FlagTTL, TTL: 7}
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreateTTL, ttl).Err)
	require.Equal(t, wire.CodeNodeExists, cl.call(wire.OpCreate2, create("/a")).Err)
	require.Equal(t, []string{
		"create /a 1 flags=0" + local,
		"create /a/s-0000000000 1 flags=3" + local,
		"createContainer /c 1 flags=4" + local,
		"createTTL /t 1 flags=5" + local,
		"create2 /a 2 flags=0" + local,
	}, w.audited())

	require.Equal(t, wire.CodeOK, cl.call(wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("u:p")}).Err)
	creator := []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}
	digest := cl.ids()[1]
	require.Equal(t, wire.CodeOK, cl.call(wire.OpSetACL, &wire.SetACLRequest{Path: []byte("/a"), ACL: creator, Version: -1}).Err)
	require.Equal(t, wire.CodeBadVersion, cl.call(wire.OpSetACL, &wire.SetACLRequest{Path: []byte("/a"), ACL: creator, Version: 9}).Err)
	require.Equal(t, wire.CodeOK, cl.call(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Version: -1}).Err)
	require.Equal(t, wire.CodeNotEmpty, cl.call(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/a"), Version: -1}).Err)
	require.Equal(t, wire.CodeOK, cl.call(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/t"), Version: -1}).Err)
	require.Equal(t, wire.CodeReconfigDisabled, cl.call(wire.OpReconfig, &wire.ReconfigRequest{ConfigID: -1}).Err)
	cl.call(wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/a")})
	both := " ip:127.0.0.1 " + digest.Scheme + ":" + digest.ID + " from 127.0.0.1"
	require.Equal(t, []string{
		"setACL /a 1" + both + fmt.Sprintf(" %s:%s:31", digest.Scheme, digest.ID),
		"setACL /a 2" + both + " auth::31",
		"setData /a 1" + both,
		"delete /a 2" + both,
		"delete /t 1" + both,
		"reconfig  2" + both,
	}, w.audited())
	require.Equal(t, cl.id, cl.c.SessionID())
}

func (cl *client) ids() []wire.ID { return *cl.c.ids.Load() }

// TestAuditOfMulti: what a multi has done is told one by one, a multi that has done nothing once.
func TestAuditOfMulti(t *testing.T) {
	w := newWorld(t, withAudit)
	cl := w.connect()
	op := func(op wire.Op, path string, flags int32) wire.MultiOp {
		return wire.MultiOp{Op: op, Path: []byte(path), Version: -1,
			Create: wire.CreateTTLRequest{Path: []byte(path), ACL: wire.OpenACL, Flags: flags}}
	}
	all := multi{op(wire.OpCreate, "/m", wire.FlagPersistent), op(wire.OpCheck, "/m", 0), op(wire.OpCreate, "/m/c", wire.FlagContainer),
		op(wire.OpCreate2, "/m/s", wire.FlagSequential), op(wire.OpSetData, "/m", 0), op(wire.OpDelete, "/m/c", 0)}
	require.Equal(t, wire.CodeOK, cl.call(wire.OpMulti, all).Err)
	cl.call(wire.OpMulti, multi{op(wire.OpCreate, "/n", 0), op(wire.OpDelete, "/none", 0)})
	require.Equal(t, wire.CodeOK, cl.call(wire.OpMulti, multi{}).Err)
	require.Equal(t, []string{
		"create /m 1 flags=0" + local,
		"createContainer /m/c 1 flags=4" + local,
		"create2 /m/s0000000001 1 flags=2" + local,
		"setData /m 1" + local,
		"delete /m/c 1" + local,
		"multi  2" + local,
	}, w.audited())
}

// TestAuditOfUnreadableWrites: they are told without what cannot be known.
func TestAuditOfUnreadableWrites(t *testing.T) {
	w := newWorld(t, withAudit)
	cl := w.connect()
	require.Equal(t, wire.CodeMarshalling, cl.call(wire.OpSetData, &wire.PathRequest{}).Err)
	require.Equal(t, []string{"setData  2" + local}, w.audited())
}

// TestAuditOfEndingSessions: ephemeral nodes go with a session that is closed, and with one that expires.
func TestAuditOfEndingSessions(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Audit = true
		c.BodylessCloseSession = true // what goes is not in the transaction
	})
	a, b := w.connect(), w.connect()
	a.mustCreate("/a1", wire.FlagEphemeral)
	a.mustCreate("/a2", wire.FlagEphemeral)
	b.mustCreate("/b", wire.FlagEphemeral)
	w.audited()
	a.send(wire.OpCloseSession, nil)
	w.settle()
	require.Equal(t, a.id, w.audit[0].Session)
	require.ElementsMatch(t, []string{"closeSession /a1 1", "closeSession /a2 1"}, w.audited())
	for range 20 {
		w.pass(500)
		w.settle()
	}
	require.Equal(t, b.id, w.audit[0].Session)
	require.Equal(t, []string{"closeSession /b 1"}, w.audited())
}

// TestAuditOfTheReaper: what the server deletes by itself.
func TestAuditOfTheReaper(t *testing.T) {
	w := newWorld(t, withAudit)
	cl := w.connectFor(10_000)
	ttl := &wire.CreateTTLRequest{Path: []byte("/t"), ACL: wire.OpenACL, Flags: wire.FlagTTL, TTL: 7}
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreateTTL, ttl).Err)
	w.audited()
	for range 10 {
		w.pass(9000)
		cl.exists("/")
	}
	w.settle()
	require.Equal(t, []string{"deleteContainer /t 1"}, w.audited())
}

// TestAuditOfClientsThatLeave: a write counts whether its client waits for the answer or not.
func TestAuditOfClientsThatLeave(t *testing.T) {
	w := newWorld(t, withAudit)
	before, within := w.connect(), w.connect()
	before.send(wire.OpCreate, create("/before"))
	before.c.Closed()
	within.send(wire.OpCreate, create("/within"))
	w.step()
	within.c.Closed()
	w.settle()
	require.ElementsMatch(t, []string{"create /before 1 flags=0" + local, "create /within 1 flags=0" + local}, w.audited())
	require.Empty(t, w.r.audit.inFlight)
}

// TestAuditSwitched: it begins with the writes that come after it was switched on, and costs nothing before.
func TestAuditSwitched(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	cl.mustCreate("/a", 0)
	cl.send(wire.OpCreate, create("/b"))
	w.step()
	w.r.SetAudit(true)
	w.settle()
	require.Empty(t, w.audited())
	cl.mustCreate("/c", 0)
	require.Equal(t, []string{"create /c 1 flags=0" + local}, w.audited())
	w.r.SetAudit(true)
	cl.send(wire.OpCreate, create("/d"))
	w.step()
	w.r.SetAudit(false)
	w.settle()
	require.Empty(t, w.audited())
	require.Nil(t, w.r.audit.inFlight)
}

// auditedFlock is an ensemble whose members all keep an audit log.
func auditedFlock(t *testing.T) *flock {
	f := newFlock(t, 0)
	for _, id := range f.ids {
		f.hosts[id].w.r.SetAudit(true)
	}
	return f
}

// TestAuditInAnEnsemble: a write is told where its client is, and nowhere else. What nobody has asked for is told by the leader.
func TestAuditInAnEnsemble(t *testing.T) {
	f := auditedFlock(t)
	learner, leader := f.learners()[0], f.leader()
	clients := map[*host]*client{}
	for _, h := range []*host{learner, leader} {
		cl := h.connect()
		cl.mustCreate("/e"+string('0'+rune(h.id)), wire.FlagEphemeral)
		require.Equal(t, wire.CodeNoNode, cl.call(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/none"), Version: -1}).Err)
		require.Equal(t, []string{"create /e" + string('0'+rune(h.id)) + " 1 flags=1" + local, "setData /none 2" + local}, h.w.audited())
		clients[h] = cl
	}
	cl := clients[learner]
	cl.send(wire.OpCloseSession, nil)
	f.settle()
	require.Equal(t, []string{"closeSession /e" + string('0'+rune(learner.id)) + " 1"}, learner.w.audited())
	clients[leader].c.Closed()
	f.wait(40 * testTickMs)
	for _, id := range f.ids {
		h := f.hosts[id]
		want := []string(nil)
		if h == leader {
			want = []string{"closeSession /e" + string('0'+rune(leader.id)) + " 1"}
		}
		require.Equal(t, want, h.w.audited(), "server %d", id)
	}
}

// TestAuditOfAnUnknownEnd: what is on its way when a role ends is told as that.
func TestAuditOfAnUnknownEnd(t *testing.T) {
	f := auditedFlock(t)
	h := f.learners()[0]
	cl := h.connect()
	h.link().holdLeader = true
	cl.send(wire.OpCreate, create("/first"))
	cl.send(wire.OpCreate, create("/second"))
	f.settle()
	require.Empty(t, h.w.audited())
	f.kill(f.leader().id)
	f.wait(20 * testTickMs)
	require.Equal(t, []string{"create /first 3 flags=0" + local, "create /second 3 flags=0" + local}, h.w.audited())
}

// TestAuditOfARefusal: a leader may make no transaction of what a learner has sent.
func TestAuditOfARefusal(t *testing.T) {
	w := newWorld(t, withAudit)
	w.r.audit.inFlight[writeKey{7, 8}] = auditedWrite{op: wire.OpDelete, session: zxid.SessionID(9), body: encode(&wire.PathVersionRequest{Path: []byte("/x")})}
	w.r.refused(&zab.Message{Owner: zab.Origin{Conn: 7, Seq: 8}})
	w.r.refused(&zab.Message{Owner: zab.Origin{Conn: 7, Seq: 8}})
	w.audit = w.r.out.Audit
	require.Equal(t, []string{"delete /x 2"}, w.audited())
}
