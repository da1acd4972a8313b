package conf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

const three = base + "initLimit=10\nsyncLimit=5\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"

// member parses the configuration of a server of an ensemble, with its file myid and other files by path.
func member(text, myid string, files map[string]string) (*Config, error) {
	l := newLoader("zoo.cfg")
	l.readFile = func(path string, _ int) ([]byte, error) {
		if path == "/d/myid" && myid != "" {
			return []byte(myid), nil
		}
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	l.file("zoo.cfg", []byte(text))
	return l.finish()
}

func memberFaults(t *testing.T, text, myid string) []string {
	t.Helper()
	_, err := member(text, myid, nil)
	var e *Error
	require.ErrorAs(t, err, &e)
	return texts(e.Faults)
}

func TestEnsemble(t *testing.T) {
	c, err := member(three+"clientPort=2181\n", "2\n", nil)
	require.NoError(t, err)
	require.Empty(t, c.Warnings)
	require.EqualValues(t, 2, c.MyID)
	require.Equal(t, []zxid.ServerID{1, 2, 3}, c.Ensemble.Voters())
	require.Zero(t, c.Ensemble.Version())
	require.Equal(t, 10, c.InitLimitTicks)
	require.Equal(t, 5, c.SyncLimitTicks)
	require.Equal(t, 10, c.ConnectToLearnerMasterLimitTicks, "initLimit, unless it is given")
	require.Equal(t, 5000, c.CnxTimeoutMs)
	require.Equal(t, 3, c.ElectionPortBindRetry)
	require.False(t, c.QuorumListenOnAllIPs)
	require.NoError(t, c.Validate())

	c, err = member(three+"connectToLearnerMasterLimit=3\ncnxTimeout=900\nelectionPortBindRetry=0\nquorumListenOnAllIPs=TRUE\n", "1", nil)
	require.NoError(t, err)
	require.Equal(t, 3, c.ConnectToLearnerMasterLimitTicks)
	require.Equal(t, 900, c.CnxTimeoutMs)
	require.Zero(t, c.ElectionPortBindRetry)
	require.True(t, c.QuorumListenOnAllIPs)
}

// TestStandaloneOrEnsemble: how many voters and observers make what.
func TestStandaloneOrEnsemble(t *testing.T) {
	const limits = base + "initLimit=10\nsyncLimit=5\n"
	tests := []struct {
		name, text, myid string
		voters           int // 0: standalone
		warning          string
	}{
		{"no lines", "", "", 0, ""},
		{"one line", "server.1=a:1:2", "1", 0, ""},
		{"one line, no myid", "server.1=a:1:2", "", 0, ""},
		{"one line with a group", "server.1=a:1:2\ngroup.1=nonsense", "1", 0, ""},
		{"an ensemble of one", "server.1=a:1:2\nstandaloneEnabled=false", "1", 1, "No server failure will be tolerated. You need at least 3 servers."},
		{"one and an observer", "server.1=a:1:2\nserver.2=b:1:2:observer\nstandaloneEnabled=false", "2", 1, "No server failure will be tolerated. You need at least 3 servers."},
		{"two", "server.1=a:1:2\nserver.2=b:1:2", "1", 2, "No server failure will be tolerated. You need at least 3 servers."},
		{"three", "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2", "1", 3, ""},
		{"three and an observer", "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2:observer", "4", 3, ""},
		{"four", "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.-4=d:1:2", "-4", 4, "Non-optimal configuration, consider an odd number of servers."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := member(limits+"clientPort=2181\n"+tt.text, tt.myid, nil)
			require.NoError(t, err)
			var warnings []string
			if tt.warning != "" {
				warnings = []string{"zoo.cfg: " + tt.warning}
			}
			require.Equal(t, warnings, texts(c.Warnings))
			if tt.voters == 0 {
				require.Nil(t, c.Ensemble)
				return
			}
			require.Len(t, c.Ensemble.Voters(), tt.voters)
		})
	}
}

