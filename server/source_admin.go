package server

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"zabra/server/admin"
	"zabra/zab"
	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// What the admin server shows beside the answers of the four-letter words.

// Detail implements [admin.Source].
func (v source) Detail() admin.Detail {
	m := v.s.moment()
	return admin.Detail{
		SlowSyncs:         int64(v.s.store.Stats().SyncsSlow),
		ResponseLastBytes: int64(m.stats.LastResponseBytes), ResponseMinBytes: int64(m.stats.MinResponseBytes),
		ResponseMaxBytes: int64(m.stats.MaxResponseBytes), UptimeMs: m.uptimeMs,
		AuthFailed: v.s.meter.authFailed.Load(), PlainRemote: v.s.meter.nonMTLSRemote.Load(), PlainLocal: v.s.meter.nonMTLSLocal.Load(),
	}
}

// InitialConfiguration implements [admin.Source].
func (v source) InitialConfiguration() string { return v.s.cfg.FileText }

// LastSnapshot implements [admin.Source].
func (v source) LastSnapshot() (admin.SnapshotFile, bool) {
	z, written, ok := v.s.store.NewestSnapshot()
	if !ok {
		return admin.SnapshotFile{}, false
	}
	return admin.SnapshotFile{Zxid: z, WrittenSec: max(written.Unix(), 0)}, true
}

// SystemProperties implements [admin.Source]: those of the configuration, and of the Java machine what comes closest here.
func (v source) SystemProperties() []admin.Property {
	var list []admin.Property
	for _, p := range environment(v.s.version) {
		if p.Value != notAvailable && isJavaProperty(p.Key) {
			list = append(list, p)
		}
	}
	for name, value := range v.s.live.Load().Properties() {
		list = append(list, admin.Property{Key: name, Value: value})
	}
	slices.SortFunc(list, func(a, b admin.Property) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// isJavaProperty picks what a Java machine calls a property out of what envi shows.
func isJavaProperty(name string) bool {
	return !strings.HasPrefix(name, "os.memory.") &&
		(strings.HasPrefix(name, "java.") || strings.HasPrefix(name, "os.") || strings.HasPrefix(name, "user."))
}

// Leader implements [admin.Source].
func (v source) Leader() (admin.Leader, bool) {
	if v.s.member == nil {
		return admin.Leader{}, false
	}
	st := v.s.member.status.Load()
	l := admin.Leader{IsThis: st.Role == zab.RoleLeading, ID: st.Leader}
	if leader, ok := v.s.member.config.Member(st.Leader); ok && len(leader.Addresses) > 0 {
		l.IP = lookUp(leader.Addresses[0].Host)
	}
	return l, true
}

// lookUp returns the address of a host, or the host itself if that is not found soon.
func lookUp(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminLookupTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return host
	}
	return addrs[0].Unmap().String()
}

// VotingView implements [admin.Source].
func (v source) VotingView() (list []admin.Member) {
	if v.s.member == nil {
		return nil
	}
	for _, m := range v.s.member.config.Members() {
		if m.Observer {
			continue
		}
		shown := shownMember(m)
		if m.ID == v.s.member.id {
			shown.Client = v.ownClient(shown.Client)
		}
		list = append(list, shown)
	}
	return list
}

func shownMember(m ensemble.Member) admin.Member {
	out := admin.Member{ID: m.ID, Observer: m.Observer}
	for _, a := range m.Addresses {
		out.Quorum = append(out.Quorum, admin.HostPort{Host: a.Host, Port: a.QuorumPort})
		out.Election = append(out.Election, admin.HostPort{Host: a.Host, Port: a.ElectionPort})
	}
	if m.ClientPort > 0 {
		out.Client = net.JoinHostPort(cmp.Or(m.ClientHost, "0.0.0.0"), strconv.Itoa(m.ClientPort))
	}
	return out
}

// ZabState implements [admin.Source].
func (v source) ZabState() (admin.ZabState, bool) {
	m := v.s.member
	if m == nil {
		return admin.ZabState{}, false
	}
	st := m.status.Load()
	z := admin.ZabState{Member: shownMember(m.self), IsLeader: st.Role == zab.RoleLeading, Phase: st.Phase.String(), Zxid: v.s.replica.Stats().LastZxid}
	z.Client = v.ownClient(z.Client)
	return z, true
}

// ownClient is where clients reach this server: what its server line says, or else where it listens.
func (v source) ownClient(line string) string {
	addr, ok := v.s.Addr().(*net.TCPAddr)
	if line != "" || !ok {
		return line
	}
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "0.0.0.0"
	}
	return net.JoinHostPort(host, strconv.Itoa(addr.Port))
}

// Observers implements [admin.Source].
func (v source) Observers() (synced int, list []admin.Observer) {
	m := v.s.member
	if m == nil {
		return 0, nil
	}
	st := m.status.Load()
	if st.Role != zab.RoleLeading {
		return 0, nil
	}
	m.visitObservers(func(c *quorumConn) { list = append(list, c.observer()) })
	slices.SortFunc(list, func(a, b admin.Observer) int { return cmp.Compare(a.ID, b.ID) })
	return st.SyncedObservers, list
}

// ResetObservers implements [admin.Source].
func (v source) ResetObservers() {
	if v.s.member != nil {
		v.s.member.visitObservers(func(c *quorumConn) { c.counts.reset() })
	}
}

// visitObservers calls f for each open connection with an observer.
func (m *member) visitObservers(f func(*quorumConn)) {
	m.conns.mu.Lock()
	defer m.conns.mu.Unlock()
	for _, c := range m.conns.open {
		if peer, ok := m.config.Member(c.peer); ok && peer.Observer {
			f(c)
		}
	}
}

// observer describes a connection with an observer.
func (c *quorumConn) observer() admin.Observer {
	o := admin.Observer{
		ID: c.peer, EstablishedMs: c.counts.establishedMs, Received: c.counts.received.Load(), Sent: c.counts.sent.Load(),
		Requests: c.counts.requests.Load(), LastZxid: zxid.Zxid(c.counts.zxid.Load()),
	}
	if addr, ok := c.nc.RemoteAddr().(*net.TCPAddr); ok {
		o.Remote = addr.AddrPort()
	}
	c.out.Lock()
	defer c.out.Unlock()
	o.Queued, o.QueuedBytes = len(c.out.queue), int64(c.out.bytes)
	return o
}
