package admin

import (
	"cmp"
	"net"
	"strconv"

	"zabra/zab/zxid"
)

// connectionLists are the connections of the plain and of the encrypted ports.
func connectionLists(all []Connection, show func(*Connection) Object) Object {
	plain, secure := []Object{}, []Object{}
	for i := range all {
		if all[i].Secure {
			secure = append(secure, show(&all[i]))
		} else {
			plain = append(plain, show(&all[i]))
		}
	}
	return Object{{"connections", plain}, {"secure_connections", secure}}
}

// briefConnectionObject is what stats shows of a connection.
func briefConnectionObject(c *Connection) Object {
	return Object{
		{"remote_socket_address", string(appendRemote(nil, c.Remote)[1:])}, // without the slash
		{"interest_ops", int(c.Interest)},
		{"outstanding_requests", c.Queued},
		{"packets_received", c.Received},
		{"packets_sent", c.Sent},
	}
}

// connectionObject is what connections shows of one.
func connectionObject(c *Connection) Object {
	var lastOp any // without a session there is none
	lastCxid := c.LastCxid
	if c.SessionID != 0 {
		lastOp = cmp.Or(c.LastOp, "NA")
		if !c.HasCxid {
			lastCxid = -1
		}
	}
	return append(briefConnectionObject(c), Object{
		{"session_id", int64(c.SessionID)},
		{"last_operation", lastOp},
		{"established", c.EstablishedMs},
		{"session_timeout", c.TimeoutMs},
		{"last_cxid", lastCxid},
		{"last_zxid", int64(c.LastZxid)},
		{"last_response_time", c.LastResponseMs},
		{"last_latency", c.LastLatencyMs},
		{"min_latency", c.MinLatencyMs},
		{"avg_latency", c.AvgLatencyMs},
		{"max_latency", c.MaxLatencyMs},
	}...)
}

// serverFields are what server_stats shows, and stats before its connections.
func serverFields(src Source) Object {
	s, more, dirs := src.Server(), src.Detail(), src.Dirs()
	responses := Object{
		{"last_buffer_size", more.ResponseLastBytes}, {"min_buffer_size", more.ResponseMinBytes}, {"max_buffer_size", more.ResponseMaxBytes},
	}
	fields := Object{
		{"version", s.Version},
		{"read_only", s.ReadOnly},
		{"server_stats", Object{
			{"packets_sent", s.Sent},
			{"packets_received", s.Received},
			{"fsync_threshold_exceed_count", more.SlowSyncs},
			{"client_response_stats", responses},
			{"data_dir_size", dirs.DataBytes},
			{"log_dir_size", dirs.LogBytes},
			{"provider_null", false},
			{"last_processed_zxid", int64(s.Zxid)},
			{"server_state", string(s.Mode)},
			{"outstanding_requests", s.Outstanding},
			{"avg_latency", s.Latency.AvgMs},
			{"max_latency", s.Latency.MaxMs},
			{"min_latency", s.Latency.MinMs},
			{"num_alive_client_connections", s.Connections},
			{"auth_failed_count", more.AuthFailed},
			{"non_mtlsremote_conn_count", more.PlainRemote},
			{"non_mtlslocal_conn_count", more.PlainLocal},
			{"uptime", more.UptimeMs},
		}},
		{"client_response", responses},
	}
	if p := s.Proposals; p != nil {
		fields = append(fields, Field{"proposal_stats", Object{
			{"last_buffer_size", p.Last}, {"min_buffer_size", p.Min}, {"max_buffer_size", p.Max},
		}})
	}
	return append(fields, Field{"node_count", s.Nodes})
}

func observerObject(o *Observer) Object {
	return Object{
		{"remote_socket_address", string(appendRemote(nil, o.Remote))},
		{"sid", int64(o.ID)},
		{"established", o.EstablishedMs},
		{"queued_packets", o.Queued},
		{"queued_packets_size", o.QueuedBytes},
		{"packets_received", o.Received},
		{"packets_sent", o.Sent},
		{"requests", o.Requests},
		{"last_zxid", int64(o.LastZxid)},
	}
}

// addressesObject is what zabstate shows of the addresses for one purpose. Which of them can be reached is not tried out.
func addressesObject(list []HostPort) Object {
	all, wildcard, hosts := hostPorts(list), []string{}, []string{}
	ports := []int64{}
	for _, a := range list {
		wildcard = append(wildcard, net.JoinHostPort("0.0.0.0", strconv.Itoa(a.Port)))
		hosts = append(hosts, a.Host)
		ports = append(ports, int64(a.Port))
	}
	var one any
	if len(all) > 0 {
		one = all[0]
	}
	return Object{
		{"empty", len(all) == 0},
		{"all_addresses", all},
		{"wildcard_addresses", wildcard},
		{"all_ports", ports},
		{"all_host_strings", hosts},
		{"reachable_address", one},
		{"all_reachable_addresses", all},
		{"all_reachable_addresses_or_all", all},
		{"reachable_or_one", one},
		{"one", one},
	}
}

func hostPorts(list []HostPort) []string {
	texts := []string{}
	for _, a := range list {
		texts = append(texts, net.JoinHostPort(a.Host, strconv.Itoa(a.Port)))
	}
	return texts
}

func sessionList(ids []zxid.SessionID) []int64 {
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = int64(id)
	}
	return list
}

func pathsBySession(list []SessionPaths) Object {
	o := Object{}
	for _, s := range list {
		o = append(o, Field{strconv.FormatInt(int64(s.Session), 10), s.Paths})
	}
	return o
}

func properties(list []Property) Object {
	o := make(Object, len(list))
	for i, p := range list {
		o[i] = Field{p.Key, p.Value}
	}
	return o
}