func TestEnsembleFaults(t *testing.T) {
	tests := []struct{ name, text, myid, want string }{
		{"no myid", three, "", "zoo.cfg: myid file is missing: /d/myid has to contain the number of this server's line, one of 1, 2, 3"},
		{"unset myid", three, "-1", "zoo.cfg: myid file is missing: /d/myid has to contain the number of this server's line, one of 1, 2, 3"},
		{"another myid", three, "9", "zoo.cfg: My id 9 not in the peer list: /d/myid has to contain the number of this server's line, one of 1, 2, 3"},
		{"bad myid", three, "two", "/d/myid: serverid two is not a number"},
		{"no initLimit", base + "syncLimit=5\nserver.1=a:1:2\nserver.2=b:1:2", "1", "zoo.cfg: initLimit is not set"},
		{"no syncLimit", base + "initLimit=5\nserver.1=a:1:2\nserver.2=b:1:2", "1", "zoo.cfg: syncLimit is not set"},
		{"negative initLimit", three + "initLimit=-1", "1", "zoo.cfg:7: initLimit: -1 is not a number of ticks"},
		{"negative syncLimit", three + "syncLimit=-1", "1", "zoo.cfg:7: syncLimit: -1 is not a number of ticks"},
		{"limit no number", three + "connectToLearnerMasterLimit=x", "1", `zoo.cfg:7: connectToLearnerMasterLimit: For input string: "x"`},
		{"listen no boolean", three + "quorumListenOnAllIPs=1", "1", "zoo.cfg:7: quorumListenOnAllIPs: Invalid option 1 for quorumListenOnAllIPs. Choose 'true' or 'false.'"},
		{"election", three + "electionAlg=1", "1", "zoo.cfg:7: electionAlg: Invalid electionAlg value. Only 3 is supported."},
		{"id twice", three + "server.03=d:1:2", "1", "zoo.cfg: ensemble: two members have the id 3"},
		{"large id", three + "extendedTypesEnabled=true\nserver.255=d:1:2\nserver.5=e:1:2", "255", "zoo.cfg:7: extendedTypesEnabled is true but Server ID is too large. Cannot be larger than 254"},
		{"id that ends in all ones", three + "extendedTypesEnabled=true\nserver.-1=d:1:2\nserver.5=e:1:2", "-1", "zoo.cfg:7: extendedTypesEnabled is true but Server ID is too large. Cannot be larger than 254"},
		{"id for 3.5.3", three + "extendedTypesEnabled=true\nemulate353TTLNodes=true\nserver.128=d:1:2\nserver.5=e:1:2", "128", "zoo.cfg:7: extendedTypesEnabled is true but Server ID is too large. Cannot be larger than 127"},
		{"client port is quorum port", three + "clientPort=2888", "1", "zoo.cfg:4: server.1: port 2888 is both the quorum port and the client port of this server"},
		{"client port of the line", base + "initLimit=1\nsyncLimit=1\nserver.1=a:1:2;a:2\nserver.2=b:1:2", "1", "zoo.cfg:4: server.1: port 2 is both the election port and the client port of this server"},
		{"group", three + "group.1=1:2", "1", "zoo.cfg: ensemble: Server 3is not in a group"},
		{"groups", three + "group.1=1:2\ngroup.2=2:3", "1", "zoo.cfg: ensemble: Server 2is in multiple groups"},
		{"group no number", three + "group.x=1:2:3", "1", `zoo.cfg:7: group.x: For input string: "x"`},
		{"member no number", three + "group.1=1:2:x", "1", `zoo.cfg:7: group.1: For input string: "x"`},
		{"weight no number", three + "group.1=1:2:3\nweight.1=heavy", "1", `zoo.cfg:8: weight.1: For input string: "heavy"`},
		{"group without id", three + "groups=1:2:3", "1", `zoo.cfg:7: groups: For input string: ""`},
		{"revocation", three + "sslQuorum=true\nssl.quorum.crl=true", "1", "zoo.cfg:8: ssl.quorum.crl: revoked certificates cannot be looked for by this version: refusing to trust certificates without that"},
		{"votes without data", three + "db.autocreate=False", "1", "zoo.cfg:7: db.autocreate: not supported by this version: refusing to start, since a server that has lost its data would vote before it has got them back"},
		{"bad line", three + "server.4=d:1", "1", "zoo.cfg:7: server.4: d:1" + " does not have the form server_config or server_config;client_config where server_config is the pipe separated list of host:port:port or host:port:port:type and client_config is port or host:port"},
		{"client address", three + "server.4=d:1:2;5\nclientPort=6", "4", "zoo.cfg:8: clientPort: client address for this server (id = 4) in static config file is :6 is different from client address found in dynamic file: 0.0.0.0:5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, []string{tt.want}, memberFaults(t, tt.text, tt.myid))
		})
	}
}

