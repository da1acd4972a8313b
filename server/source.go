package server

import (
	"cmp"
	"net"
	"slices"

	"zabra/server/admin"
	"zabra/server/replica"
	"zabra/session"
	"zabra/zab/zxid"
	"zabra/znode"
)

// traceMaskDefault is the mask that gtmk answers until stmk sets another. It is kept and shown, and switches nothing.
const traceMaskDefault = 306

// source shows the server to the commands of package admin.
type source struct{ s *Server }

// Serving implements [admin.Source].
func (v source) Serving() bool { return v.s.isServing() }

// ReadOnly implements [admin.Source]. A server that is cut off from its quorum serves nobody.
func (v source) ReadOnly() bool { return false }

// Server implements [admin.Source].
func (v source) Server() admin.Server {
	m := v.s.moment()
	return admin.Server{
		Version:  v.s.version,
		Latency:  admin.Latency{MinMs: m.stats.LatencyMinMs, MaxMs: m.stats.LatencyMaxMs, AvgMs: averageLatency(&m.stats)},
		Received: m.received(), Sent: m.sent(), Connections: m.connections, Outstanding: m.stats.Outstanding,
		Zxid: m.stats.LastZxid, Mode: v.s.mode(), Nodes: int(m.nodes()), Proposals: m.proposals(),
	}
}

// Connections implements [admin.Source].
func (v source) Connections() []admin.Connection {
	conns := v.s.conns.current()
	list := make([]admin.Connection, len(conns))
	for i, c := range conns {
		list[i] = c.info()
	}
	return list
}

// info describes the connection.
func (c *conn) info() admin.Connection {
	out := admin.Connection{Remote: c.remote, Interest: interestRead, Secure: c.tls.Load() != nil}
	rc := c.rc.Load()
	if rc == nil {
		if c.word.Load() {
			out.Interest, out.Received = interestNone, 1
		}
		return out
	}
	in := rc.Info()
	if busy, _ := c.out.state(); busy || rc.HasOutput() {
		out.Interest = interestRead | interestWrite
	}
	out.Queued, out.Received, out.Sent, out.SessionID = int64(in.Queued), in.Received, in.Sent, in.Session
	if in.HasOp {
		out.LastOp = in.LastOp.Info().Short
	}
	out.EstablishedMs, out.TimeoutMs = in.Opened.UnixMilli(), in.TimeoutMs
	out.LastCxid, out.HasCxid, out.LastZxid = in.LastCxid, in.HasCxid, in.LastZxid
	out.LastResponseMs, out.LastLatencyMs = in.LastRespMs, in.LastLatencyMs
	out.MinLatencyMs, out.AvgLatencyMs, out.MaxLatencyMs = in.MinMs, in.AvgMs, in.MaxMs
	return out
}

// What a connection waits for, in the bits of a Java selector.
const (
	interestNone  = 0
	interestRead  = 1
	interestWrite = 4
)

// Configuration implements [admin.Source].
func (v source) Configuration() admin.Configuration {
	s := v.s
	dirs := v.Dirs()
	conf := admin.Configuration{
		ClientPort: -1, SecureClientPort: -1, DataDir: s.snapshotDir(), DataDirBytes: dirs.DataBytes, DataLogDir: s.logDir(),
		DataLogBytes: dirs.LogBytes, TickTimeMs: int(s.cfg.TickTimeMs), MaxClientCnxns: s.live.Load().MaxClientCnxns,
		MinSessionMs: int(s.cfg.MinSessionTimeoutMs), MaxSessionMs: int(s.cfg.MaxSessionTimeoutMs), ListenBacklog: s.cfg.ClientPortListenBacklog,
	}
	if addr, ok := s.Addr().(*net.TCPAddr); ok {
		conf.ClientPort = addr.Port
	}
	if addr, ok := s.SecureAddr().(*net.TCPAddr); ok {
		conf.SecureClientPort = addr.Port
	}
	if s.member != nil {
		conf.ServerID, conf.Ensemble = int64(s.member.id), s.member.configuration()
	}
	return conf
}

// Environment implements [admin.Source].
func (v source) Environment() admin.Environment { return environment(v.s.version) }

// Dirs implements [admin.Source].
func (v source) Dirs() admin.Dirs {
	snap, log := v.s.store.Sizes()
	return admin.Dirs{DataBytes: snap, LogBytes: log}
}

// Dump implements [admin.Source]. The lists are taken one after the other, not at one moment.
func (v source) Dump() admin.Dump {
	d := admin.Dump{Ephemerals: v.ephemerals()}
	if st := v.s.mode(); st == admin.ModeFollower || st == admin.ModeObserver {
		d.Global, d.Learner = v.globalSessions(), true
		d.Connections = v.connectionExpiry(nil)
		return d
	}
	var buckets []session.Bucket
	if !v.s.onStep(func() { buckets = v.s.replica.SessionBuckets() }) {
		return d
	}
	deadlines := make(map[zxid.SessionID]int64)
	for _, b := range buckets {
		at := v.s.clock.wallMs(b.DeadlineMs)
		d.Sessions = append(d.Sessions, admin.SessionExpiry{AtMs: at, Sessions: b.Sessions})
		for _, id := range b.Sessions {
			deadlines[id] = at
		}
	}
	d.Connections = v.connectionExpiry(deadlines)
	return d
}

