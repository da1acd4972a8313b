package conf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSettingsOfLater: what this version does not act on is parsed all the same, with its units and bounds.
func TestSettingsOfLater(t *testing.T) {
	c := mustParse(t, base+`clientPort=2181
client.portUnification=true
ssl.keyStore.location=/k/server.p12
ssl.keyStore.passwordPath=/k/password
ssl.trustStore.location=/k/ca.pem
ssl.trustStore.type=pem
ssl.protocol=TLSv1.3
ssl.enabledProtocols=TLSv1.3, TLSv1.2
ssl.clientAuth=WANT
ssl.quorum.clientHostnameVerification=false
ssl.quorum.handshakeDetectionTimeoutMillis=0x10
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
superUser=cn
superUser.b=bob
enforce.auth.schemes=sasl,digest
quorum.auth.server.saslLoginContext=Mine
connection_throttle_tokens=100
connection_throttle_drop_increase=0.5
connection_throttle_local_session_weight=7
connection_throttle_renew_session_weight=-3
largeRequestThreshold=1024
throttled_op_wait_time=-4
metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
metricsProvider.httpPort=7001
admin.rateLimiterIntervalInMS=1000
admin.restore.enabled=false
audit.enable=true
jvm.pause.warn-threshold.ms=20
leaderServes=no
observerMasterPort=2191
leader.maxConcurrentSnapSyncs=3
`, map[string]string{"zookeeper.root.logger": "warn, ROLLINGFILE"})
	s := c.Security
	require.True(t, s.ClientPortUnification)
	require.Equal(t, Store{Location: "/k/server.p12", PasswordPath: "/k/password"}, s.Client.KeyStore)
	require.Equal(t, Store{Location: "/k/ca.pem", Type: "PEM"}, s.Client.TrustStore)
	require.Equal(t, "TLSv1.3", s.Client.Protocol)
	require.Equal(t, []string{"TLSv1.3", "TLSv1.2"}, s.Client.EnabledProtocols)
	require.Equal(t, "want", s.Client.ClientAuth)
	require.False(t, s.Client.ClientHostnameVerification)
	require.Equal(t, "need", s.Quorum.ClientAuth)
	require.False(t, s.Quorum.ClientHostnameVerification)
	require.True(t, s.Quorum.AllowReverseDNSLookup)
	require.Equal(t, 16, s.Quorum.DetectionTimeoutMs)
	require.Equal(t, map[string]string{"1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}, s.Providers)
	require.Equal(t, "cn", s.SuperUser)
	require.Equal(t, map[string]string{"b": "bob"}, s.SuperUsers)
	require.Equal(t, []string{"sasl", "digest"}, s.EnforceSchemes)
	require.Equal(t, "Mine", s.SASL.QuorumServerSection)
	require.Equal(t, "QuorumLearner", s.SASL.QuorumLearnerSection)
	require.Equal(t, 100, c.Throttle.Sessions.Tokens)
	require.InDelta(t, 0.5, c.Throttle.Sessions.DropIncrease, 0)
	require.Equal(t, []int{7, 7, 7}, []int{c.Throttle.Sessions.GlobalWeight, c.Throttle.Sessions.LocalWeight, c.Throttle.Sessions.RenewalWeight},
		"no session weighs less than a local one")
	require.Equal(t, 1024, c.Throttle.LargeRequestBytes)
	require.Zero(t, c.Throttle.OpWaitMs, "out of bounds, hence the default")
	require.Equal(t, "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider", c.Metrics.ClassName)
	require.Equal(t, 7001, c.Metrics.Port)
	require.Equal(t, 1000, c.Admin.RateLimitMs)
	require.False(t, c.Admin.RestoreEnabled)
	require.True(t, c.Admin.SnapshotEnabled)
	require.True(t, c.Audit.Enabled)
	require.EqualValues(t, 20, c.Pauses.WarnAboveMs)
	require.Equal(t, "warn", c.LogLevel)
	require.False(t, c.Quorum.LeaderServes)
	require.Equal(t, 2191, c.Quorum.ObserverMasterPort)
	require.Equal(t, 3, c.Quorum.SnapSyncsMax)
	require.Contains(t, texts(c.Warnings), "zoo.cfg:23: throttled_op_wait_time: -4 is outside 0 to 2147483647, the default 0 is used")
}

// TestWithoutEffectIsNamedOnce: keys of the virtual machine are accepted, and listed; what asks for nothing is not.
func TestWithoutEffectIsNamedOnce(t *testing.T) {
	c := mustParse(t, base+`clientPort=2181
nio.numWorkerThreads=8
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
commitProcessor.numWorkerThreads=4
flushDelay=5
maxBatchSize=1000
sslQuorum=false
observer.reconnectDelayMs=0
quorumCnxnTimeoutMs=20
authProvider.1=org.apache.zookeeper.server.auth.IPAuthenticationProvider
`, map[string]string{"zookeeper.jmx.log4j.disable": "true", "zookeeper.fips-mode": "false", "zookeeper.kinit": "/usr/bin/kinit"})
	require.Empty(t, c.Warnings)
	require.Equal(t, []string{"jmx.log4j.disable", "kinit", "nio.numWorkerThreads", "serverCnxnFactory", "commitProcessor.numWorkerThreads", "flushDelay", "quorumCnxnTimeoutMs"},
		c.WithoutEffect)
	require.Contains(t, c.String(), "# nio.numWorkerThreads is given, its value makes no difference\n")
	require.Contains(t, c.String(), "\nflushDelay=5\n")
}

func TestFaultsOfSecurity(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"SASL off, server requires", "quorum.auth.serverRequireSasl=true", "zoo.cfg:2: quorum.auth.serverRequireSasl: quorum.auth.enableSasl is disabled, so cannot enable quorum.auth.serverRequireSasl"},
		{"SASL off, learner requires", "quorum.auth.learnerRequireSasl=true", "zoo.cfg:2: quorum.auth.learnerRequireSasl: quorum.auth.enableSasl is disabled, so cannot enable quorum.auth.learnerRequireSasl"},
		{"server without learner", "quorum.auth.serverRequireSasl=true\nquorum.auth.enableSasl=true", "zoo.cfg:2: quorum.auth.serverRequireSasl: quorum.auth.learnerRequireSasl is disabled, so cannot enable quorum.auth.serverRequireSasl"},
		{"address without port", "secureClientPortAddress=::1", "zoo.cfg:2: secureClientPortAddress is set but secureClientPort is not set"},
		{"step no number", "connection_throttle_drop_increase=x", `zoo.cfg:2: connection_throttle_drop_increase: For input string: "x"`},
		{"threads no number", "quorum.cnxn.threads.size=x", `zoo.cfg:2: quorum.cnxn.threads.size: For input string: "x"`},
		{"timeout no number", "multiAddress.reachabilityCheckTimeoutMs=x", `zoo.cfg:2: multiAddress.reachabilityCheckTimeoutMs: For input string: "x"`},
		{"monitor no boolean", "jvm.pause.monitor=1", "zoo.cfg:2: jvm.pause.monitor: Invalid option 1 for jvm.pause.monitor. Choose 'true' or 'false.'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, []string{tt.want}, faultsOf(t, base+tt.text, nil))
		})
	}
}
