package conf

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// loadField parses a file of testdata/field as server number id, with the properties that its start script sets.
func loadField(t *testing.T, name, id, flags string, files map[string]string) (*Config, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "field", name))
	require.NoError(t, err)
	l := newLoader(name)
	l.readFile = func(path string, _ int) ([]byte, error) {
		if filepath.Base(path) == "myid" && id != "" {
			return []byte(id), nil
		}
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	l.properties(JVMProperties(flags))
	l.file(name, text)
	return l.finish()
}

const (
	noReconfig = "no effect: this version cannot change the ensemble at run time"
	skipsACLs  = "ACLs are not checked: every client may do everything"
)

// threeLines are what operators put into a dynamic file.
const threeLines = "server.1=a:2888:3888:participant;2181\nserver.2=b:2888:3888:participant;2181\nserver.3=c:2888:3888:participant;2181\n"

// TestFilesOfTheField: the configurations that images, charts, operators and guides come with start as they are. The keys
// and values are theirs.
func TestFilesOfTheField(t *testing.T) {
	tests := []struct {
		file, id, flags string
		files           map[string]string
		voters          int // 0: standalone
		addr            string
		warnings        []string
		check           func(c *Config) bool
	}{
		{file: "official-image.cfg", id: "1", addr: "0.0.0.0:2181",
			check: func(c *Config) bool {
				return c.LogDir() == "/datalog" && c.AutopurgePurgeIntervalHours == 0 && c.Admin.Enabled && c.Admin.Port == 8080
			}},
		{file: "official-image-three.cfg", id: "2", flags: "-Xmx1000m -Dzookeeper.electionPortBindRetry=50", voters: 3, addr: "0.0.0.0:2181",
			check: func(c *Config) bool {
				return c.ElectionPortBindRetry == 50 && c.QuorumListenOnAllIPs && c.FourLetterWord("stat")
			}},
		{file: "bitnami.cfg", id: "3", flags: "-Xmx1024m -Xms1024m -Dzookeeper.electionPortBindRetry=0 -Dzookeeper.fips-mode=true", voters: 3, addr: "0.0.0.0:2181",
			check: func(c *Config) bool {
				return strings.HasSuffix(c.Metrics.ClassName, ".PrometheusMetricsProvider") && c.Metrics.Port == 9141 && c.ElectionPortBindRetry == 0 && c.MaxSessionTimeoutMs == 40000
			}},
		{file: "pravega-operator.cfg", id: "1", files: map[string]string{"/data/zoo.cfg.dynamic": threeLines}, voters: 3, addr: "0.0.0.0:2181",
			warnings: []string{
				"pravega-operator.cfg:4: " + "reconfigEnabled: " + noReconfig,
				"pravega-operator.cfg:5: " + "skipACL: " + skipsACLs,
			},
			check: func(c *Config) bool { return c.SkipACL && c.FourLetterWord("crst") && !c.FourLetterWord("wchp") }},
		{file: "kafka.cfg", addr: ":2181", check: func(c *Config) bool { return c.MaxClientCnxns == 0 && !c.Admin.Enabled }},
		{file: "debian.cfg", addr: ":2181", check: func(c *Config) bool { return c.MinSessionTimeoutMs == 4000 }},
		{file: "solr.cfg", addr: ":9983", check: func(c *Config) bool { return !c.Admin.Enabled }},
		{file: "solr-guide.cfg", id: "1", voters: 3, addr: ":2181", check: func(c *Config) bool { return c.FourLetterWord("conf") }},
		{file: "hbase.cfg", id: "0", voters: 3, addr: ":2181", check: func(c *Config) bool { return c.MyID == 0 && c.TickTimeMs == 3000 }},
		{file: "clickhouse.cfg", id: "2", flags: "-Djute.maxbuffer=8388608", files: map[string]string{"/etc/zookeeper/conf/zoo.cfg.dynamic": threeLines},
			voters: 3, addr: "0.0.0.0:2181", check: func(c *Config) bool { return c.JuteMaxBufferBytes == 8<<20 && c.PreAllocKB == 131072 }},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			c, err := loadField(t, tt.file, tt.id, tt.flags, tt.files)
			require.NoError(t, err)
			require.Equal(t, tt.warnings, texts(c.Warnings))
			require.Equal(t, tt.addr, c.ClientAddr())
			require.True(t, tt.check(c))
			if tt.voters == 0 {
				require.Nil(t, c.Ensemble)
				return
			}
			require.Len(t, c.Ensemble.Voters(), tt.voters)
		})
	}
}

// TestEncryptedFileOfTheField: what asks for encryption is understood.
func TestEncryptedFileOfTheField(t *testing.T) {
	c, err := loadField(t, "strimzi.cfg", "1", "-Dzookeeper.skipACL=yes -Dzookeeper.electionPortBindRetry=0", nil)
	require.NoError(t, err)
	require.True(t, c.ClientTLS())
	require.True(t, c.ServerTLS())
	require.Equal(t, ":2181", c.SecureClientAddr())
	require.Equal(t, "127.0.0.1:12181", c.ClientAddr(), "the port of the server's own line stays a plain one")
	require.Equal(t, Store{Location: "/tmp/zookeeper/cluster.keystore.p12", Password: "changeit", Type: "PKCS12"}, c.Security.Quorum.KeyStore)
	for _, w := range texts(c.Warnings) {
		require.NotContains(t, w, "ssl")
	}
}
