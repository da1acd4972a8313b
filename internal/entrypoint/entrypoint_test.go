package entrypoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
)

func settings(t *testing.T, environ ...string) *Settings {
	t.Helper()
	s, err := FromEnvironment(environ, "host")
	require.NoError(t, err)
	return s
}

// official is the file that the official image makes of an environment that says nothing.
const official = `dataDir=/data
dataLogDir=/datalog
tickTime=2000
initLimit=5
syncLimit=2
autopurge.snapRetainCount=3
autopurge.purgeInterval=0
maxClientCnxns=60
standaloneEnabled=true
admin.enableServer=true
server.1=localhost:2888:3888;2181
`

func TestConfig(t *testing.T) {
	const own = "server.1=localhost:2888:3888;2181\n"
	tests := []struct {
		name    string
		environ []string
		want    string
	}{
		{"nothing", nil, official},
		{"empty is nothing", []string{"ZOO_TICK_TIME=", "ZOO_SERVERS= ", "ZOO_CFG_EXTRA="}, official},
		{"every line", []string{
			"ZOO_DATA_DIR=/d", "ZOO_DATA_LOG_DIR=/l", "ZOO_TICK_TIME=1000", "ZOO_INIT_LIMIT=7", "ZOO_SYNC_LIMIT=3", "ZOO_AUTOPURGE_PURGEINTERVAL=1",
			"ZOO_AUTOPURGE_SNAPRETAINCOUNT=5", "ZOO_MAX_CLIENT_CNXNS=0", "ZOO_STANDALONE_ENABLED=false", "ZOO_ADMINSERVER_ENABLED=false",
			"ZOO_4LW_COMMANDS_WHITELIST=srvr, mntr", "ZOO_SERVERS=server.1=zoo1:2888:3888;2181  server.2=zoo2:2888:3888:observer;2181",
		}, `dataDir=/d
dataLogDir=/l
tickTime=1000
initLimit=7
syncLimit=3
autopurge.snapRetainCount=5
autopurge.purgeInterval=1
maxClientCnxns=0
standaloneEnabled=false
admin.enableServer=false
server.1=zoo1:2888:3888;2181
server.2=zoo2:2888:3888:observer;2181
4lw.commands.whitelist=srvr, mntr
`},
		{"extra", []string{"ZOO_CFG_EXTRA=quorumListenOnAllIPs=true maxCnxns=9"}, official + "quorumListenOnAllIPs=true\nmaxCnxns=9\n"},
		{"extra in lines", []string{"ZOO_CFG_EXTRA=\n  a=1\n  b=2=3\n"}, official + "a=1\nb=2=3\n"},
		{"extra with a blank in a value", []string{"ZOO_CFG_EXTRA=4lw.commands.whitelist=ruok, srvr a=1"}, official + "4lw.commands.whitelist=ruok, srvr\na=1\n"},
		{"counted servers", []string{"ZOO_SERVERS_COUNT=3", "ZOO_SERVERS_DOMAIN=zk.prod.svc", "HOSTNAME=my-zabra-2"}, strings.Replace(official, own,
			"server.1=my-zabra-0.zk.prod.svc:2888:3888;2181\nserver.2=my-zabra-1.zk.prod.svc:2888:3888;2181\nserver.3=my-zabra-2.zk.prod.svc:2888:3888;2181\n", 1)},
		{"counted servers without a domain", []string{"ZOO_SERVERS_COUNT=1", "HOSTNAME=zk-0.example.com"}, strings.Replace(official, own, "server.1=zk-0:2888:3888;2181\n", 1)},
		{"the list of servers counts", []string{"ZOO_SERVERS_COUNT=3", "HOSTNAME=zk-1", "ZOO_SERVERS=server.2=x:1:2;3"}, strings.Replace(official, own, "server.2=x:1:2;3\n", 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, err := settings(t, tt.environ...).Config()
			require.NoError(t, err)
			require.Equal(t, tt.want, text)
		})
	}
}

