package admin

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

var testConns = []Connection{
	{Remote: netip.MustParseAddrPort("127.0.0.1:39848"), Interest: 1, Received: 231, Sent: 232,
		SessionID: 0x100000ba4e30000, LastOp: "PING", EstablishedMs: 1796025644198, TimeoutMs: 10000, LastCxid: 0xe5,
		HasCxid: true, LastZxid: 0x1000000d2, LastResponseMs: 771316, AvgLatencyMs: 4, MaxLatencyMs: 32},
	{Remote: netip.MustParseAddrPort("[::1]:41234"), Interest: 5, Queued: 2, Received: 3, Sent: 1,
		SessionID: 1, LastZxid: -1, EstablishedMs: 5, TimeoutMs: 4000},
	{Remote: netip.MustParseAddrPort("[::ffff:10.0.0.7]:40502"), Received: 1},
	{Remote: netip.MustParseAddrPort("[2001:db8::a0:1]:7"), Received: 1},
}

func TestConnectionsText(t *testing.T) {
	want := ` /127.0.0.1:39848[1](queued=0,recved=231,sent=232,sid=0x100000ba4e30000,lop=PING,est=1796025644198,to=10000,lcxid=0xe5,lzxid=0x1000000d2,lresp=771316,llat=0,minlat=0,avglat=4,maxlat=32)
 /[0:0:0:0:0:0:0:1%0]:41234[5](queued=2,recved=3,sent=1,sid=0x1,lop=NA,est=5,to=4000,lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)
 /10.0.0.7:40502[0](queued=0,recved=1,sent=0)
 /[2001:db8:0:0:0:0:a0:1%0]:7[0](queued=0,recved=1,sent=0)

`
	require.Equal(t, want, reply(&fake{conns: testConns}, "cons"))
	require.Equal(t, "\n", reply(&fake{}, "cons"))
}

func TestServerText(t *testing.T) {
	src := &fake{
		server: Server{
			Version: "3.9.5-zabra", Latency: Latency{0, 11, 1.19234}, Received: 28, Sent: 27, Connections: 2,
			Zxid: 0x1000000d2, Mode: ModeStandalone, Nodes: 5,
		},
		conns: testConns[2:3],
	}
	tail := `Latency min/avg/max: 0/1.1923/11
Received: 28
Sent: 27
Connections: 2
Outstanding: 0
Zxid: 0x1000000d2
Mode: standalone
Node count: 5
`
	require.Equal(t, "Zookeeper version: 3.9.5-zabra\n"+tail, reply(src, "srvr"))
	require.Equal(t, "Zookeeper version: 3.9.5-zabra\nClients:\n /10.0.0.7:40502[0](queued=0,recved=1,sent=0)\n\n"+tail,
		reply(src, "stat"))
	src.server.ReadOnly, src.server.Proposals, src.conns = true, &ProposalSizes{102, 48, 102}, nil
	require.Equal(t, "Zookeeper version: 3.9.5-zabra\nREAD-ONLY mode; serving only read-only clients\nClients:\n\n"+tail+
		"Proposal sizes last/min/max: 102/48/102\n", reply(src, "stat"))
}

func TestConfigurationText(t *testing.T) {
	src := &fake{conf: Configuration{
		ClientPort: 31011, SecureClientPort: -1, DataDir: "/data/version-2", DataDirBytes: 67109517,
		DataLogDir: "/log/version-2", DataLogBytes: 1, TickTimeMs: 2000, MaxClientCnxns: 60, MinSessionMs: 4000,
		MaxSessionMs: 40000, ListenBacklog: -1,
	}}
	require.Equal(t, `clientPort=31011
secureClientPort=-1
dataDir=/data/version-2
dataDirSize=67109517
dataLogDir=/log/version-2
dataLogSize=1
tickTime=2000
maxClientCnxns=60
minSessionTimeout=4000
maxSessionTimeout=40000
clientPortListenBacklog=-1
serverId=0
`, reply(src, "conf"))
}

