package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

// fake is a Source with fixed values.
type fake struct {
	down, readOnly bool
	mask           int64
	srst, crst     int
	server         Server
	conns          []Connection
	conf           Configuration
	env            Environment
	dump           Dump
	bySession      []SessionPaths
	byPath         []PathSessions
	digests        []Digest
	metrics        Metrics
	http           fakeHTTP
}

func (f *fake) Serving() bool                    { return !f.down }
func (f *fake) ReadOnly() bool                   { return f.readOnly }
func (f *fake) Server() Server                   { return f.server }
func (f *fake) Connections() []Connection        { return f.conns }
func (f *fake) Configuration() Configuration     { return f.conf }
func (f *fake) Environment() Environment         { return f.env }
func (f *fake) Dirs() Dirs                       { return Dirs{DataBytes: 67109517, LogBytes: 67108880} }
func (f *fake) Dump() Dump                       { return f.dump }
func (f *fake) WatchSummary() WatchSummary       { return WatchSummary{1, 2, 3} }
func (f *fake) WatchesBySession() []SessionPaths { return f.bySession }
func (f *fake) WatchesByPath() []PathSessions    { return f.byPath }
func (f *fake) Digests() []Digest                { return f.digests }
func (f *fake) Metrics() Metrics                 { return f.metrics }
func (f *fake) TraceMask() int64                 { return f.mask }
func (f *fake) SetTraceMask(mask int64)          { f.mask = mask }
func (f *fake) ResetServer()                     { f.srst++ }
func (f *fake) ResetConnections()                { f.crst++ }

func reply(src Source, word string, tail ...byte) string {
	return string(Reply(nil, word, true, src, Input{Tail: tail}))
}

func TestReplyWhitelist(t *testing.T) {
	src := &fake{mask: 306}
	require.Equal(t, "ruok is not executed because it is not in the whitelist.\n",
		string(Reply(nil, "ruok", false, src, Input{})))
	require.Equal(t, "imok", string(Reply(nil, "ruok", true, src, Input{})))
	require.Empty(t, Reply(nil, TelnetBreak, true, src, Input{}))
	require.Equal(t, "telnet close is not executed because it is not in the whitelist.\n", string(Reply(nil, TelnetBreak, false, src, Input{})))
}

// The whitelist comes before the question whether the server serves.
func TestReplyNotServing(t *testing.T) {
	const sentence = "This ZooKeeper instance is not currently serving requests"
	exceptions := map[string]string{
		"ruok": "imok", "isro": "null", "hash": sentence, "gtmk": "306", "stmk": "",
		"envi": "Environment:\nhost.name=h\n",
	}
	src := &fake{down: true, mask: 306, env: Environment{{"host.name", "h"}}}
	for i := range Commands {
		word := Commands[i].Word
		want, ok := exceptions[word]
		if !ok {
			want = sentence + "\n"
		}
		require.Equal(t, want, reply(src, word), word)
		require.Contains(t, string(Reply(nil, word, false, src, Input{})), "whitelist", word)
	}
	require.Zero(t, src.srst+src.crst)
}

func TestReplySmallWords(t *testing.T) {
	src := &fake{mask: 306, digests: []Digest{{0x80, 18446744073709551615}, {0x100000000, 7}}}
	tests := []struct{ word, want string }{
		{"ruok", "imok"},
		{"isro", "rw"},
		{"gtmk", "306"},
		{"stmk", ""},
		{"dirs", "datadir_size: 67109517\nlogdir_size: 67108880\n"},
		{"wchs", "1 connections watching 2 paths\nTotal watches:3\n"},
		{"wchc", "\n"},
		{"wchp", "\n"},
		{"hash", "80: 18446744073709551615\n100000000: 7\n"},
		{"crst", "Connection stats reset.\n"},
		{"srst", "Server stats reset.\n"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, reply(src, tt.word), tt.word)
	}
	require.Equal(t, 1, src.srst)
	require.Equal(t, 1, src.crst)
	src.readOnly = true
	require.Equal(t, "ro", reply(src, "isro"))
	require.Equal(t, "258", reply(src, "stmk", 0, 0, 0, 0, 0, 0, 1, 2, '\n'))
	require.Equal(t, int64(258), src.mask)
	require.Equal(t, "-1", reply(src, "stmk", 255, 255, 255, 255, 255, 255, 255, 255))
	require.Empty(t, reply(src, "stmk", 1, 2, 3, 4, 5, 6, 7))
	require.Equal(t, int64(-1), src.mask)
}

func TestReplyWatches(t *testing.T) {
	src := &fake{
		bySession: []SessionPaths{{0x100000ba4e30000, []string{"/a", "/b"}}, {-1, []string{"/c"}}},
		byPath:    []PathSessions{{"/a", []zxid.SessionID{1, 0x10}}, {"/b", []zxid.SessionID{2}}},
	}
	require.Equal(t, "0x100000ba4e30000\n\t/a\n\t/b\n0xffffffffffffffff\n\t/c\n\n", reply(src, "wchc"))
	require.Equal(t, "/a\n\t0x1\n\t0x10\n/b\n\t0x2\n\n", reply(src, "wchp"))
}

// Every word of the table has its own entry and the table is in order, as help texts list it.
func TestCommandsTable(t *testing.T) {
	last := ""
	names := map[string]bool{}
	for i := range Commands {
		c := &Commands[i]
		require.Len(t, c.Word, 4)
		require.Greater(t, c.Word, last)
		require.NotNil(t, c.Run)
		require.NotEmpty(t, c.Purpose)
		require.Same(t, c, ByWord(c.Word))
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		last = c.Word
	}
	require.Nil(t, ByWord("lsnp"))
}