func TestFaults(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		want    string
	}{
		{"server without a number", []string{"ZOO_SERVERS=zoo1:2888:3888"}, `ZOO_SERVERS: "zoo1:2888:3888" is not of the form server.1=host:2888:3888;2181`},
		{"id", []string{"ZOO_MY_ID=one"}, `ZOO_MY_ID: "one" is not a number`},
		{"count", []string{"ZOO_SERVERS_COUNT=256"}, `ZOO_SERVERS_COUNT: "256" is not a number from 1 to 255`},
		{"no ordinal", []string{"ZOO_SERVERS_COUNT=3", "HOSTNAME=zookeeper"}, `ZOO_SERVERS_COUNT is set, but the host name "zookeeper" does not end in -0, -1 and so on: set ZOO_MY_ID and ZOO_SERVERS instead`},
		{"ordinal that is no number", []string{"ZOO_SERVERS_COUNT=3", "HOSTNAME=zk-a1"}, `ZOO_SERVERS_COUNT is set, but the host name "zk-a1" does not end in -0, -1 and so on: set ZOO_MY_ID and ZOO_SERVERS instead`},
		{"one too many", []string{"ZOO_SERVERS_COUNT=3", "HOSTNAME=zk-3"}, `ZOO_SERVERS_COUNT is 3, and the host name "zk-3" is one of more: raise it for all servers`},
		{"two lines", []string{"ZOO_TICK_TIME=1\nskipACL=yes"}, "ZOO_TICK_TIME has more than one line"},
		{"two lines of words", []string{"ZOO_4LW_COMMANDS_WHITELIST=a\rb"}, "ZOO_4LW_COMMANDS_WHITELIST has more than one line"},
		{"too long", []string{"ZOO_CFG_EXTRA=" + strings.Repeat("x", valueBytesMax+1)}, "ZOO_CFG_EXTRA is longer than 65536 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			environ := append([]string{"ZOO_CONF_DIR=" + dir, "ZOO_DATA_DIR=" + dir}, tt.environ...)
			s, err := FromEnvironment(environ, "host")
			if err == nil {
				_, err = s.Prepare()
			}
			require.EqualError(t, err, tt.want)
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries, "nothing is written of what is wrong")
		})
	}
}

func TestMyID(t *testing.T) {
	tests := []struct {
		environ []string
		want    int64
	}{
		{nil, 1},
		{[]string{"ZOO_MY_ID=7"}, 7},
		{[]string{"HOSTNAME=zk-2"}, 1},
		{[]string{"HOSTNAME=zk-2", "ZOO_SERVERS_COUNT=3"}, 3},
		{[]string{"HOSTNAME=zk-2", "ZOO_SERVERS_COUNT=3", "ZOO_MY_ID=9"}, 9},
	}
	for _, tt := range tests {
		id, err := settings(t, tt.environ...).MyID()
		require.NoError(t, err)
		require.Equal(t, tt.want, id, "%q", tt.environ)
	}
	s, err := FromEnvironment([]string{"ZOO_SERVERS_COUNT=2"}, "name-1")
	require.NoError(t, err)
	id, err := s.MyID()
	require.NoError(t, err)
	require.EqualValues(t, 2, id, "the name of the host counts where HOSTNAME is not set")
}

// TestPrepare writes into an empty root, and then leaves what is there.
func TestPrepare(t *testing.T) {
	root := t.TempDir()
	environ := []string{"ZOO_CONF_DIR=" + root + "/conf", "ZOO_DATA_DIR=" + root + "/data", "ZOO_DATA_LOG_DIR=" + root + "/datalog", "ZOO_MY_ID=2",
		"ZOO_SERVERS=server.1=a:2888:3888;2181 server.2=b:2888:3888;2181 server.3=c:2888:3888;2181"}
	notes, err := settings(t, environ...).Prepare()
	require.NoError(t, err)
	require.Empty(t, notes)

	c, err := conf.Load(filepath.Join(root, "conf", "zoo.cfg"), nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, c.MyID)
	require.Len(t, c.Ensemble.Voters(), 3)
	require.Equal(t, "0.0.0.0:2181", c.ClientAddr())
	require.Equal(t, root+"/datalog", c.LogDir())

	// A second start with the same environment is silent, one with another is told what counts.
	notes, err = settings(t, environ...).Prepare()
	require.NoError(t, err)
	require.Empty(t, notes)
	notes, err = settings(t, append(environ, "ZOO_TICK_TIME=1", "ZOO_MY_ID=3")...).Prepare()
	require.NoError(t, err)
	require.Equal(t, []string{
		root + "/conf/zoo.cfg is there and counts; the environment variables ask for something else",
		root + "/data/myid says 2 and counts; the environment says 3",
	}, notes)
	again, err := conf.Load(filepath.Join(root, "conf", "zoo.cfg"), nil)
	require.NoError(t, err)
	require.EqualValues(t, 2000, again.TickTimeMs)
	require.EqualValues(t, 2, again.MyID)
	for name, mode := range map[string]fs.FileMode{"conf/zoo.cfg": 0o640, "data/myid": 0o644} {
		info, err := os.Stat(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), "%s: zoo.cfg may hold passwords", name)
	}
	for _, dir := range []string{"conf", "data"} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		require.NoError(t, err)
		require.Len(t, entries, 1, "no temporary files are left")
	}
}

