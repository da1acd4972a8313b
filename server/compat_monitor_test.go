package server_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
)

func TestC90Srvr(t *testing.T) {
	s := startCompat(t)
	lines := strings.Split(s.word("srvr"), "\n")
	patterns := []string{
		`^Zookeeper version: \d+\.\d+\.\d+\S*, built on .+$`,
		`^Latency min/avg/max: \d+/\d+(\.\d+)?/\d+$`,
		`^Received: \d+$`,
		`^Sent: \d+$`,
		`^Connections: \d+$`,
		`^Outstanding: \d+$`,
		`^Zxid: 0x[0-9a-f]+$`,
		`^Mode: standalone$`,
		`^Node count: \d+$`,
		`^$`,
	}
	require.Len(t, lines, len(patterns))
	for i, p := range patterns {
		require.Regexp(t, p, lines[i])
	}
}

func TestC90Mntr(t *testing.T) {
	s := startCompat(t)
	line := regexp.MustCompile(`^zk_\S+\t\S.*$`)
	found := map[string]string{}
	for text := range strings.Lines(s.word("mntr")) {
		text = strings.TrimSuffix(text, "\n")
		require.Regexp(t, line, text)
		key, value, _ := strings.Cut(text, "\t")
		found[key] = value
	}
	require.Equal(t, "standalone", found["zk_server_state"])
	for _, key := range []string{
		"zk_version", "zk_avg_latency", "zk_max_latency", "zk_min_latency", "zk_packets_received", "zk_packets_sent",
		"zk_num_alive_connections", "zk_outstanding_requests", "zk_znode_count", "zk_watch_count", "zk_ephemerals_count",
		"zk_approximate_data_size", "zk_open_file_descriptor_count", "zk_max_file_descriptor_count",
	} {
		require.Contains(t, found, key)
	}
	for _, key := range []string{"zk_followers", "zk_synced_followers", "zk_pending_syncs", "zk_learners"} {
		require.NotContains(t, found, key, "only a leader has it")
	}
}

func TestC90Ruok(t *testing.T) {
	require.Equal(t, "imok", startCompat(t).word("ruok"), "without a newline")
}

func TestC90ConfAndIsro(t *testing.T) {
	s := startCompat(t)
	require.Equal(t, "rw", s.word("isro"))
	conf := s.word("conf")
	for _, p := range []string{`(?m)^clientPort=\d+$`, `(?m)^tickTime=500$`, `(?m)^maxClientCnxns=0$`, `(?m)^minSessionTimeout=1000$`, `(?m)^maxSessionTimeout=10000$`} {
		require.Regexp(t, p, conf)
	}
	require.NotContains(t, conf, "membership:", "which only an ensemble has")
}

func TestC90WordsThatAreNotAllowed(t *testing.T) {
	s := startCompat(t, servertest.WithConfig("4lw.commands.whitelist", "srvr"))
	for _, word := range []string{"mntr", "ruok", "conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "srst", "stat", "stmk", "wchc", "wchp", "wchs"} {
		require.Equal(t, word+" is not executed because it is not in the whitelist.\n", s.word(word))
	}
	require.Contains(t, s.word("srvr"), "Mode: standalone")
}

func TestWordsAreOnlyForFreshConnections(t *testing.T) {
	s := startCompat(t)
	r := s.session()
	_, err := r.Write([]byte("ruok"))
	require.NoError(t, err)
	r.closed()
	for _, unknown := range []string{"nope", "RUOK", "\xff\xff\xff\xff"} {
		r := s.raw()
		_, err := r.Write([]byte(unknown))
		require.NoError(t, err)
		r.closed()
	}
	for range 2 { // a word may come in pieces
		r := s.raw()
		for _, b := range []byte("ruok") {
			_, err := r.Write([]byte{b})
			require.NoError(t, err)
		}
		answer := make([]byte, 4)
		_, err := r.Read(answer)
		require.NoError(t, err)
		require.Equal(t, "imok", string(answer))
		r.closed()
	}
	c := s.closing()
	_, err = c.GetChildren(compatContext(t), "/", false)
	require.NoError(t, err)
	require.Contains(t, s.word("cons"), c.LocalAddr().String())
}
