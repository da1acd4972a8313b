package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fieldEnsemble is where the members of an ensemble on this machine are to be found.
type fieldEnsemble struct{ quorum, election, client []int }

func newFieldEnsemble(t *testing.T, n int) *fieldEnsemble {
	e := &fieldEnsemble{}
	for range n {
		e.quorum, e.election, e.client = append(e.quorum, freePort(t)), append(e.election, freePort(t)), append(e.client, freePort(t))
	}
	return e
}

var fieldServerLine = regexp.MustCompile(`^(server\.\d+=)[^:]+:2888:3888(.*)$`)

// place gives the i-th member, whose id is one more than that if ids begin with 1, a configuration from the field with directories
// and ports of its own. Every other letter of it stays as it is.
func (e *fieldEnsemble) place(t *testing.T, text string, i, firstID int) (file string) {
	t.Helper()
	dir := t.TempDir()
	line := func(key string, at int) string {
		return fmt.Sprintf("%s127.0.0.1:%d:%d", key, e.quorum[at], e.election[at])
	}
	var out, dynamic strings.Builder
	servers := 0
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		key, _, _ := strings.Cut(l, "=")
		switch {
		case key == "dataDir", key == "dataLogDir":
			l = key + "=" + filepath.Join(dir, key)
			require.NoError(t, os.MkdirAll(filepath.Join(dir, key), 0o700))
		case key == "clientPort":
			l = "clientPort=" + strconv.Itoa(e.client[i])
		case key == "admin.serverPort", key == "metricsProvider.httpPort":
			l = key + "=" + strconv.Itoa(freePort(t))
		case key == "dynamicConfigFile":
			l = key + "=" + filepath.Join(dir, "zoo.cfg.dynamic")
			for at := range e.quorum {
				fmt.Fprintf(&dynamic, "%s:participant;%d\n", line(fmt.Sprintf("server.%d=", at+firstID), at), e.client[at])
			}
		case fieldServerLine.MatchString(l):
			m := fieldServerLine.FindStringSubmatch(l)
			l = line(m[1], servers) + strings.Replace(m[2], ";2181", ";"+strconv.Itoa(e.client[servers]), 1)
			servers++
		}
		out.WriteString(l + "\n")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dataDir", "myid"), []byte(strconv.Itoa(i+firstID)+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "zoo.cfg.dynamic"), []byte(dynamic.String()), 0o600))
	file = filepath.Join(dir, "zoo.cfg")
	require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o600))
	return file
}

// TestFieldConfigurationsStart: what images, charts, operators and guides generate starts and serves, with the properties that
// their start scripts set. Only directories, hosts and ports are other ones.
func TestFieldConfigurationsStart(t *testing.T) {
	tests := []struct {
		file, flags      string
		members, firstID int
	}{
		{file: "official-image.cfg", members: 1, firstID: 1},
		{file: "kafka.cfg", members: 1, firstID: 1},
		{file: "debian.cfg", members: 1, flags: "-Dzookeeper.log.dir=. -Dzookeeper.root.logger=INFO,CONSOLE -Dcom.sun.management.jmxremote"},
		{file: "solr.cfg", members: 1},
		{file: "official-image-three.cfg", members: 3, firstID: 1, flags: "-Xmx1000m -Dzookeeper.electionPortBindRetry=50"},
		{file: "bitnami.cfg", members: 3, firstID: 1, flags: "-Xmx1024m -Xms1024m -Dzookeeper.electionPortBindRetry=0 -Dzookeeper.fips-mode=true"},
		{file: "pravega-operator.cfg", members: 3, firstID: 1},
		{file: "hbase.cfg", members: 3},
		{file: "clickhouse.cfg", members: 3, firstID: 1, flags: "-Djute.maxbuffer=8388608"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "..", "conf", "testdata", "field", tt.file))
			require.NoError(t, err)
			e := newFieldEnsemble(t, tt.members)
			var servers []*running
			for i := range tt.members {
				cmd := program(t, "server", e.place(t, string(text), i, tt.firstID))
				cmd.Env = append(cmd.Env, "SERVER_JVMFLAGS="+tt.flags)
				what := "] - serving {"
				if tt.members > 1 {
					what = "] - started {"
				}
				r, _ := launch(t, cmd, what)
				servers = append(servers, r)
			}
			modes := map[string]int{}
			for i, r := range servers {
				if tt.members > 1 {
					r.await(t, "serving clients")
				}
				_, mode, ok := strings.Cut(ask(t, e.client[i], "srvr"), "Mode: ")
				require.True(t, ok)
				mode, _, _ = strings.Cut(mode, "\n")
				modes[mode]++
			}
			want := map[string]int{"standalone": 1}
			if tt.members == 3 {
				want = map[string]int{"leader": 1, "follower": 2}
			}
			require.Equal(t, want, modes)
			for _, r := range servers {
				require.NoError(t, r.stop(t, syscall.SIGTERM))
			}
		})
	}
}
