package znode

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

func TestParseQuota(t *testing.T) {
	for _, tt := range []struct {
		text string
		want quotaText
		ok   bool
	}{
		{"", quotaText{-1, -1, -1, -1}, true},
		{"count=1,bytes=2", quotaText{1, 2, -1, -1}, true},
		{"count=-1,bytes=-1=;byteHardLimit=20;countHardLimit=4", quotaText{-1, -1, 4, 20}, true},
		{"count=,bytes=5", quotaText{-1, 5, -1, -1}, true},
		{",;,count=1;;bytes=2,;", quotaText{1, 2, -1, -1}, true},
		{"other=3", quotaText{-1, -1, -1, -1}, true},
		{"bytesHardLimit=3", quotaText{-1, -1, -1, -1}, true}, // not how it is spelt
		{"count", quotaText{}, false},
		{"count=x", quotaText{}, false},
		{"count=-", quotaText{}, false},
		{"count=1 ", quotaText{}, false},
		{"count=9223372036854775807,bytes=-9223372036854775808", quotaText{math.MaxInt64, math.MinInt64, -1, -1}, true},
		{"count=+7,bytes=007", quotaText{7, 7, -1, -1}, true},
		{"count=9223372036854775808", quotaText{}, false},
		{"count=-9223372036854775809", quotaText{}, false},
		{"count=12345678901234567890", quotaText{}, false},
		{"count=+", quotaText{}, false},
	} {
		got, ok := parseQuota([]byte(tt.text))
		require.Equal(t, tt.ok, ok, tt.text)
		if ok {
			require.Equal(t, tt.want, got, tt.text)
		}
	}
}

func (s *script) create(path, data string) {
	s.t.Helper()
	txn := createTxn(path, -1)
	txn.Data = []byte(data)
	require.Equal(s.t, wire.CodeOK, s.do(txn).Code)
}

func (s *script) data(path string) string {
	s.t.Helper()
	return string(s.tree.Data(s.node(path)))
}

func TestQuota(t *testing.T) {
	s := newScript(t, Config{})
	s.create("/q", "12345")
	s.create("/q/old", "123")
	s.create("/zookeeper/quota/q", "")
	s.create("/zookeeper/quota/q/zookeeper_limits", "count=3,bytes=100=;byteHardLimit=20;countHardLimit=4")
	require.False(t, s.tree.QuotaExceeded([]byte("/q/x"), 99, 99), "no usage is kept yet")
	const stats = "/zookeeper/quota/q/zookeeper_stats"
	s.create(stats, "whatever")
	require.Equal(t, "count=2,bytes=8", s.data(stats))
	before, digest := s.tree.Stored(s.node(stats)), s.tree.Digest()

	s.create("/q/new", "1234")
	s.create("/q/new/deep", "")
	s.create("/qq", "not below")
	require.Equal(t, "count=4,bytes=12", s.data(stats))
	s.do(Txn{Type: wire.OpSetData, Path: []byte("/q"), Data: []byte("123456"), Version: 1})
	s.do(Txn{Type: wire.OpSetData, Path: []byte("/q/old"), Version: 1}) // null counts nothing
	require.Equal(t, "count=4,bytes=10", s.data(stats))
	require.Equal(t, before, s.tree.Stored(s.node(stats)), "silent")
	require.NotEqual(t, digest, s.tree.Digest())

	exceeded := func(path string, count, bytes int64) bool { return s.tree.QuotaExceeded([]byte(path), count, bytes) }
	require.True(t, exceeded("/q/x", 1, 0))
	require.True(t, exceeded("/q", 0, 11))
	require.False(t, exceeded("/q/new/x", 0, 10))
	require.False(t, exceeded("/q/new/x", 0, 0))
	require.False(t, exceeded("/qq", 99, 99))
	require.False(t, exceeded("/", 99, 99))
	require.Zero(t, testing.AllocsPerRun(100, func() { s.tree.QuotaExceeded([]byte("/q/new/x"), 0, 10) }))

	s.do(deleteTxn("/q/new/deep"))
	require.Equal(t, "count=3,bytes=10", s.data(stats))
	require.False(t, exceeded("/q/x", 1, 0))

	// The deepest prefix counts, alone.
	s.create("/zookeeper/quota/q/new", "")
	s.create("/zookeeper/quota/q/new/zookeeper_stats", "")
	s.create("/zookeeper/quota/q/new/zookeeper_limits", "countHardLimit=1")
	require.Equal(t, "count=1,bytes=4", s.data("/zookeeper/quota/q/new/zookeeper_stats"))
	s.create("/q/new/b", "1")
	require.Equal(t, "count=2,bytes=5", s.data("/zookeeper/quota/q/new/zookeeper_stats"))
	require.Equal(t, "count=3,bytes=10", s.data(stats))
	require.True(t, exceeded("/q/new/c", 1, 0))
	s.do(Txn{Type: wire.OpSetData, Path: []byte("/zookeeper/quota/q/new/zookeeper_limits"), Data: []byte("garbage"), Version: 1})
	require.False(t, exceeded("/q/new/c", 1, 0), "limits that cannot be understood are none")
	s.do(deleteTxn("/zookeeper/quota/q/new/zookeeper_limits"))
	s.create("/q/new/c", "1")
	require.Equal(t, "count=4,bytes=11", s.data(stats))

	// What a client writes into the usage is believed, if it can be understood.
	s.do(Txn{Type: wire.OpSetData, Path: []byte(stats), Data: []byte("count=100,bytes=1"), Version: 1})
	s.create("/q/d", "1")
	require.Equal(t, "count=101,bytes=2", s.data(stats))
	s.do(Txn{Type: wire.OpSetData, Path: []byte(stats), Data: []byte("garbage"), Version: 2})
	s.create("/q/e", "1")
	require.Equal(t, "garbage", s.data(stats))
	s.do(deleteTxn(stats))
	s.create("/q/f", "1")
}

