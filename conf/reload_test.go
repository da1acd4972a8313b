package conf

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func changed(list []Change) []string {
	var lines []string
	for _, c := range list {
		lines = append(lines, c.String())
	}
	return lines
}

func TestReload(t *testing.T) {
	const old = three + "clientPort=2181\nmaxClientCnxns=60\n4lw.commands.whitelist=ruok\nautopurge.purgeInterval=1\n"
	tests := []struct {
		name, text           string
		changes, needRestart []string
	}{
		{"the same in other words", "4lw.commands.whitelist = ruok\nmaxClientCnxns:60\nautopurge.purgeInterval 1\nclientPort=2181\n" + three, nil, nil},
		{"limits", old + "maxClientCnxns=100\nmaxCnxns=9\nnio.sessionlessCnxnTimeout=7\n", []string{
			"maxClientCnxns: 60 -> 100", "maxCnxns: 0 -> 9", "nio.sessionlessCnxnTimeout: 10000 -> 7",
		}, nil},
		{"disk", old + "fsync.warningthresholdms=7\nautopurge.snapRetainCount=9\n", []string{
			"fsync.warningthresholdms: 1000 -> 7", "autopurge.snapRetainCount: 3 -> 9",
		}, nil},
		{"snapshots and quotas", old + "enforceQuota=true\nsnapCount=500\nautopurge.purgeInterval=2\n", []string{
			"snapCount: 100000 -> 500", "autopurge.purgeInterval: 1 -> 2", "enforceQuota: false -> true",
		}, nil},
		{"what is fixed at the start", old + "forceSync=no\npreAllocSize=64\nlog.dir=/l\nlog.maxfilesize=1MB\n", nil, []string{
			"preAllocSize: 65536 -> 64", "forceSync: yes -> no", "log.dir: nothing -> /l", "log.maxfilesize: 268435456 -> 1048576",
		}},
		{"throttles", old + "globalOutstandingLimit=7\nthrottled_op_wait_time=500\nconnection_throttle_tokens=9\nconnection_throttle_drop_increase=0.5\n", []string{
			"globalOutstandingLimit: 1000 -> 7", "throttled_op_wait_time: 0 -> 500", "connection_throttle_tokens: 0 -> 9", "connection_throttle_drop_increase: 0.02 -> 0.5",
		}, nil},
		{"audit log", old + "audit.enable=true\nzabra.audit.format=json\nzabra.audit.file=/l/audit\n", []string{
			"audit.enable: false -> true", "zabra.audit.format: text -> json", "zabra.audit.file: nothing -> /l/audit",
		}, nil},
		{"level of the log", old + "root.logger=TRACE, CONSOLE\n", []string{"root.logger: nothing -> debug"}, nil},
		{"words", old + "4lw.commands.whitelist=\n", []string{"4lw.commands.whitelist: ruok -> nothing"}, nil},
		{"secret", old + "DigestAuthenticationProvider.superDigest=super:x\n", nil, []string{"DigestAuthenticationProvider.superDigest: nothing -> (not shown)"}},
		{"timeouts that follow the tick", old + "tickTime=1000\n", nil,
			[]string{"tickTime: 3000 -> 1000", "minSessionTimeout: 6000 -> 2000", "maxSessionTimeout: 60000 -> 20000"}},
		{"ports and folders", old + "clientPort=2182\ndataLogDir=/l\n", nil, []string{"dataLogDir: nothing -> /l", "clientPort: 2181 -> 2182"}},
		{"a member more", old + "server.4=d:2888:3888:observer\n", nil, []string{"server.4: nothing -> d:2888:3888:observer"}},
		{"another address", old + "server.3=x:2888:3888\n", nil, []string{"server.3: c:2888:3888:participant -> x:2888:3888:participant"}},
		{"without effect in this version", old + "request_throttle_stall_time=7\nnio.numWorkerThreads=3\nflushDelay=3\n", nil, nil},
	}
	before, err := member(old, "1", nil)
	require.NoError(t, err)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after, err := member(tt.text, "1", nil)
			require.NoError(t, err)
			changes, needRestart := Reload(before, after)
			require.Equal(t, tt.changes, changed(changes))
			require.Equal(t, tt.needRestart, changed(needRestart))
		})
	}
	after, err := member(old, "2", nil)
	require.NoError(t, err)
	_, needRestart := Reload(before, after)
	require.Equal(t, []string{"myid: 1 -> 2"}, changed(needRestart))
}

