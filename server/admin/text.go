package admin

import (
	"math"
	"net/netip"
	"strconv"
	"time"
)

// Text is an answer that is nothing but text.
type Text string

// AppendText implements [Answer].
func (t Text) AppendText(b []byte) []byte { return append(b, t...) }

// TraceMaskAnswer is the answer of gtmk and stmk. It has no line break.
type TraceMaskAnswer int64

// AppendText implements [Answer].
func (m TraceMaskAnswer) AppendText(b []byte) []byte { return strconv.AppendInt(b, int64(m), 10) }

// ServerAnswer is the answer of srvr and, with the clients, of stat.
type ServerAnswer struct {
	Server      Server
	Clients     []Connection
	WithClients bool
}

// AppendText implements [Answer].
func (a ServerAnswer) AppendText(b []byte) []byte {
	s := &a.Server
	b = append(b, "Zookeeper version: "...)
	b = append(b, s.Version...)
	b = append(b, '\n')
	if s.ReadOnly {
		b = append(b, "READ-ONLY mode; serving only read-only clients\n"...)
	}
	if a.WithClients {
		b = append(b, "Clients:\n"...)
		for i := range a.Clients {
			b = appendBriefConnection(b, &a.Clients[i])
			b = append(b, '\n')
		}
		b = append(b, '\n')
	}
	b = append(b, "Latency min/avg/max: "...)
	b = strconv.AppendInt(b, s.Latency.MinMs, 10)
	b = append(b, '/')
	b = appendDouble(b, s.Latency.AvgMs)
	b = append(b, '/')
	b = strconv.AppendInt(b, s.Latency.MaxMs, 10)
	b = appendIntLine(append(b, '\n'), "Received: ", s.Received)
	b = appendIntLine(b, "Sent: ", s.Sent)
	b = appendIntLine(b, "Connections: ", int64(s.Connections))
	b = appendIntLine(b, "Outstanding: ", s.Outstanding)
	b = append(b, "Zxid: "...)
	b = append(b, s.Zxid.String()...)
	b = append(b, "\nMode: "...)
	b = append(b, s.Mode...)
	b = appendIntLine(append(b, '\n'), "Node count: ", int64(s.Nodes))
	if p := s.Proposals; p != nil {
		b = append(b, "Proposal sizes last/min/max: "...)
		b = strconv.AppendInt(b, p.Last, 10)
		b = strconv.AppendInt(append(b, '/'), p.Min, 10)
		b = strconv.AppendInt(append(b, '/'), p.Max, 10)
		b = append(b, '\n')
	}
	return b
}

// ConnectionsAnswer is the answer of cons.
type ConnectionsAnswer []Connection