// globalSessions lists the sessions as a learner knows them.
func (v source) globalSessions() []admin.GlobalSession {
	var list []admin.GlobalSession
	tree := v.s.replica.Tree()
	tree.RLock(0)
	defer tree.RUnlock(0)
	tree.VisitSessions(func(id zxid.SessionID, timeoutMs int32) bool {
		list = append(list, admin.GlobalSession{Session: id, TimeoutMs: timeoutMs})
		return true
	})
	slices.SortFunc(list, func(a, b admin.GlobalSession) int { return cmp.Compare(a.Session, b.Session) })
	return list
}

// ephemerals lists the ephemeral nodes by owner.
func (v source) ephemerals() []admin.SessionPaths {
	var list []admin.SessionPaths
	tree := v.s.replica.Tree()
	tree.RLock(0)
	defer tree.RUnlock(0)
	tree.VisitSessions(func(id zxid.SessionID, _ int32) bool {
		var paths []string
		tree.VisitEphemerals(id, func(path []byte) bool {
			paths = append(paths, string(path))
			return true
		})
		if len(paths) > 0 {
			list = append(list, admin.SessionPaths{Session: id, Paths: paths})
		}
		return true
	})
	return list
}

// connectionExpiry groups the connections by the moment at which silence ends them: that of their session, or the
// timeout of those that have none.
func (v source) connectionExpiry(sessions map[zxid.SessionID]int64) []admin.ConnectionExpiry {
	byMs := make(map[int64][]admin.Connection)
	for _, c := range v.s.conns.current() {
		info := c.info()
		at, ok := sessions[info.SessionID]
		switch {
		case ok:
		case info.SessionID != 0: // the leader keeps track of it
			at = v.s.clock.wallMs(max(info.LastResponseMs, c.openMs)) + int64(info.TimeoutMs)
		default:
			at = v.s.clock.wallMs(c.openMs) + int64(v.s.live.Load().SessionlessTimeoutMs)
		}
		byMs[at] = append(byMs[at], info)
	}
	list := make([]admin.ConnectionExpiry, 0, len(byMs))
	for at, conns := range byMs {
		list = append(list, admin.ConnectionExpiry{AtMs: at, Connections: conns})
	}
	slices.SortFunc(list, func(a, b admin.ConnectionExpiry) int { return cmp.Compare(a.AtMs, b.AtMs) })
	return list
}

// WatchSummary implements [admin.Source].
func (v source) WatchSummary() admin.WatchSummary {
	connections, paths, watches := v.s.replica.Tree().Watches().Counts()
	return admin.WatchSummary{Connections: connections, Paths: paths, Watches: watches}
}

// WatchesBySession implements [admin.Source].
func (v source) WatchesBySession() []admin.SessionPaths {
	var list []admin.SessionPaths
	v.s.replica.Tree().Watches().VisitByWatcher(func(w znode.Watcher, paths []string) bool {
		list = append(list, admin.SessionPaths{Session: sessionOf(w), Paths: paths})
		return true
	})
	return list
}

// WatchesByPath implements [admin.Source].
func (v source) WatchesByPath() []admin.PathSessions {
	var list []admin.PathSessions
	v.s.replica.Tree().Watches().VisitByPath(func(path string, watchers []znode.Watcher) bool {
		entry := admin.PathSessions{Path: path}
		for _, w := range watchers {
			entry.Sessions = append(entry.Sessions, sessionOf(w))
		}
		list = append(list, entry)
		return true
	})
	return list
}

func sessionOf(w znode.Watcher) zxid.SessionID { return w.(*replica.Conn).SessionID() }

// Digests implements [admin.Source].
func (v source) Digests() []admin.Digest {
	var list []admin.Digest
	for _, d := range v.s.replica.Digests() {
		list = append(list, admin.Digest{Zxid: d.Zxid, Value: d.Digest})
	}
	return list
}

// Metrics implements [admin.Source].
func (v source) Metrics() admin.Metrics { return v.s.metrics() }

// TraceMask implements [admin.Source].
func (v source) TraceMask() int64 { return v.s.traceMask.Load() }

// SetTraceMask implements [admin.Source].
func (v source) SetTraceMask(mask int64) { v.s.traceMask.Store(mask) }

// ResetServer implements [admin.Source].
func (v source) ResetServer() {
	v.s.replica.ResetStats()
	v.s.store.ResetSlowSyncs()
	v.s.resetMetrics()
}

// ResetConnections implements [admin.Source].
func (v source) ResetConnections() { v.s.replica.VisitConns((*replica.Conn).ResetInfo) }
