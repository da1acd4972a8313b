package znode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

func TestConfigIsSetOutsideOfTheDigest(t *testing.T) {
	tree := NewTree(Config{})
	digest, size := tree.Digest(), tree.DataSize()
	for _, text := range []string{"server.1=a:1:2:participant\nversion=0", "version=5", ""} {
		tree.SetConfig([]byte(text), 5, 1234)
		id, ok := tree.Find([]byte(ConfigPath))
		require.True(t, ok)
		require.Equal(t, text, string(tree.Data(id)))
		require.Equal(t, wire.Stat{Mzxid: 5, Mtime: 1234, Version: -1, AVersion: -1, DataLength: int32(len(text))}, tree.Stat(id))
		require.Equal(t, digest, tree.Digest())
		require.Equal(t, size+int64(len(text)), tree.DataSize())
		require.NoError(t, tree.Check())
	}
	require.Zero(t, tree.LastZxid())
}

func TestConfigCountsInAQuota(t *testing.T) {
	before, after := newScript(t, Config{}), newScript(t, Config{})
	text := []byte("server.1=a:1:2:participant\nversion=0")
	quota := func(s *script) {
		s.create("/zookeeper/quota/zookeeper", "")
		s.create("/zookeeper/quota/zookeeper/zookeeper_stats", "")
		s.create("/zookeeper/quota/zookeeper/zookeeper_limits", "count=100,bytes=1000")
	}
	before.tree.SetConfig(text, 0, 1)
	quota(before)
	quota(after)
	after.tree.SetConfig(text, 0, 1)
	const stats = "/zookeeper/quota/zookeeper/zookeeper_stats"
	require.Contains(t, before.data(stats), "bytes=")
	require.Equal(t, before.data(stats), after.data(stats))
	before.tree.SetConfig(nil, 0, 2)
	require.NotEqual(t, before.data(stats), after.data(stats))
	require.NoError(t, before.tree.Check())
}
