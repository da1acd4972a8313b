package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mustParse parses text that has no fault.
func mustParse(t *testing.T, text string, overrides map[string]string) *Config {
	t.Helper()
	c, err := parse([]byte(text), overrides)
	require.NoError(t, err)
	return c
}

// faultsOf returns the faults of text, one a line.
func faultsOf(t *testing.T, text string, overrides map[string]string) []string {
	t.Helper()
	_, err := parse([]byte(text), overrides)
	var e *Error
	require.ErrorAs(t, err, &e)
	return texts(e.Faults)
}

func texts(faults []Fault) []string {
	var list []string
	for _, f := range faults {
		list = append(list, f.String())
	}
	return list
}

// base is the least that a configuration needs, on one line.
const base = "dataDir=/d\n"

func TestDefaultsOfZooKeeper(t *testing.T) {
	c := mustParse(t, base, nil)
	require.Equal(t, "/d", c.DataDir)
	require.Equal(t, "/d", c.LogDir())
	require.Equal(t, Unset, c.ClientPort)
	require.Empty(t, c.ClientAddr())
	require.Equal(t, 60, c.MaxClientCnxns)
	require.Equal(t, 0, c.MaxCnxns)
	require.EqualValues(t, 3000, c.TickTimeMs)
	require.EqualValues(t, 6000, c.MinSessionTimeoutMs)
	require.EqualValues(t, 60000, c.MaxSessionTimeoutMs)
	require.Equal(t, 100000, c.SnapCount)
	require.EqualValues(t, 4194304, c.SnapSizeLimitKB)
	require.EqualValues(t, 65536, c.PreAllocKB)
	require.Zero(t, c.TxnLogSizeLimitKB)
	require.True(t, c.ForceSync)
	require.Zero(t, c.AutopurgePurgeIntervalHours)
	require.Equal(t, 1048575, c.JuteMaxBufferBytes)
	require.Equal(t, 1048575, c.JuteMaxBufferExtraBytes)
	require.True(t, c.DigestEnabled)
	require.False(t, c.SkipACL)
	require.EqualValues(t, 60000, c.ContainerCheckIntervalMs)
	require.EqualValues(t, Unset, c.MyID)
	require.True(t, c.FourLetterWord("srvr"))
	require.False(t, c.FourLetterWord("ruok"))
	require.False(t, c.FourLetterWord("isro"))
	require.Equal(t, []string{"zoo.cfg: clientPort is not set: the server listens on nothing"}, texts(c.Warnings))
}

func TestDefault(t *testing.T) {
	c := Default()
	require.Empty(t, c.Warnings)
	require.True(t, c.Embedded)
	require.Equal(t, "./data", c.DataDir)
	require.Equal(t, "127.0.0.1:2181", c.ClientAddr())
	require.EqualValues(t, 2000, c.TickTimeMs)
	require.Equal(t, 1, c.AutopurgePurgeIntervalHours)
	require.Equal(t, 3, c.AutopurgeSnapRetainCount)
	for _, w := range []string{"ruok", "srvr", "isro", "mntr"} {
		require.True(t, c.FourLetterWord(w), w)
	}
	require.False(t, c.FourLetterWord("wchp"))
	require.NoError(t, c.Validate())

	c, err := Load("", map[string]string{"zookeeper.4lw.commands.whitelist": "*", "zookeeper.snapCount": "10"})
	require.NoError(t, err)
	require.True(t, c.FourLetterWord("wchp"), "a -D must win over the built-in configuration")
	require.Equal(t, 10, c.SnapCount)
}

// TestTypicalFile is the file of the official container image.
func TestTypicalFile(t *testing.T) {
	c := mustParse(t, `dataDir=/data
dataLogDir=/datalog
tickTime=2000
initLimit=5
syncLimit=2
autopurge.snapRetainCount=3
autopurge.purgeInterval=0
maxClientCnxns=60
standaloneEnabled=true
admin.enableServer=false
4lw.commands.whitelist=mntr, ruok ,*x
server.1=localhost:2888:3888;2181
`, nil)
	require.Equal(t, "/datalog", c.LogDir())
	require.Equal(t, 2181, c.ClientPort)
	require.Equal(t, "0.0.0.0", c.ClientPortAddress)
	require.EqualValues(t, 4000, c.MinSessionTimeoutMs)
	require.False(t, c.Admin.Enabled)
	require.True(t, c.FourLetterWord("ruok"))
	require.False(t, c.FourLetterWord("conf"))
	require.Equal(t, []string{
		"zoo.cfg: myid file is missing: taking the client address of the only server line",
		"zoo.cfg:11: 4lw.commands.whitelist: not a four-letter word, ignored: *x",
	}, texts(c.Warnings))
}