// TestReloadOfAStandaloneServer: what concerns ensembles only is no change.
func TestReloadOfAStandaloneServer(t *testing.T) {
	changes, needRestart := Reload(mustParse(t, base+"initLimit=3", nil), mustParse(t, base+"initLimit=9\nsyncLimit=2", nil))
	require.Empty(t, changes)
	require.Empty(t, needRestart)
}

// TestTake: what is taken leaves exactly what needs a restart, and the running configuration is not touched.
func TestTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawConfig(t), drawConfig(t)
		if old == nil || new == nil {
			return
		}
		before := old.String()
		_, needRestart := Reload(old, new)
		taken := Take(old, new)
		require.Equal(t, before, old.String())
		changes, left := Reload(taken, new)
		require.Empty(t, changes)
		require.Equal(t, needRestart, left)
		again, _ := Reload(old, taken)
		first, _ := Reload(old, new)
		require.Equal(t, first, again)
		require.NoError(t, taken.Validate())
	})
}

// TestTakeOfEachKey goes through the keys that change while a server runs: given, changed, and taken out of the file again.
func TestTakeOfEachKey(t *testing.T) {
	values := map[string]string{
		"maxClientCnxns": "7", "maxCnxns": "7", "nio.sessionlessCnxnTimeout": "7", "fsync.warningthresholdms": "7",
		"autopurge.snapRetainCount": "7", "4lw.commands.whitelist": "ruok, mntr", "root.logger": "DEBUG, ROLLINGFILE",
		"console.threshold": "WARN", "log.threshold": "ERROR", "globalOutstandingLimit": "7", "snapCount": "7", "snapSizeLimitInKb": "7",
		"autopurge.purgeInterval": "7", "enforceQuota": "true", "audit.enable": "true", "zabra.audit.format": "json", "zabra.audit.file": "/l/a",
		"largeRequestThreshold": "7", "largeRequestMaxBytes": "7", "request_throttle_max_requests": "7", "request_throttle_drop_stale": "false",
		"request_stale_connection_check": "false", "request_stale_latency_check": "true", "throttled_op_wait_time": "7",
		"connection_throttle_tokens": "7", "connection_throttle_fill_time": "7", "connection_throttle_fill_count": "7",
		"connection_throttle_freeze_time": "7", "connection_throttle_drop_increase": "0.7", "connection_throttle_drop_decrease": "0.7",
		"connection_throttle_decrease_ratio": "0.7", "connection_throttle_weight_enabled": "true",
		"connection_throttle_global_session_weight": "7", "connection_throttle_local_session_weight": "2", "connection_throttle_renew_session_weight": "7",
	}
	without := mustParse(t, base+"clientPort=2181\npreAllocSize=9", nil)
	for _, k := range keys {
		if k.name == jaasFileKey { // it has to name a file that is there: see TestReloadOfUsers
			continue
		}
		value, live := values[k.name]
		require.Equal(t, live, k.take != nil, k.name)
		if !live {
			continue
		}
		with := mustParse(t, base+"clientPort=2182\n"+k.name+"="+value, nil)
		for _, way := range [][2]*Config{{without, with}, {with, without}} {
			old, new := way[0], way[1]
			taken := Take(old, new)
			require.Equal(t, shows(k, new), shows(k, taken), k.name)
			require.NotEqual(t, shows(k, old), shows(k, taken), k.name)
			require.Equal(t, new.Set(k.name), taken.Set(k.name), k.name)
			require.Equal(t, old.ClientPort, taken.ClientPort)
			require.Equal(t, old.PreAllocKB, taken.PreAllocKB)
		}
	}
}