// TestCreateReplacesNothing: a file that came into being meanwhile is left alone.
func TestCreateReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "myid")
	require.NoError(t, create(path, "1\n", 0o644))
	require.ErrorIs(t, create(path, "2\n", 0o644), fs.ErrExist)
	text, err := keep(path, "2\n", 0o644)
	require.NoError(t, err)
	require.Equal(t, "1\n", text)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary files are left")
}

// TestPrepareWithMountedFiles: a zoo.cfg and a myid of the operator's own need no variables and bring no notes.
func TestPrepareWithMountedFiles(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"zoo.cfg": "dataDir=/x\nclientPort=1\n", "myid": "5"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o400))
	}
	notes, err := settings(t, "ZOO_CONF_DIR="+root, "ZOO_DATA_DIR="+root).Prepare()
	require.NoError(t, err)
	require.Empty(t, notes)
	text, err := os.ReadFile(filepath.Join(root, "zoo.cfg"))
	require.NoError(t, err)
	require.Equal(t, "dataDir=/x\nclientPort=1\n", string(text))
}

func TestPrepareWhereNothingCanBeWritten(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := settings(t, "ZOO_CONF_DIR="+file, "ZOO_DATA_DIR="+root).Prepare()
	require.ErrorContains(t, err, "mount a folder that can be written on "+file+", or a zoo.cfg of your own")
	_, err = settings(t, "ZOO_CONF_DIR="+root, "ZOO_DATA_DIR="+file).Prepare()
	require.ErrorContains(t, err, "mount a folder that can be written on "+file)
}

func TestCommand(t *testing.T) {
	const cfg = "/conf/zoo.cfg"
	p := Program{
		IsVerb: func(name string) bool {
			return name == "server" || name == "version" || name == "health" || name == "check-conf"
		},
		// A server here has the flags -x VALUE and --bad, which is refused.
		Positional: func(args []string) (positional []string, err error) {
			for i := 0; i < len(args); i++ {
				switch {
				case args[i] == "--bad":
					return nil, errors.New("unknown flag")
				case args[i] == "-x":
					i++
				case !strings.HasPrefix(args[i], "-"):
					positional = append(positional, args[i])
				}
			}
			return positional, nil
		},
		Dirs: func(config string) (string, string, error) { return "/log/of" + config, "/data/of" + config, nil },
	}
	tests := []struct{ args, want string }{
		{"", "server " + cfg},
		{"zabra", "server " + cfg},
		{"server", "server " + cfg},
		{"zabra server -Da=b", "server -Da=b " + cfg},
		{"-Dzookeeper.snapCount=7 --log-format=json", "server -Dzookeeper.snapCount=7 --log-format=json " + cfg},
		{"server -x value", "server -x value " + cfg},
		{"-x value", "server -x value " + cfg},
		{"-x value /x/zoo.cfg", "server -x value /x/zoo.cfg"},
		{"server --bad value", "server --bad value"},
		{"server /x/zoo.cfg", "server /x/zoo.cfg"},
		{"server 2181 /data", "server 2181 /data"},
		{"zkServer.sh start-foreground", "server " + cfg},
		{"zkServer.sh start", "server " + cfg},
		{"/bin/zkServer.sh start-foreground /x/y.cfg", "server /x/y.cfg"},
		{"zkServer.sh --config /etc/zk start-foreground", "server /etc/zk/zoo.cfg"},
		{"zkServer.sh --config /etc/zk start-foreground a.cfg", "server /etc/zk/a.cfg"},
		{"zkServer.sh status", "status " + cfg},
		{"zkServer.sh version", "version --zookeeper"},
		{"zkCli.sh -server a:2181 ls /", "cli -server a:2181 ls /"},
		{"zkCleanup.sh -n 5", "purge /log/of/conf/zoo.cfg /data/of/conf/zoo.cfg -n 5"},
		{"health --ready", "health --ready"},
		{"zabra check-conf /x", "check-conf /x"},
		{"--help", "--help"},
	}
	for _, tt := range tests {
		line, err := settings(t).Command(strings.Fields(tt.args), p)
		require.NoError(t, err, tt.args)
		require.Equal(t, tt.want, strings.Join(line, " "), tt.args)
	}
	for args, want := range map[string]string{
		"bash -c ls":           `"bash" is not in this image, which has no shell and no other programs: name zkServer.sh, zkCli.sh, zkCleanup.sh, or a verb of zabra`,
		"zkServer.sh stop":     "zkServer.sh stop: the server is this container's only process: stop or restart the container",
		"zkServer.sh":          "Usage: zkServer.sh [--config <conf-dir>] {start-foreground|start|status|version} [config file]",
		"zkServer.sh nonsense": "Usage: zkServer.sh [--config <conf-dir>] {start-foreground|start|status|version} [config file]",
	} {
		_, err := settings(t).Command(strings.Fields(args), p)
		require.EqualError(t, err, want)
	}
}