func TestAllFaultsTogether(t *testing.T) {
	require.Equal(t, []string{
		"zoo.cfg: dataDir is not set",
		`zoo.cfg:1: clientPort: For input string: "2181 # x" (a comment needs a line of its own)`,
		`zoo.cfg:3: tickTime: For input string: ""`,
		"zoo.cfg:4: reconfigEnabled: Invalid option maybe for reconfigEnabled. Choose 'true' or 'false.'",
		`zoo.cfg:6: maxClientCnxns: For input string: "99999999999"`,
		"zoo.cfg:7: electionAlg: Invalid electionAlg value. Only 3 is supported.",
		`zoo.cfg:8: broken: Malformed \uxxxx encoding.`,
	}, faultsOf(t, `clientPort=2181 # x
! comment
tickTime=
reconfigEnabled=maybe
snapCount=7
maxClientCnxns=99999999999
electionAlg=0
broken=\u12
`, nil))
}

func TestFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no port for the address", base + "clientPortAddress=127.0.0.1", "zoo.cfg:2: clientPortAddress is set but clientPort is not set"},
		{"port 0 is no port", base + "clientPort=0\nclientPortAddress=::1", "zoo.cfg:3: clientPortAddress is set but clientPort is not set"},
		{"port range", base + "clientPort=70000", "zoo.cfg:2: clientPort: port out of range:70000"},
		{"negative port", base + "clientPort=-1", "zoo.cfg:2: clientPort: port out of range:-1"},
		{"tick 0", base + "tickTime=0", "zoo.cfg:2: tickTime is not set"},
		{"tick negative", base + "tickTime=-5\nminSessionTimeout=1\nmaxSessionTimeout=2", "zoo.cfg:2: tickTime: -5 is not a length of time"},
		{"tick in hex is not strict", base + "tickTime=0x10", `zoo.cfg:2: tickTime: For input string: "0x10"`},
		{"timeouts", base + "minSessionTimeout=10\nmaxSessionTimeout=9", "zoo.cfg:2: minSessionTimeout must not be larger than maxSessionTimeout"},
		{"min above the default max", base + "minSessionTimeout=60001", "zoo.cfg:2: minSessionTimeout must not be larger than maxSessionTimeout"},
		{"peer type", base + "peerType=foo", "zoo.cfg:2: peerType: Unrecognised peertype: foo"},
		{"fieldless boolean", base + "sslQuorum=1", "zoo.cfg:2: sslQuorum: Invalid option 1 for sslQuorum. Choose 'true' or 'false.'"},
		{"fieldless number", base + "observerMasterPort=x", `zoo.cfg:2: observerMasterPort: For input string: "x"`},
		{"secure port no number", base + "secureClientPort=x", `zoo.cfg:2: secureClientPort: For input string: "x"`},
		{"connection factory", base + "serverCnxnFactory=com.example.Mine", "zoo.cfg:2: serverCnxnFactory: Couldn't instantiate com.example.Mine"},
		{"metrics class", base + "metricsProvider.className=com.example.Mine", "zoo.cfg:2: metricsProvider.className: metrics provider class was not found: com.example.Mine"},
		{"dynamic file missing", base + "dynamicConfigFile=/nowhere/zoo.dyn", "zoo.cfg:2: dynamicConfigFile: file does not exist"},
		{"server beside dynamic file", base + "dynamicConfigFile=/nowhere/zoo.dyn\nserver.1=a:1:2", "zoo.cfg:3: server.1: parameter: server.1 must be in a separate dynamic config file"},
		{"no participants", base + "standaloneEnabled=false", "zoo.cfg: standaloneEnabled = false then number of participants should be >0"},
		{"observers alone", base + "server.1=a:1:2:observer", "zoo.cfg: Observers w/o participants is an invalid configuration"},
		{"observers and one voter", base + "server.1=a:1:2\nserver.2=b:1:2:observer", "zoo.cfg: Observers w/o quorum is an invalid configuration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Contains(t, faultsOf(t, tt.text, nil), tt.want)
		})
	}
}

