package server_test

import (
	"bufio"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/wire"
)

// Whoever sends a line break behind the word reads the whole answer and a clean end, every time.
func TestWordEndsCleanly(t *testing.T) {
	s := startShell(t, shellConfig(t))
	for range 100 {
		require.Equal(t, "imok", s.word("ruok\n"))
	}
	for _, text := range []string{"ruok\r\n", "ruoksrvr", "ruok" + strings.Repeat("x", 100_000)} {
		require.Equal(t, "imok", s.word(text))
	}
}

func TestWordArrivesByteByByte(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c := s.dial()
	require.NoError(t, c.SetNoDelay(true))
	for _, b := range []byte("isro") {
		c.send([]byte{b})
		time.Sleep(2 * time.Millisecond) // so that the bytes travel alone; nothing depends on it
	}
	require.Equal(t, "rw", c.rest())
}

func TestWordsOfAnEmptyServer(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.MaxClientCnxns = 60 }))
	port := s.word("conf")
	port = port[len("clientPort="):strings.IndexByte(port, '\n')]
	require.True(t, strings.HasSuffix(s.Addr().String(), ":"+port))
	tests := []struct{ word, want string }{ // patterns
		{"ruok", "imok"},
		{"isro", "rw"},
		{"gtmk", "306"},
		{"stmk\x00\x00\x00\x00\x00\x00\x00\x07", "7"},
		{"gtmk", "7"},
		{"wchs", "0 connections watching 0 paths\nTotal watches:0\n"},
		{"wchc", "\n"},
		{"wchp", "\n"},
		{"hash", ""},
		{"crst", `Connection stats reset\.` + "\n"},
		{"srst", `Server stats reset\.` + "\n"},
		{"\xff\xf4\xff\xfd", ""},
		{"dirs", `datadir_size: \d+\nlogdir_size: \d+\n`},
		{"srvr", `Zookeeper version: 3\.9\.5-zabra-test.*\nLatency min/avg/max: 0/0\.0/0\nReceived: \d+\nSent: \d+\nConnections: \d+\n` +
			`Outstanding: 0\nZxid: 0x0\nMode: standalone\nNode count: 5\n`},
		{"stat", `Zookeeper version: 3\.9\.5-zabra-test.*\nClients:\n( /127\.0\.0\.1:\d+\[0\]\(queued=0,recved=1,sent=0\)\n)+\nLatency (?s:.*)Node count: 5\n`},
		{"cons", `( /127\.0\.0\.1:\d+\[0\]\(queued=0,recved=1,sent=0\)\n)+\n`},
		{"conf", `clientPort=\d+\nsecureClientPort=-1\ndataDir=/.*/version-2\ndataDirSize=\d+\ndataLogDir=/.*/version-2\ndataLogSize=\d+\n` +
			`tickTime=500\nmaxClientCnxns=60\nminSessionTimeout=1000\nmaxSessionTimeout=60000\nclientPortListenBacklog=-1\nserverId=0\n`},
		{"dump", `SessionTracker dump:\nSession Sets \(0\)/\(0\):\nephemeral nodes dump:\nSessions with Ephemerals \(0\):\n` +
			`Connections dump:\nConnections Sets \(\d+\)/\(\d+\):\n(\d+ expire at .* \d{4}:\n(\tip: /127\.0\.0\.1:\d+ sessionId: 0x0\n)+)+`},
		{"envi", `Environment:\nzookeeper\.version=3\.9\.5-(?s:.*)\nos\.memory\.total=\d+MB\n`},
	}
	for _, tt := range tests {
		require.Regexp(t, regexp.MustCompile(`^`+tt.want+`$`), s.word(tt.word), "%q", tt.word)
	}
}

