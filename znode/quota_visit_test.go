package znode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

func TestVisitQuotas(t *testing.T) {
	s := newScript(t, Config{})
	s.create("/q", "12345")
	s.create("/a", "")
	for _, quota := range []struct{ path, limits string }{
		{"/q", "count=9,bytes=-1=;byteHardLimit=20;countHardLimit=4"}, {"/q/deep", "count=9,bytes=8"}, {"/a", "garbage"},
	} {
		s.create("/zookeeper/quota"+quota.path, "")
		s.create("/zookeeper/quota"+quota.path+"/zookeeper_limits", quota.limits)
		if quota.path != "/q/deep" {
			s.create("/zookeeper/quota"+quota.path+"/zookeeper_stats", "")
		}
	}
	var got []Quota
	s.tree.VisitQuotas(func(q Quota) bool {
		got = append(got, q)
		return true
	})
	require.Equal(t, []Quota{
		{Path: "/a", CountLimit: -1, BytesLimit: -1, Count: 1, Bytes: 0},
		{Path: "/q", CountLimit: 4, BytesLimit: 20, Count: 1, Bytes: 5},
		{Path: "/q/deep", CountLimit: 9, BytesLimit: 8, Count: -1, Bytes: -1},
	}, got)
	s.tree.VisitQuotas(func(q Quota) bool {
		got = append(got, q)
		return false
	})
	require.Len(t, got, 4)
}

func TestTxnTime(t *testing.T) {
	h := TxnHeader{ClientID: 1, Cxid: 2, Zxid: 3, Time: 1764500000123, Type: wire.OpCreate}
	txn := createTxn("/a", 1)
	require.EqualValues(t, 1764500000123, TxnTime(AppendTxn(nil, &h, &txn, nil)))
	require.Zero(t, TxnTime(nil))
	require.Zero(t, TxnTime(make([]byte, txnTimeOffset+7)))
}

// Each event is told with the number of those who watch for it, and not at all when nobody does.
func TestFired(t *testing.T) {
	type fired struct {
		typ wire.EventType
		n   int
	}
	var got []fired
	s := newScript(t, Config{Fired: func(typ wire.EventType, watchers int) { got = append(got, fired{typ, watchers}) }})
	w := s.tree.Watches()
	a, b := w.Attach(&recorder{}), w.Attach(&recorder{})
	w.Add(a, TableData, []byte("/n"), WatchStandard)
	w.Add(b, TableData, []byte("/n"), WatchStandard)
	s.create("/n", "")
	s.create("/other", "")
	w.Add(a, TableData, []byte("/n"), WatchStandard)
	s.do(Txn{Type: wire.OpSetData, Path: []byte("/n"), Version: 1})
	w.Add(a, TableData, []byte("/n"), WatchStandard)
	w.Add(b, TableChild, []byte("/n"), WatchStandard)
	w.Add(b, TableChild, []byte("/"), WatchStandard)
	s.do(deleteTxn("/n"))
	require.Equal(t, []fired{
		{wire.EventNodeCreated, 2}, {wire.EventNodeDataChanged, 1}, {wire.EventNodeDeleted, 2}, {wire.EventNodeChildrenChanged, 1},
	}, got)
}