func TestLastOneWins(t *testing.T) {
	c := mustParse(t, base+"clientPort=garbage\nclientPort=2181", nil)
	require.Equal(t, 2181, c.ClientPort)
	require.Equal(t, []string{"zoo.cfg:2: clientPort: set again on line 3, which counts"}, texts(c.Warnings))
}

func TestUnknownKey(t *testing.T) {
	tests := []struct{ key, want string }{
		{"tickTme", "; did you mean tickTime?"},
		{"TICKTIME", "; did you mean tickTime?"},
		{"snapcount", "; did you mean snapCount?"},
		{"4lw.command.whitelist", "; did you mean 4lw.commands.whitelist?"},
		{"zookeeper.snapCount", "; in the file it is called snapCount"},
		{"completely.different.thing", ""},
		{strings.Repeat("x", 5000), ""},
	}
	for _, tt := range tests {
		c := mustParse(t, base+"clientPort=1\n"+tt.key+"=1", nil)
		require.Len(t, c.Warnings, 1)
		require.Equal(t, 3, c.Warnings[0].Line)
		want := fmt.Sprintf("unknown key without effect (ZooKeeper would make it the system property zookeeper.%s)%s", shown(tt.key), tt.want)
		require.Equal(t, want, c.Warnings[0].Text)
	}
}

func TestKeysOfZooKeeperWithoutEffect(t *testing.T) {
	silent := mustParse(t, base+`clientPort=1
nio.numWorkerThreads=8
jvm.pause.monitor=true
leader.maxConcurrentSnapSyncs=3
group.1=1:2
weight.1=1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
metricsProvider.className=org.apache.zookeeper.metrics.impl.DefaultMetricsProvider
metricsProvider.numWorkerThreads=4
audit.impl.class=org.apache.zookeeper.audit.Slf4jAuditLogger
authProvider.1=org.apache.zookeeper.server.auth.DigestAuthenticationProvider
sslQuorum=false
secureClientPort=0
sessionRequireClientSASLAuth=false
requireClientAuthScheme=sasl
admin.portUnification=false
`, nil)
	require.Empty(t, silent.Warnings)

	loud := mustParse(t, base+`clientPort=1
ssl.keyStore.location=/k.jks
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
audit.impl.class=com.example.Mine
request_throttle_stall_time=5
superUser.a=x
sslQuorum=true
admin.enableServer=true
`, nil)
	require.Equal(t, []string{
		"zoo.cfg:3: ssl.keyStore.location: no effect: neither secureClientPort nor client.portUnification says that clients use TLS",
		"zoo.cfg:4: authProvider.1: no client can log in by SASL: no file with a section Server is named by java.security.auth.login.config",
		"zoo.cfg:5: audit.impl.class: no effect: no Java class can be loaded; the audit log is written in the format of ZooKeeper's own",
		"zoo.cfg:7: superUser.a: no effect: nobody gets these rights, because no file with a section Server is named by java.security.auth.login.config",
		"zoo.cfg:8: sslQuorum: no effect: a standalone server has no connections to other servers",
	}, texts(loud.Warnings))
}

func TestNoSecretInMessages(t *testing.T) {
	const secret = "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="
	c := mustParse(t, base+"ssl.trustStore.password=hunter2\nDigestAuthenticationProvider.superDigest="+secret+
		"\nDigestAuthenticationProvider.enabled=false\nSASLAuthenticationProvider.superPassword=hunter2", nil)
	require.Equal(t, secret, c.SuperDigest)
	all := strings.Join(texts(c.Warnings), "\n") + c.String()
	require.NotContains(t, all, "hunter2")
	require.NotContains(t, all, "xQJmx")
	require.Contains(t, c.String(), "# DigestAuthenticationProvider.superDigest is set, and not shown\n")
	require.Contains(t, all, "no effect: DigestAuthenticationProvider.enabled is false")
}