func TestQuotaOnRootIsNone(t *testing.T) {
	s := newScript(t, Config{})
	s.create("/zookeeper/quota/zookeeper_limits", "countHardLimit=0")
	s.create("/zookeeper/quota/zookeeper_stats", "mine")
	s.create("/a", "")
	// The whole tree is counted when the node appears, and not kept up to date.
	require.Equal(t, "count=6,bytes=20", s.data("/zookeeper/quota/zookeeper_stats"))
	require.False(t, s.tree.QuotaExceeded([]byte("/b"), 1, 1))
}

func TestReplyToTheCreationOfAStatsNodeTellsTheClientsData(t *testing.T) {
	s := newScript(t, Config{})
	s.create("/zookeeper/quota/q", "")
	txn := createTxn("/zookeeper/quota/q/zookeeper_stats", -1)
	txn.Data = []byte("mine")
	require.EqualValues(t, 4, s.do(txn).Stat.DataLength)
	require.Equal(t, "count=0,bytes=0", s.data("/zookeeper/quota/q/zookeeper_stats"))
}

func TestQuotaIsCountedAtLoad(t *testing.T) {
	s := newScript(t, Config{})
	s.create("/q", "12345")
	s.create("/zookeeper/quota/q", "")
	s.create("/zookeeper/quota/q/zookeeper_limits", "countHardLimit=2")
	s.create("/zookeeper/quota/q/zookeeper_stats", "")
	s.do(Txn{Type: wire.OpSetData, Path: []byte("/zookeeper/quota/q/zookeeper_stats"), Data: []byte("count=7,bytes=7"), Version: 1})
	tree := reload(t, s.tree)
	id, _ := tree.Find([]byte("/zookeeper/quota/q/zookeeper_stats"))
	require.Equal(t, "count=1,bytes=5", string(tree.Data(id)))
	require.False(t, tree.QuotaExceeded([]byte("/q/a"), 1, 0))
	require.True(t, tree.QuotaExceeded([]byte("/q/a"), 2, 0))
	require.NoError(t, tree.Check())
}
