package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"zabra/conf"
	"zabra/server/admin"
	"zabra/zab/zxid"
)

// The commands of the admin server that ZooKeeper does not have.

// adminCommands are those that only show something, or have the server do what it does by itself at other times.
func (s *Server) adminCommands() []admin.HTTPCommand {
	return []admin.HTTPCommand{
		{Name: "refusals", Down: admin.Work, Run: s.showRefusals, Purpose: "the last requests and connections that were refused, and why"},
		{Name: "digest", Run: s.showDigest, Purpose: "the digest of the data, to compare servers by; ?zxid= for one of those remembered"},
		{Name: "reload", Post: true, Down: admin.Work, Run: s.runReload, Purpose: "take up the configuration again, as SIGHUP does"},
		{Name: "purge", Post: true, Down: admin.Work, Run: s.runPurge, Purpose: "remove old snapshots and logs; ?count= says how many snapshots stay"},
	}
}

// field is one field of an answer.
func field(name string, value any) admin.Field { return admin.Field{Name: name, Value: value} }

// showRefusals lists the newest first. Texts that a client may have chosen are as in the log.
func (s *Server) showRefusals(admin.Source, *admin.Request) *admin.Response {
	list, total := s.refusals.recent.newest()
	shown := []admin.Object{}
	for i := range list {
		r := &list[i]
		o := admin.Object{
			field("time", s.clock.wallMs(r.nowMs)), field("count", r.count), field("kind", r.kind), field("remote_socket_address", r.remote.String()),
		}
		if r.session != 0 {
			o = append(o, field("session_id", r.session.String()))
		}
		if r.hasOp {
			o = append(o, field("operation", r.op.String()))
		}
		if r.path != "" {
			o = append(o, field("path", r.path))
		}
		if r.bytes > 0 {
			o = append(o, field("bytes", r.bytes))
		}
		if r.limit > 0 {
			o = append(o, field("limit", r.limit))
		}
		o = append(o, field("reason", r.why))
		if r.detail != "" {
			o = append(o, field("detail", r.detail))
		}
		shown = append(shown, o)
	}
	return &admin.Response{Fields: admin.Object{field("total", total), field("refusals", shown)}}
}

// showDigest shows zxids and digests as texts: JSON readers that round numbers would make different ones equal.
func (s *Server) showDigest(_ admin.Source, r *admin.Request) *admin.Response {
	if !s.cfg.DigestEnabled {
		return &admin.Response{Error: "digest.enabled is false: no digests are kept"}
	}
	tree := s.replica.Tree()
	tree.RLock(0)
	last, digest := tree.LastZxid(), tree.Digest()
	tree.RUnlock(0)
	remembered := s.replica.Digests()
	if r.Query.Has("zxid") {
		want, err := parseZxid(r.Query.Get("zxid"))
		if err != nil {
			return &admin.Response{Error: err.Error()}
		}
		for _, d := range remembered {
			if d.Zxid == want {
				return digestOf(want, d.Digest)
			}
		}
		if want != last {
			return &admin.Response{Error: fmt.Sprintf("no digest of %v is remembered; without the parameter zxid those that are get listed", want)}
		}
		return digestOf(last, digest)
	}
	resp := digestOf(last, digest)
	recent := []admin.Object{}
	for _, d := range remembered {
		recent = append(recent, digestOf(d.Zxid, d.Digest).Fields[:2])
	}
	resp.Fields = append(resp.Fields, field("recent", recent))
	return resp
}

func digestOf(z zxid.Zxid, digest uint64) *admin.Response {
	return &admin.Response{Fields: admin.Object{
		field("zxid", z.String()), field("digest", strconv.FormatUint(digest, 10)), field("digest_version", admin.DigestVersion),
	}}
}

// parseZxid reads a zxid as it is shown, or as a decimal number.
func parseZxid(text string) (zxid.Zxid, error) {
	if digits, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		if n, err := strconv.ParseUint(digits, 16, 64); err == nil {
			return zxid.Zxid(n), nil
		}
	} else if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return zxid.Zxid(n), nil
	}
	return 0, fmt.Errorf("%s is no zxid: write it as 0x1000000d2 or as a decimal number", printable(text))
}

// localOnly refuses what comes from another machine; nil lets it pass.
func localOnly(name string, r *admin.Request) *admin.Response {
	if r.FromThisMachine() {
		return nil
	}
	return &admin.Response{Status: http.StatusForbidden, Error: name + " is for programs on the machine of the server only: ask for it on the loopback interface"}
}

// Reloaded is what came of taking up the configuration again: what has changed, and what takes effect at a restart.
type Reloaded struct{ Taken, NeedRestart []conf.Change }

func (s *Server) runReload(_ admin.Source, r *admin.Request) *admin.Response {
	if refused := localOnly("reload", r); refused != nil {
		return refused
	}
	if s.reload == nil {
		return &admin.Response{Status: http.StatusNotImplemented, Error: "this server was started in a way that leaves nothing to load again"}
	}
	done, err := s.reload()
	if err != nil {
		return &admin.Response{Status: http.StatusInternalServerError, Error: "nothing has changed: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	return &admin.Response{Fields: admin.Object{field("taken", texts(done.Taken)), field("needs_restart", texts(done.NeedRestart))}}
}

func texts(changes []conf.Change) []string {
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = c.String()
	}
	return list
}

func (s *Server) runPurge(_ admin.Source, r *admin.Request) *admin.Response {
	if refused := localOnly("purge", r); refused != nil {
		return refused
	}
	retain := s.live.Load().AutopurgeSnapRetainCount
	if r.Query.Has("count") {
		n, err := strconv.Atoi(r.Query.Get("count"))
		if err != nil || n < snapRetainMin {
			return &admin.Response{Status: http.StatusBadRequest, Error: fmt.Sprintf("count is the number of snapshots that stay, %d at least", snapRetainMin)}
		}
		retain = n
	}
	before, _ := s.store.Snapshots()
	err := s.store.Purge(retain, s.verifySnapshot)
	after, _ := s.store.Snapshots()
	resp := &admin.Response{Fields: admin.Object{
		field("count", retain), field("snapshots_removed", max(len(before)-len(after), 0)), field("snapshots_left", len(after)),
	}}
	if err != nil {
		resp.Status, resp.Error = http.StatusInternalServerError, "not everything could be purged: "+err.Error()
	}
	return resp
}
