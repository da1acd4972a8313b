package conf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogProperties: what the properties of ZooKeeper's own log4j.properties mean.
func TestLogProperties(t *testing.T) {
	tests := []struct {
		name, text, level     string
		toFile, notToConsole  bool
		path                  string
		consoleLevel, onlyFor string
		warnings              []string
	}{
		{name: "nothing", path: "zookeeper.log"},
		{name: "as scripts set it", text: "root.logger=INFO,CONSOLE\nlog.dir=/var/log/zookeeper\nlog.file=zookeeper-root-server-host.log\n",
			level: "info", path: "/var/log/zookeeper/zookeeper-root-server-host.log"},
		{name: "a file", text: "root.logger=WARN, ROLLINGFILE\nlog.dir=/l\n", level: "warn", toFile: true, notToConsole: true, path: "/l/zookeeper.log"},
		{name: "both", text: "root.logger=debug,rollingfile, CONSOLE\nconsole.threshold=WARN\nlog.threshold=DEBUG\n",
			level: "debug", toFile: true, path: "zookeeper.log", consoleLevel: "warn", onlyFor: "debug"},
		{name: "unknown", text: "root.logger=LOUD,SYSLOG\nconsole.threshold=quiet\nlog.maxfilesize=big\nlog.maxbackupindex=0\n", path: "zookeeper.log",
			warnings: []string{
				`zoo.cfg:3: root.logger: "LOUD,SYSLOG" does not begin with a level, and counts for nothing`,
				`zoo.cfg:4: console.threshold: "quiet" is not a level, and counts for nothing`,
				`zoo.cfg:5: log.maxfilesize: "big" is not a size such as 256MB, the default 268435456 is used`,
				"zoo.cfg:6: log.maxbackupindex: 0 is outside 1 to 1000, the default 20 is used",
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := mustParse(t, base+"clientPort=1\n"+tt.text, nil)
			require.Equal(t, tt.warnings, texts(c.Warnings))
			require.Equal(t, tt.level, c.LogLevel)
			require.Equal(t, tt.toFile, c.Log.ToFile)
			require.Equal(t, tt.notToConsole, c.Log.NotToConsole)
			require.Equal(t, tt.path, c.Log.Path())
			require.Equal(t, tt.consoleLevel, c.Log.ConsoleLevel)
			require.Equal(t, tt.onlyFor, c.Log.FileLevel)
		})
	}
	for text, want := range map[string]int64{"10MB": 10 << 20, "7": 7, "64 kb": 64 << 10, "1gb": 1 << 30, "99999999999GB": 256 << 20, "-1": 256 << 20} {
		require.Equal(t, want, mustParse(t, base+"log.maxfilesize="+text, nil).Log.FileBytesMax, text)
	}
}

// TestAuditPath: a file of its own, one beside the log, or the log itself.
func TestAuditPath(t *testing.T) {
	require.Empty(t, mustParse(t, base+"audit.enable=true", nil).AuditPath())
	require.Equal(t, "/l/zookeeper_audit.log", mustParse(t, base, map[string]string{"zookeeper.log.dir": "/l"}).AuditPath())
	c := mustParse(t, base+"zabra.audit.file=/a\nlog.dir=/l\nzabra.audit.format=JSON", nil)
	require.Equal(t, "/a", c.AuditPath())
	require.Equal(t, AuditJSON, c.Audit.Format)
	c = mustParse(t, base+"clientPort=1\nzabra.audit.format=xml", map[string]string{"zabra.audit.file": "/b"})
	require.Equal(t, "/b", c.AuditPath())
	require.Equal(t, AuditText, c.Audit.Format)
	require.Equal(t, []string{`zoo.cfg:3: zabra.audit.format: "xml" is not one of text, json`}, texts(c.Warnings))
}