// TestPropertyNumbers checks the numbers that Java reads through Long.getLong: several bases, and the default for
// everything else.
func TestPropertyNumbers(t *testing.T) {
	tests := []struct {
		value string
		want  int
		warn  bool
	}{
		{"250", 250, false}, {"+250", 250, false}, {"0x10", 16, false}, {"0X1f", 31, false}, {"#20", 32, false}, {"010", 8, false},
		{"0", 2, false}, {"1", 2, false}, {"-4", 2, false}, {"-0x10", 2, false},
		{"", 100000, true}, {"12k", 100000, true}, {"08", 100000, true}, {"0x", 100000, true}, {"--1", 100000, true}, {"1_000", 100000, true},
		{"99999999999", 100000, true}, {"99999999999999999999", 100000, true},
	}
	for _, tt := range tests {
		c := mustParse(t, base+"clientPort=1\nsnapCount="+tt.value, nil)
		require.Equal(t, tt.want, c.SnapCount, tt.value)
		require.Equal(t, tt.warn, len(c.Warnings) == 1, "%s: %v", tt.value, c.Warnings)
	}
}

func TestSwitches(t *testing.T) {
	tests := []struct {
		line string
		get  func(*Config) bool
		want bool
		warn bool
	}{
		{"forceSync=no", func(c *Config) bool { return c.ForceSync }, false, true}, // warned of the danger
		{"forceSync=yes", func(c *Config) bool { return c.ForceSync }, true, false},
		{"forceSync=false", func(c *Config) bool { return c.ForceSync }, true, true},
		{"forceSync=NO", func(c *Config) bool { return c.ForceSync }, true, true},
		{"skipACL=yes", func(c *Config) bool { return c.SkipACL }, true, true}, // warned of the danger
		{"skipACL=true", func(c *Config) bool { return c.SkipACL }, false, true},
		{"skipACL=no", func(c *Config) bool { return c.SkipACL }, false, false},
		{"digest.enabled=false", func(c *Config) bool { return c.DigestEnabled }, false, false},
		{"digest.enabled=TRUE", func(c *Config) bool { return c.DigestEnabled }, true, false},
		{"digest.enabled=yes", func(c *Config) bool { return c.DigestEnabled }, false, true},
		{"extendedTypesEnabled=true", func(c *Config) bool { return c.ExtendedTypesEnabled }, true, false},
		{"reconfigEnabled=TrUe", func(c *Config) bool { return c.ReconfigEnabled }, true, false},
		{"admin.enableServer=no", func(c *Config) bool { return c.Admin.Enabled }, true, true},
	}
	for _, tt := range tests {
		c := mustParse(t, base+"clientPort=1\n"+tt.line, nil)
		require.Equal(t, tt.want, tt.get(c), tt.line)
		require.Equal(t, tt.warn, len(c.Warnings) > 0, "%s: %v", tt.line, c.Warnings)
	}
}

func TestRaisedAndSwitchedOff(t *testing.T) {
	c := mustParse(t, base+`clientPort=1
snapSizeLimitInKb=0
txnLogSizeLimitInKb=-1
autopurge.snapRetainCount=1
jute.maxbuffer.extrasize=5
preAllocSize=lots
snapshot.compression.method=zip
maxSessionTimeout=60000000
dataLogDir=logs
`, nil)
	require.Zero(t, c.SnapSizeLimitKB)
	require.Zero(t, c.TxnLogSizeLimitKB)
	require.Equal(t, 3, c.AutopurgeSnapRetainCount)
	require.Equal(t, 1024, c.JuteMaxBufferExtraBytes)
	require.EqualValues(t, 65536, c.PreAllocKB)
	require.Empty(t, c.SnapshotCompression)
	require.EqualValues(t, 60000000, c.MaxSessionTimeoutMs)
	require.Equal(t, []string{
		"zoo.cfg:5: autopurge.snapRetainCount: 1 is too small, 3 snapshots are kept",
		`zoo.cfg:7: preAllocSize: "lots" is not a number, the default 65536 is used, as ZooKeeper does`,
		`zoo.cfg:8: snapshot.compression.method: "zip" is not gz or snappy, snapshots are not compressed, as ZooKeeper does`,
		"zoo.cfg:10: dataLogDir: logs is relative. Prepend ./ to indicate that you're sure!",
	}, texts(c.Warnings))

	c = mustParse(t, base+"tickTime=2000000000", nil)
	require.EqualValues(t, 1<<31-1, c.MaxSessionTimeoutMs, "20 ticks must not overflow")
	c = mustParse(t, base+"jute.maxbuffer=2000000000", nil)
	require.Equal(t, 1<<31-1, c.JuteMaxBufferBytes+c.JuteMaxBufferExtraBytes)
}