func TestDumpText(t *testing.T) {
	at := func(s string) int64 {
		instant, err := time.Parse(time.RFC3339, s)
		require.NoError(t, err)
		return instant.UnixMilli()
	}
	defer func(l *time.Location) { time.Local = l }(time.Local)
	time.Local = time.UTC
	src := &fake{dump: Dump{
		Sessions: []SessionExpiry{{AtMs: at("2026-11-30T08:00:55Z")},
			{at("2026-12-01T08:00:59Z"), []zxid.SessionID{0x100000ba4e30000, 0x100000ba4e30001, 0x300000ba4f90000}}},
		Ephemerals:  []SessionPaths{{0x300000ba4f90000, []string{"/app/e-0000000003"}}},
		Connections: []ConnectionExpiry{{at("2026-11-30T08:01:07Z"), testConns[2:3]}},
	}}
	require.Equal(t, `SessionTracker dump:
Session Sets (2)/(3):
0 expire at Mon Nov 30 08:00:55 UTC 2026:
3 expire at Tue Dec 01 08:00:59 UTC 2026:
	0x100000ba4e30000
	0x100000ba4e30001
	0x300000ba4f90000
ephemeral nodes dump:
Sessions with Ephemerals (1):
0x300000ba4f90000:
	/app/e-0000000003
Connections dump:
Connections Sets (1)/(1):
1 expire at Mon Nov 30 08:01:07 UTC 2026:
	ip: /10.0.0.7:40502 sessionId: 0x0
`, reply(src, "dump"))
}

func TestMonitorText(t *testing.T) {
	src := &fake{metrics: Metrics{
		Version: "3.9.5-zabra", Mode: ModeStandalone,
		Gauges:   []Sample{{Name: "znode_count", Value: Int(5)}, {Name: "avg_latency", Value: Float(4.31172)}},
		Counters: []Sample{{Name: "commit_count", Value: Int(0)}, {Name: "bytes_received_count", Value: Int(12345678)}},
		Summaries: []Summary{
			{Name: "readlatency", Count: 3, Sum: 10, Min: 1, Max: 7, Percentiles: Percentiles{2, 7, 7, 7}, WithPercentiles: true},
			{Name: "fsynctime", Count: 2, Sum: 3, Min: 1, Max: 2},
			{Name: "dbinittime"},
		},
	}}
	want := strings.ReplaceAll(`zk_version 3.9.5-zabra
zk_server_state standalone
zk_avg_latency 4.3117
zk_znode_count 5
zk_bytes_received_count 12345678
zk_commit_count 0
zk_avg_dbinittime 0.0
zk_min_dbinittime 0
zk_max_dbinittime 0
zk_cnt_dbinittime 0
zk_sum_dbinittime 0
zk_avg_fsynctime 1.5
zk_min_fsynctime 1
zk_max_fsynctime 2
zk_cnt_fsynctime 2
zk_sum_fsynctime 3
zk_avg_readlatency 3.3333
zk_min_readlatency 1
zk_max_readlatency 7
zk_cnt_readlatency 3
zk_sum_readlatency 10
zk_p50_readlatency 2
zk_p95_readlatency 7
zk_p99_readlatency 7
zk_p999_readlatency 7
`, " ", "\t")
	require.Equal(t, want, reply(src, "mntr"))
	src.metrics.PeerState = "leading - broadcast"
	require.Contains(t, reply(src, "mntr"), "zk_server_state\tstandalone\nzk_peer_state\tleading - broadcast\nzk_avg_")

	// Telegraf gives up at the first line that this does not match.
	line := regexp.MustCompile(`^zk_(\w+)\s+([\w\.\-]+)`)
	for l := range strings.Lines(reply(src, "mntr")) {
		require.Regexp(t, line, l)
	}
}

func TestAppendDouble(t *testing.T) {
	tests := []struct {
		v    float64
		want string
	}{
		{0, "0.0"}, {4, "4.0"}, {1.19234, "1.1923"}, {1.19235, "1.1924"}, {0.0005, "0.0005"}, {12345678, "12345678.0"},
		{0.00004, "0.0"}, {4.31, "4.31"}, {1e15, "1000000000000000.0"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, string(appendDouble(nil, tt.v)))
	}
}

func TestVersion(t *testing.T) {
	built := time.Date(2026, 11, 30, 9, 5, 1, 0, time.FixedZone("", 3600))
	require.Equal(t, "3.9.5-zabra-1.0.0-0a1b2c3, built on 2026-11-30 08:05 UTC", Version("1.0.0", "0a1b2c3", built))
	require.Equal(t, "3.9.5-zabra", Version("", "", time.Time{}))
	// What Datadog's agent and kazoo look for.
	require.Equal(t, "3.9.5", regexp.MustCompile(`(\d+\.\d+\.\d+)`).FindString("Zookeeper version: "+Version("1.2.3", "", built)))
	require.Equal(t, "3.9.5", regexp.MustCompile(`^[\w\s:.]*=([\d.]*)`).
		FindStringSubmatch("Environment:\nzookeeper.version=" + Version("1.2.3", "x", built))[1])
}