func TestWordsWithSessions(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c, session := s.session()
	c.send(requestFrame(0xe5, wire.OpCreate, &wire.CreateRequest{Path: []byte("/e"), ACL: wire.OpenACL, Flags: wire.FlagEphemeral}))
	c.reply(0xe5, wire.CodeOK)
	c.send(requestFrame(7, wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/e"), Watch: true}))
	c.reply(7, wire.CodeOK)
	id := session.SessionID.String()
	require.Equal(t, "1 connections watching 1 paths\nTotal watches:1\n", s.word("wchs"))
	require.Equal(t, id+"\n\t/e\n\n", s.word("wchc"))
	require.Equal(t, "/e\n\t"+id+"\n\n", s.word("wchp"))
	require.Contains(t, s.word("dump"), "Sessions with Ephemerals (1):\n"+id+":\n\t/e\n")
	require.Regexp(t, regexp.MustCompile(`sessionId: `+id+`\n`), s.word("dump"))
	require.Regexp(t, regexp.MustCompile(` /127\.0\.0\.1:\d+\[1\]\(queued=0,recved=3,sent=3,sid=`+id+
		`,lop=GETD,est=\d{13},to=30000,lcxid=0x7,lzxid=0x2,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)\n`), s.word("cons"))
	srvr := s.word("srvr")
	require.Contains(t, srvr, "Zxid: 0x2\n")
	require.Contains(t, srvr, "Node count: 6\n")

	s.word("crst")
	require.Regexp(t, regexp.MustCompile(`\(queued=0,recved=0,sent=0,sid=`+id+`,lop=NA,est=\d{13},to=30000,lzxid=0xffffffffffffffff,`), s.word("cons"))
	c.send(requestFrame(-2, wire.OpPing, nil))
	c.reply(-2, wire.CodeOK)
	require.Contains(t, s.word("cons"), "lop=PING")
}

func TestWordCounts(t *testing.T) {
	s := startShell(t, shellConfig(t))
	s.word("srst")
	s.session()
	s.word("ruok")
	srvr := s.word("srvr")
	// The answers to srst and ruok, the connect request, and the word itself; its own answer is not yet sent.
	require.Contains(t, srvr, "Received: 3\nSent: 3\n")
}

// mntr lists each block by name, and nothing that an agent could stumble over.
func TestMntr(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c, _ := s.session()
	c.send(createFrame(1, "/a", []byte("12345")))
	c.reply(1, wire.CodeOK)
	values := map[string]string{}
	var names []string
	for line := range strings.Lines(s.word("mntr")) {
		m := regexp.MustCompile(`^zk_(\w+)\t([^\t\n]+)\n$`).FindStringSubmatch(line)
		require.NotNil(t, m, "%q", line)
		require.NotContains(t, values, m[1])
		values[m[1]] = m[2]
		names = append(names, m[1])
	}
	require.Equal(t, []string{"version", "server_state"}, names[:2])
	first := slices.Index(names, "add_dead_watcher_stall_time")
	require.True(t, slices.IsSorted(names[2:first]))
	require.Equal(t, "avg_dbinittime", names[slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "avg_d") })])
	for name, want := range map[string]string{
		"server_state": "standalone", "znode_count": "6", "ephemerals_count": "0", "num_alive_connections": "2", "global_sessions": "1",
		"outstanding_requests": "0", "approximate_data_size": "51", "watch_count": "0", "connection_request_count": "1",
		"unrecoverable_error_count": "0", "proposal_count": "2", "commit_count": "2",
	} {
		require.Equal(t, want, values[name], name)
	}
	require.NotEqual(t, "0", values["cnt_fsynctime"])
	require.NotEqual(t, "0", values["open_file_descriptor_count"])
}

func TestWhitelist(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.FourLetterWords = []string{"ruok"} }))
	require.Equal(t, "imok", s.word("ruok"))
	require.Contains(t, s.word("srvr"), "Mode: standalone")
	for range 3 {
		require.Equal(t, "mntr is not executed because it is not in the whitelist.\n", s.word("mntr\n"))
	}
	require.Equal(t, 1, s.logs.FilterMessageSnippet("4lw.commands.whitelist").Len())
}

// What is no word and no length ends the connection without a byte, and is told of once.
func TestNoWord(t *testing.T) {
	s := startShell(t, shellConfig(t))
	for _, text := range []string{"RUOK", "GET / HTTP/1.1\r\n\r\n", "lsnp", "\xff\xff\xff\xff", "\x16\x03\x01\x02\x00"} {
		c := s.dial()
		c.send([]byte(text))
		c.gone()
	}
	entries := s.logs.FilterMessageSnippet("Len error. A message from /127.0.0.1:").All()
	require.Len(t, entries, 1)
	require.Contains(t, entries[0].Message, "with advertised length of 1381322571 is either a malformed message or too large to process "+
		"(length is greater than jute.maxbuffer=1048575)")
	c, _ := s.session()
	c.send([]byte("ruok")) // after the handshake it is a length like any other
	require.Empty(t, c.rest())
}

func TestWordReaders(t *testing.T) {
	// kazoo and Datadog read the first line of stat, status scripts the line of the mode.
	s := startShell(t, shellConfig(t))
	scan := bufio.NewScanner(strings.NewReader(s.word("stat")))
	require.True(t, scan.Scan())
	require.Equal(t, "3.9.5", regexp.MustCompile(`(\d+\.\d+\.\d+)`).FindString(scan.Text()))
	mode := ""
	for scan.Scan() {
		if n, _ := fmt.Sscanf(scan.Text(), "Mode: %s", &mode); n == 1 {
			break
		}
	}
	require.Equal(t, "standalone", mode)
}