func TestProperties(t *testing.T) {
	c := mustParse(t, base+"clientPort=1\nsnapCount=5", map[string]string{
		"zookeeper.snapCount":              "6", // the file wins
		"zookeeper.globalOutstandingLimit": "7",
		"jute.maxbuffer":                   "0x200000",
		"fsync.warningthresholdms":         "20",
		"zookeeper.tickTime":               "9",
		"zookeeper.secureClientPort":       "9",
		"snapSizeLimitInKb":                "9",
		"zookeeper.readonlymode.enabled":   "true",
		"zookeeper.preAlocSize":            "9",
		"zookeeper.multiAddress.enabled":   "true",
		"com.sun.management.jmxremote":     "",
		"user.timezone":                    "UTC",
	})
	require.Equal(t, 5, c.SnapCount)
	require.Equal(t, 7, c.GlobalOutstandingLimit)
	require.Equal(t, 0x200000, c.JuteMaxBufferBytes)
	require.EqualValues(t, 20, c.FsyncWarningThresholdMs)
	require.EqualValues(t, 3000, c.TickTimeMs)
	require.True(t, c.MultiAddressEnabled)
	require.False(t, c.ReadOnlyMode)
	require.ElementsMatch(t, []string{
		"-DsnapSizeLimitInKb: no effect: the property is called zookeeper.snapSizeLimitInKb",
		"-Dzookeeper.preAlocSize: unknown key without effect (ZooKeeper would make it the system property zookeeper.preAlocSize); did you mean preAllocSize?",
		"-Dzookeeper.readonlymode.enabled: no effect: the property is called readonlymode.enabled",
		"-Dzookeeper.secureClientPort: no effect: ZooKeeper reads secureClientPort from the file only",
		"-Dzookeeper.tickTime: no effect: ZooKeeper reads tickTime from the file only",
		"zoo.cfg:3: snapCount: also given as -Dzookeeper.snapCount; the file counts, as in ZooKeeper",
	}, texts(c.Warnings))

	require.Equal(t, []string{
		"sessionRequireClientSASLAuth: Authentication scheme sasl is not available. Add authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
	}, faultsOf(t, base, map[string]string{"zookeeper.sessionRequireClientSASLAuth": "true"}))
}

func TestBareProperties(t *testing.T) {
	const line = base + "clientPort=1\njute.maxbuffer=4194304\nznode.container.checkIntervalMs=5\nreadonlymode.enabled=true"
	c := mustParse(t, line, nil)
	require.Equal(t, 4194304, c.JuteMaxBufferBytes)
	require.Equal(t, 4194304, c.JuteMaxBufferExtraBytes)
	require.EqualValues(t, 5, c.ContainerCheckIntervalMs)
	require.True(t, c.FourLetterWord("isro"))
	require.Equal(t, "zoo.cfg:3: jute.maxbuffer: ZooKeeper takes this one as -Djute.maxbuffer only and would ignore the line; here it counts", c.Warnings[0].String())
	require.Len(t, c.Warnings, 3)

	c = mustParse(t, line, map[string]string{"jute.maxbuffer": "2000"})
	require.Equal(t, 2000, c.JuteMaxBufferBytes)
	require.Equal(t, "zoo.cfg:3: jute.maxbuffer: also given as -Djute.maxbuffer, which counts", c.Warnings[0].String())
}