// TestPortsThatDoNotClash: the same number on another address, or on another server, is no fault.
func TestPortsThatDoNotClash(t *testing.T) {
	for _, text := range []string{
		three + "clientPort=2888\nclientPortAddress=127.0.0.1",
		three + "server.4=d:5:6;a:2888\nserver.5=e:5:6",
		three + "clientPort=2889",
	} {
		_, err := member(text, "1", nil)
		require.NoError(t, err)
	}
	_, err := member(three+"server.4=d:2888:3888:observer\nclientPort=2888", "4", nil)
	require.NoError(t, err, "an observer never leads")
	require.Len(t, memberFaults(t, three+"clientPort=2888\nclientPortAddress=127.0.0.1\nquorumListenOnAllIPs=true", "1"), 1)
	require.Len(t, memberFaults(t, three+"clientPort=3888\nclientPortAddress=A", "1"), 1)
}

func TestEnsembleWarnings(t *testing.T) {
	const observer = three + "server.4=d:2888:3888:observer\n"
	tests := []struct{ text, myid, want string }{
		{observer + "peerType=observer", "1", "zoo.cfg:8: peerType: Peer type from servers list (participant) doesn't match peerType (observer). Defaulting to servers list."},
		{observer + "peerType=participant", "4", "zoo.cfg:8: peerType: Peer type from servers list (observer) doesn't match peerType (participant). Defaulting to servers list."},
		{observer + "peerType=observer", "4", ""},
		{observer, "4", ""},
		{three + "reconfigEnabled=true", "1", "zoo.cfg:7: reconfigEnabled: no effect: this version cannot change the ensemble at run time"},
		{three + "connectToLearnerMasterLimit=-2", "1", "zoo.cfg:7: connectToLearnerMasterLimit: -2 is negative, initLimit is used"},
		{three + "electionPortBindRetry=-2", "1", "zoo.cfg:7: electionPortBindRetry: -2 is negative, 3 is used, as ZooKeeper does"},
		{three + "server.4=C:2887:3888:observer", "1", "zoo.cfg:7: server.4: c:3888 is also an address of server.3"},
		{three + "portUnification=true", "1", ""},
		{three + "sslQuorumReloadCertFiles=true", "1", "zoo.cfg:7: sslQuorumReloadCertFiles: no effect: TLS between servers is not switched on"},
		{three + "observerMasterPort=2191", "1", "zoo.cfg:7: observerMasterPort: no effect: observers learn from the leader in this version"},
		{three + "observerMasterPort=0", "1", ""},
		{three + "leaderServes=no", "1", "zoo.cfg:7: leaderServes: no effect: the leader serves clients in this version"},
		{three + "leaderServes=yes", "1", ""},
		{three + "localSessionsEnabled=true", "1", "zoo.cfg:7: localSessionsEnabled: no effect: every session is a global one in this version"},
		{three + "oraclePath=/o", "1", "zoo.cfg:7: oraclePath: no effect: no oracle is asked by this version, half of the servers are no quorum"},
		{three + "syncEnabled=false", "1", "zoo.cfg:7: syncEnabled: no effect: observers write their log in this version"},
		{three + "quorum.auth.serverRequireSasl=false", "1", ""},
		{three + "forceSnapshotSync=true", "1", "zoo.cfg:7: forceSnapshotSync: no effect: a learner gets a snapshot only when the log does not serve"},
		{three + "forceSnapshotSync=false", "1", ""},
		{three + "fastleader.maxNotificationInterval=1000", "1", "zoo.cfg:7: fastleader.maxNotificationInterval: no effect: the times of an election are fixed in this version"},
		{three + "leader.maxConcurrentSnapSyncs=3", "1", "zoo.cfg:7: leader.maxConcurrentSnapSyncs: no effect: this version has no such setting of leaders and learners"},
		{three + "learner.asyncSending=true", "1", "zoo.cfg:7: learner.asyncSending: no effect: this version has no such setting of leaders and learners"},
		{three + "learner.asyncSending=false", "1", ""},
		{three + "leader.nodelay=true\nfollower.nodelay=true", "1", ""},
		{three + "follower.nodelay=false", "1", "zoo.cfg:7: follower.nodelay: no effect: what servers say to each other leaves at once in this version"},
		{three + "db.autocreate=true", "1", ""},
		{three + "commitLogCount=100", "1", "zoo.cfg:7: commitLogCount: 100 is outside 500 to 1000000, 500 is used"},
		{three + "snapshotSizeFactor=1000", "1", "zoo.cfg:7: snapshotSizeFactor: 1000 is more than 1, the default 0.33 is used, as ZooKeeper does"},
		{three + "snapshotSizeFactor=a third", "1", `zoo.cfg:7: snapshotSizeFactor: "a third" is not a number, the default 0.33 is used, as ZooKeeper does`},
		{three + "sslQuorum=false\nquorumCnxnTimeoutMs=5", "1", ""},
	}
	for _, tt := range tests {
		c, err := member(tt.text+"\nclientPort=2181", tt.myid, nil)
		require.NoError(t, err, tt.text)
		if tt.want == "" {
			require.Empty(t, c.Warnings, tt.text)
			continue
		}
		require.Equal(t, []string{tt.want}, texts(c.Warnings))
	}
}