// AppendText implements [Answer]. An empty line follows the last connection.
func (a ConnectionsAnswer) AppendText(b []byte) []byte {
	for i := range a {
		b = appendConnection(b, &a[i])
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// appendBriefConnection appends a connection as stat shows it, with its leading blank.
func appendBriefConnection(b []byte, c *Connection) []byte {
	b = appendConnectionCounts(b, c)
	return append(b, ')')
}

// appendConnection appends a connection as cons shows it.
func appendConnection(b []byte, c *Connection) []byte {
	b = appendConnectionCounts(b, c)
	if c.SessionID != 0 {
		b = append(b, ",sid="...)
		b = append(b, c.SessionID.String()...)
		b = append(b, ",lop="...)
		if c.LastOp == "" {
			b = append(b, "NA"...)
		} else {
			b = append(b, c.LastOp...)
		}
		b = appendField(b, ",est=", c.EstablishedMs)
		b = appendField(b, ",to=", int64(c.TimeoutMs))
		if c.HasCxid {
			b = append(b, ",lcxid=0x"...)
			b = strconv.AppendUint(b, uint64(uint32(c.LastCxid)), 16)
		}
		b = append(b, ",lzxid="...)
		b = append(b, c.LastZxid.String()...)
		b = appendField(b, ",lresp=", c.LastResponseMs)
		b = appendField(b, ",llat=", c.LastLatencyMs)
		b = appendField(b, ",minlat=", c.MinLatencyMs)
		b = appendField(b, ",avglat=", c.AvgLatencyMs)
		b = appendField(b, ",maxlat=", c.MaxLatencyMs)
	}
	return append(b, ')')
}

func appendConnectionCounts(b []byte, c *Connection) []byte {
	b = append(b, ' ')
	b = appendRemote(b, c.Remote)
	b = append(b, '[')
	b = strconv.AppendUint(b, uint64(c.Interest), 16)
	b = append(b, ']')
	b = appendField(b, "(queued=", c.Queued)
	b = appendField(b, ",recved=", c.Received)
	return appendField(b, ",sent=", c.Sent)
}

// AppendText implements [Answer]: the twelve lines of a standalone server.
func (c Configuration) AppendText(b []byte) []byte {
	b = appendIntLine(b, "clientPort=", int64(c.ClientPort))
	b = appendIntLine(b, "secureClientPort=", int64(c.SecureClientPort))
	b = appendTextLine(b, "dataDir=", c.DataDir)
	b = appendIntLine(b, "dataDirSize=", c.DataDirBytes)
	b = appendTextLine(b, "dataLogDir=", c.DataLogDir)
	b = appendIntLine(b, "dataLogSize=", c.DataLogBytes)
	b = appendIntLine(b, "tickTime=", int64(c.TickTimeMs))
	b = appendIntLine(b, "maxClientCnxns=", int64(c.MaxClientCnxns))
	b = appendIntLine(b, "minSessionTimeout=", int64(c.MinSessionMs))
	b = appendIntLine(b, "maxSessionTimeout=", int64(c.MaxSessionMs))
	b = appendIntLine(b, "clientPortListenBacklog=", int64(c.ListenBacklog))
	b = appendIntLine(b, "serverId=", c.ServerID)
	if c.Ensemble != nil {
		b = c.Ensemble.appendText(b)
	}
	return b
}

// AppendText implements [Answer].
func (e Environment) AppendText(b []byte) []byte {
	b = append(b, "Environment:\n"...)
	for _, p := range e {
		b = append(b, p.Key...)
		b = appendTextLine(b, "=", p.Value)
	}
	return b
}

// AppendText implements [Answer].
func (d Dirs) AppendText(b []byte) []byte {
	b = appendIntLine(b, "datadir_size: ", d.DataBytes)
	return appendIntLine(b, "logdir_size: ", d.LogBytes)
}

// AppendText implements [Answer].
func (d Dump) AppendText(b []byte) []byte {
	b = append(b, "SessionTracker dump:\n"...)
	if d.Learner {
		b = d.appendGlobal(b)
	} else {
		b = d.appendSessions(b)
	}
	b = append(b, "ephemeral nodes dump:\n"...)
	b = appendField(b, "Sessions with Ephemerals (", int64(len(d.Ephemerals)))
	b = append(b, "):\n"...)
	for _, s := range d.Ephemerals {
		b = append(b, s.Session.String()...)
		b = append(b, ":\n"...)
		for _, p := range s.Paths {
			b = appendTextLine(b, "\t", p)
		}
	}
	b = append(b, "Connections dump:\n"...)
	connections := 0
	for _, set := range d.Connections {
		connections += len(set.Connections)
	}
	b = appendSets(b, "Connections Sets", len(d.Connections), connections)
	for _, set := range d.Connections {
		b = appendSet(b, len(set.Connections), set.AtMs)
		for i := range set.Connections {
			c := &set.Connections[i]
			b = append(b, "\tip: "...)
			b = appendRemote(b, c.Remote)
			b = append(b, " sessionId: "...)
			b = append(b, c.SessionID.String()...)
			b = append(b, '\n')
		}
	}
	return b
}

// appendSessions lists the sessions by the time at which they expire.
func (d Dump) appendSessions(b []byte) []byte {
	sessions := 0
	for _, set := range d.Sessions {
		sessions += len(set.Sessions)
	}
	b = appendSets(b, "Session Sets", len(d.Sessions), sessions)
	for _, set := range d.Sessions {
		b = appendSet(b, len(set.Sessions), set.AtMs)
		for _, id := range set.Sessions {
			b = appendTextLine(b, "\t", id.String())
		}
	}
	return b
}

// appendSets writes how many sets there are, and how many members they have in all.
func appendSets(b []byte, title string, sets, members int) []byte {
	b = append(b, title...)
	b = appendField(b, " (", int64(sets))
	b = appendField(b, ")/(", int64(members))
	return append(b, "):\n"...)
}

func appendSet(b []byte, n int, atMs int64) []byte {
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(b, " expire at "...)
	b = time.UnixMilli(atMs).AppendFormat(b, "Mon Jan 02 15:04:05 MST 2006")
	return append(b, ":\n"...)
}

// AppendText implements [Answer].
func (w WatchSummary) AppendText(b []byte) []byte {
	b = strconv.AppendInt(b, int64(w.Connections), 10)
	b = appendField(b, " connections watching ", int64(w.Paths))
	b = append(b, " paths\n"...)
	return appendIntLine(b, "Total watches:", int64(w.Watches))
}

// BySessionAnswer is the answer of wchc.
type BySessionAnswer []SessionPaths

// AppendText implements [Answer].
func (a BySessionAnswer) AppendText(b []byte) []byte {
	for _, s := range a {
		b = appendTextLine(b, s.Session.String(), "")
		for _, p := range s.Paths {
			b = appendTextLine(b, "\t", p)
		}
	}
	return append(b, '\n')
}

// ByPathAnswer is the answer of wchp.
type ByPathAnswer []PathSessions

// AppendText implements [Answer].
func (a ByPathAnswer) AppendText(b []byte) []byte {
	for _, p := range a {
		b = appendTextLine(b, p.Path, "")
		for _, id := range p.Sessions {
			b = appendTextLine(b, "\t", id.String())
		}
	}
	return append(b, '\n')
}

// DigestsAnswer is the answer of hash.
type DigestsAnswer []Digest

// AppendText implements [Answer].
func (a DigestsAnswer) AppendText(b []byte) []byte {
	for _, d := range a {
		b = append(b, d.Zxid.Hex()...)
		b = append(b, ": "...)
		b = strconv.AppendUint(b, d.Value, 10)
		b = append(b, '\n')
	}
	return b
}

// appendRemote appends an address as Java prints it: a slash, IPv6 in brackets and uncompressed with a scope.
func appendRemote(b []byte, a netip.AddrPort) []byte {
	ip := a.Addr().Unmap()
	b = append(b, '/')
	if ip.Is4() || !ip.IsValid() {
		b = ip.AppendTo(b)
	} else {
		b = append(b, '[')
		b = appendLongIPv6(b, ip)
		b = append(b, ']')
	}
	return appendField(b, ":", int64(a.Port()))
}

// appendLongIPv6 appends eight groups without leading zeros, and the scope, which is 0 where there is none.
func appendLongIPv6(b []byte, ip netip.Addr) []byte {
	raw := ip.As16()
	for i := 0; i < len(raw); i += 2 {
		if i > 0 {
			b = append(b, ':')
		}
		b = strconv.AppendUint(b, uint64(raw[i])<<8|uint64(raw[i+1]), 16)
	}
	b = append(b, '%')
	if zone := ip.Zone(); zone != "" {
		return append(b, zone...)
	}
	return append(b, '0')
}

// appendDouble appends v as ZooKeeper prints averages: four decimals at most, rounded half up, at least one, and never
// an exponent below 1e16, at which consumers that match digits only would stumble.
func appendDouble(b []byte, v float64) []byte {
	v = math.Floor(v*1e4+0.5) / 1e4
	n := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	for _, c := range b[n:] {
		if c == '.' {
			return b
		}
	}
	return append(b, ".0"...)
}

func appendIntLine(b []byte, label string, v int64) []byte {
	return append(appendField(b, label, v), '\n')
}

func appendTextLine(b []byte, label, v string) []byte {
	b = append(b, label...)
	b = append(b, v...)
	return append(b, '\n')
}

func appendField(b []byte, label string, v int64) []byte {
	b = append(b, label...)
	return strconv.AppendInt(b, v, 10)
}