func TestFromArguments(t *testing.T) {
	c, err := FromArguments([]string{"2182", "/d"}, map[string]string{"zookeeper.snapCount": "9"})
	require.NoError(t, err)
	require.Equal(t, ":2182", c.ClientAddr())
	require.Equal(t, "/d", c.DataDir)
	require.EqualValues(t, 3000, c.TickTimeMs)
	require.Equal(t, 60, c.MaxClientCnxns)
	require.Equal(t, 9, c.SnapCount)
	require.Empty(t, c.Warnings)

	c, err = FromArguments([]string{"2182", "/d", "500", "0"}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 500, c.TickTimeMs)
	require.Equal(t, 0, c.MaxClientCnxns)

	_, err = FromArguments([]string{"x", "/d", "y"}, nil)
	require.EqualError(t, err, "invalid configuration\nclientPort: For input string: \"x\"\ntickTime: For input string: \"y\"")
	for _, args := range [][]string{nil, {"1"}, {"1", "2", "3", "4", "5"}} {
		_, err = FromArguments(args, nil)
		require.Error(t, err)
	}
}

func TestJVMProperties(t *testing.T) {
	require.Equal(t, map[string]string{"zookeeper.snapCount": "2", "a": "b=c", "flag": ""},
		JVMProperties("  -Xmx1G -Dzookeeper.snapCount=1 -Da=b=c\t-Dflag -D=x -D -Dzookeeper.snapCount=2\n-XX:+UseG1GC"))
	require.Empty(t, JVMProperties(""))
}

func TestLoadFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	dynamic := write("zoo.dyn", "server.7=localhost:2888:3888:participant;127.0.0.1:2199\n")
	cfg := write("zoo.cfg", "dataDir="+dir+"\ndynamicConfigFile="+dynamic+"\n")
	write("myid", "7 \nrest")

	c, err := Load(cfg, nil)
	require.NoError(t, err)
	require.Equal(t, cfg, c.Path)
	require.EqualValues(t, 7, c.MyID)
	require.Equal(t, "127.0.0.1:2199", c.ClientAddr())
	require.Empty(t, c.Warnings)

	write("myid", "seven")
	_, err = Load(cfg, nil)
	require.ErrorContains(t, err, "serverid seven is not a number")

	write("myid", "7")
	write("zoo.dyn", "server.7=localhost:2888:3888\nversion=1\ntickTime=3\n")
	_, err = Load(cfg, nil)
	require.EqualError(t, err, "Error processing "+cfg+"\n"+
		dynamic+":2: version: dynamic file shouldn't have version inside\n"+
		dynamic+":3: tickTime: Unrecognised parameter: tickTime")

	_, err = Load(filepath.Join(dir, "none.cfg"), nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "Error processing ")
	_, err = Load(write("huge.cfg", strings.Repeat("#", fileBytesMax+1)), nil)
	require.ErrorIs(t, err, errTooLong)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	_, err = Load(filepath.Join(dir, "folder"), nil)
	require.Error(t, err)
}

func TestClientPortAddressMustResolve(t *testing.T) {
	l := newLoader("zoo.cfg")
	l.resolve = func(host string) ([]string, error) { return nil, errors.New("no such host") }
	l.file("zoo.cfg", []byte(base+"clientPort=2181\nclientPortAddress=nowhere.invalid"))
	_, err := l.finish()
	require.EqualError(t, err, "Error processing zoo.cfg\nzoo.cfg:3: clientPortAddress: nowhere.invalid cannot be resolved: no such host")
}

func TestFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 5 * faultsMax {
		fmt.Fprintf(&b, "server.x%d=\nunknown%d=1\n", i, i)
	}
	_, err := parse([]byte(b.String()), nil)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Faults, faultsMax)
	require.Len(t, e.Warnings, faultsMax)
}

func TestValidate(t *testing.T) {
	c := Default()
	c.ClientPort = 0
	require.NoError(t, c.Validate(), "any free port")
	c.TickTimeMs, c.DataDir, c.SnapshotCompression = 0, "", "zip"
	require.EqualError(t, c.Validate(), "invalid configuration\ndataDir is not set\ntickTime is not set\n"+
		`snapshot.compression.method: "zip" is not gz or snappy`)
}

// TestManyUnknownKeys: a large file full of nonsense costs no more than reading it.
func TestManyUnknownKeys(t *testing.T) {
	var b strings.Builder
	for i := range 40000 {
		fmt.Fprintf(&b, "tickTime%d=1\n", i)
	}
	require.Less(t, b.Len(), fileBytesMax)
	c := mustParse(t, base+b.String(), nil)
	require.Len(t, c.Warnings, faultsMax)
}