// TestCatchUp: how much of the log is kept in memory for learners, and how much of it is handed on from the disk.
func TestCatchUp(t *testing.T) {
	tests := []struct {
		text   string
		count  int
		factor float64
	}{
		{"", 500, 0.33},
		{"commitLogCount=499\nsnapshotSizeFactor=1.5", 500, 0.33},
		{"commitLogCount=501\nsnapshotSizeFactor=1", 501, 1},
		{"commitLogCount=-1\nsnapshotSizeFactor=-1", 500, -1},
		{"commitLogCount=1000000\nsnapshotSizeFactor=0", 1_000_000, 0},
		{"commitLogCount=1000001\nsnapshotSizeFactor=NaN", 1_000_000, 0.33},
		{"commitLogCount=many\nsnapshotSizeFactor=.5", 500, 0.5},
	}
	for _, tt := range tests {
		c, err := member(three+"clientPort=2181\n"+tt.text, "1", nil)
		require.NoError(t, err)
		require.Equal(t, tt.count, c.CommitLogCount, tt.text)
		require.InDelta(t, tt.factor, c.SnapshotSizeFactor, 0, tt.text)
		again, err := member(c.String(), "1", nil)
		require.NoError(t, err)
		require.Equal(t, c.CommitLogCount, again.CommitLogCount)
		require.InDelta(t, c.SnapshotSizeFactor, again.SnapshotSizeFactor, 0)
		c = mustParse(t, base+"clientPort=2181\ndb.autocreate=false\n"+tt.text, nil)
		require.Equal(t, tt.count, c.CommitLogCount, "a standalone server starts with it as well")
	}
	require.Empty(t, mustParse(t, base+"clientPort=2181\ndb.autocreate=false\ncommitLogCount=1\nsnapshotSizeFactor=7", nil).Warnings, "it has no learners")
}

func TestHierarchicalEnsemble(t *testing.T) {
	c, err := member(three+"clientPort=2181\ngroup.1=1\ngroup.2=2:3\nweight.3=0\n", "1", nil)
	require.NoError(t, err)
	require.False(t, c.Ensemble.Electable(3))
	require.True(t, c.Ensemble.Quorum(func(id zxid.ServerID) bool { return id != 3 }))
	require.Contains(t, c.String(), "server.3=c:2888:3888:participant\ngroup.1=1\ngroup.2=2:3\nweight.1=1\nweight.2=1\nweight.3=0\n")

	again, err := member(c.String(), "1", nil)
	require.NoError(t, err)
	require.True(t, c.Ensemble.Equal(again.Ensemble))
}

func TestEnsembleText(t *testing.T) {
	c, err := member(three+"clientPort=2181\ncnxTimeout=7\n", "1", nil)
	require.NoError(t, err)
	set, rest, _ := strings.Cut(c.String(), "\n# defaults\n")
	for _, line := range []string{"initLimit=10", "syncLimit=5", "cnxTimeout=7", "server.1=a:2888:3888:participant"} {
		require.Contains(t, set, line+"\n")
	}
	defaults, idle, _ := strings.Cut(rest, "\n# accepted, without effect in this version\n")
	require.Contains(t, defaults, "electionPortBindRetry=3\n")
	require.Contains(t, idle, "electionAlg=3\n")
}

func TestDynamicFileOfAnEnsemble(t *testing.T) {
	const static = base + "clientPort=2181\ninitLimit=10\nsyncLimit=5\ndynamicConfigFile="
	lines := "server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:participant;0.0.0.0:2181\nserver.3=c:2888:3888:participant;0.0.0.0:2181"
	for path, version := range map[string]int64{
		"/c/zoo.cfg.dynamic.100000007": 0x100000007,
		"/c/zoo.cfg.dynamic":           0,
		"/c/members.dad":               0xdad,
		"/c/members":                   0,
		"/c.1/abc":                     0,
		"/c/members.-1":                0,
	} {
		c, err := member(static+path, "3", map[string]string{path: lines})
		require.NoError(t, err)
		require.Equal(t, version, c.Ensemble.Version(), path)
		require.Equal(t, ":2181", strings.TrimPrefix(c.ClientAddr(), "0.0.0.0"))
		require.Nil(t, c.NextEnsemble)
	}

	next := lines + "\nserver.4=d:2888:3888:participant;0.0.0.0:2181\nversion=100000009"
	c, err := member(static+"/c/dyn", "3", map[string]string{"/c/dyn": lines, "zoo.cfg.dynamic.next": next})
	require.NoError(t, err)
	require.Len(t, c.Ensemble.Members(), 3)
	require.Len(t, c.NextEnsemble.Members(), 4)
	require.EqualValues(t, 0x100000009, c.NextEnsemble.Version())
	require.Equal(t, []string{"zoo.cfg.dynamic.next: a change of the membership to version 100000009 was under way; this version does not complete it, version 0 counts"}, texts(c.Warnings))

	c, err = member(static+"/c/dyn", "3", map[string]string{"/c/dyn": lines, "zoo.cfg.dynamic.next": "nonsense"})
	require.NoError(t, err)
	require.Nil(t, c.NextEnsemble)
	require.Len(t, c.Warnings, 1)
	require.Contains(t, c.Warnings[0].String(), "zoo.cfg.dynamic.next: ignored, as ZooKeeper does: ")

	_, err = member(static+"/c/dyn", "3", map[string]string{"/c/dyn": lines + "\ngroup.1=1:2"})
	require.EqualError(t, err, "Error processing zoo.cfg\n/c/dyn: ensemble: Server 3is not in a group")
}

// TestEnsembleWithFiles goes through Load, and sees that nothing is written.
func TestEnsembleWithFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	dynamic := write("zoo.cfg.dynamic.200000001", "server.1=localhost:2888:3888:participant;127.0.0.1:2199\nserver.2=nowhere.invalid:2888:3888\nserver.3=[::1]:2889:3889")
	cfg := write("zoo.cfg", "tickTime=2000\ninitLimit=5\nsyncLimit=2\ndataDir="+dir+"\ndynamicConfigFile="+dynamic+"\n")
	write("zoo.cfg.dynamic.next", "server.1=localhost:2888:3888\nversion=200000005")
	write("myid", "1\n")
	before, err := os.ReadDir(dir)
	require.NoError(t, err)

	c, err := Load(cfg, nil)
	require.NoError(t, err, "a peer whose name cannot be resolved now is no fault")
	require.EqualValues(t, 0x200000001, c.Ensemble.Version())
	require.EqualValues(t, 0x200000005, c.NextEnsemble.Version())
	require.Equal(t, "127.0.0.1:2199", c.ClientAddr())
	third, _ := c.Ensemble.Member(3)
	require.Equal(t, "::1", third.Addresses[0].Host)

	after, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestValidateEnsemble is for configurations that were put together by hand.
func TestValidateEnsemble(t *testing.T) {
	e, err := ensemble.New([]ensemble.Member{{ID: 1}, {ID: 2}, {ID: 3}}, 0)
	require.NoError(t, err)
	c := mustParse(t, base+"clientPort=2181\ninitLimit=10\nsyncLimit=5", nil)
	c.Ensemble, c.MyID = e, 2
	require.NoError(t, c.Validate())
	c.MyID, c.CnxTimeoutMs, c.InitLimitTicks = 4, 0, 0
	err = c.Validate()
	var ce *Error
	require.True(t, errors.As(err, &ce))
	require.Len(t, ce.Faults, 3)
}
