package conf

import (
	"fmt"
	"math"
	"slices"
)

// complete replaces "not given" by the value that serves, and raises what ZooKeeper raises.
func (l *loader) complete() {
	c := l.cfg
	if c.MinSessionTimeoutMs == -1 {
		c.MinSessionTimeoutMs = ticks(c.TickTimeMs, 2)
	}
	if c.MaxSessionTimeoutMs == -1 {
		c.MaxSessionTimeoutMs = ticks(c.TickTimeMs, 20)
	}
	if c.JuteMaxBufferExtraBytes == unsetInt {
		c.JuteMaxBufferExtraBytes = c.JuteMaxBufferBytes
	}
	c.JuteMaxBufferExtraBytes = max(c.JuteMaxBufferExtraBytes, extraBytesMin)
	c.JuteMaxBufferExtraBytes = min(c.JuteMaxBufferExtraBytes, math.MaxInt32-c.JuteMaxBufferBytes)
	if c.ConnectToLearnerMasterLimitTicks == 0 {
		c.ConnectToLearnerMasterLimitTicks = max(c.InitLimitTicks, 0)
	}
	if c.ElectionPortBindRetry < 0 {
		const name = "electionPortBindRetry"
		l.warn(c.sources[name], name, "%d is negative, %d is used, as ZooKeeper does", c.ElectionPortBindRetry, electionPortBindRetryDefault)
		c.ElectionPortBindRetry = electionPortBindRetryDefault
	}
	c.SnapCount = max(c.SnapCount, snapCountMin)
	l.completeCatchUp()
	c.SnapSizeLimitKB = max(c.SnapSizeLimitKB, 0)
	c.TxnLogSizeLimitKB = max(c.TxnLogSizeLimitKB, 0)
	if c.AutopurgeSnapRetainCount < snapRetainCountMin {
		const name = "autopurge.snapRetainCount"
		l.warn(c.sources[name], name, "%d is too small, %d snapshots are kept", c.AutopurgeSnapRetainCount, snapRetainCountMin)
		c.AutopurgeSnapRetainCount = snapRetainCountMin
	}
	c.Throttle.Sessions.complete()
	l.remarks()
	l.remarksOfTLS()
}

// completeCatchUp bounds what learners are brought up to date with. A standalone server has none.
func (l *loader) completeCatchUp() {
	c := l.cfg
	if n := min(max(c.CommitLogCount, commitLogCountMin), commitLogCountMax); n != c.CommitLogCount {
		if c.Ensemble != nil {
			l.warn(c.sources["commitLogCount"], "commitLogCount", "%d is outside %d to %d, %d is used", c.CommitLogCount, commitLogCountMin, commitLogCountMax, n)
		}
		c.CommitLogCount = n
	}
	if c.SnapshotSizeFactor > 1 {
		if c.Ensemble != nil {
			l.warn(c.sources["snapshotSizeFactor"], "snapshotSizeFactor", "%v is more than 1, the default %v is used, as ZooKeeper does", c.SnapshotSizeFactor, snapshotSizeFactorDefault)
		}
		c.SnapshotSizeFactor = snapshotSizeFactorDefault
	}
}

// remarks warns of what is allowed but seldom meant.
func (l *loader) remarks() {
	c := l.cfg
	for _, dir := range []struct{ key, path string }{{"dataDir", c.DataDir}, {"dataLogDir", c.DataLogDir}} {
		if dir.path != "" && dir.path[0] != '/' && dir.path[0] != '.' {
			l.warn(c.sources[dir.key], dir.key, "%s is relative. Prepend ./ to indicate that you're sure!", shown(dir.path))
		}
	}
	if c.ClientPort == Unset && c.Security.SecureClientPort == Unset {
		l.warn(source{file: c.Path}, "", "clientPort is not set: the server listens on nothing")
	}
	if c.SkipACL {
		l.warn(c.sources["skipACL"], "skipACL", "ACLs are not checked: every client may do everything")
	}
	if !c.ForceSync {
		l.warn(c.sources["forceSync"], "forceSync", "writes are answered before they are on disk: a crash of the machine loses them")
	}
	if c.SuperDigest != "" && !c.DigestAuthEnabled {
		l.warn(c.sources[superDigestKey], superDigestKey, "no effect: DigestAuthenticationProvider.enabled is false")
	}
}

// ticks is n ticks, at most the longest timeout that the protocol can carry.
func ticks(tickMs int32, n int64) int32 { return int32(min(int64(tickMs)*n, math.MaxInt32)) }

// Validate returns an *Error with everything that keeps a server from running with c, for configurations that were put
// together or changed by hand. Those of Load need no second look.
func (c *Config) Validate() error {
	if faults := slices.Concat(c.check(), c.checkSize(), c.checkMyID()); len(faults) > 0 {
		return &Error{Path: c.Path, Faults: faults}
	}
	return nil
}

// check finds what is wrong with effective values, whoever set them.
func (c *Config) check() (faults []Fault) {
	wrong := func(bad bool, key, format string, args ...any) {
		if bad {
			faults = append(faults, Fault{Key: key, Text: fmt.Sprintf(format, args...)})
		}
	}
	wrong(c.DataDir == "", "dataDir", "dataDir is not set")
	wrong(c.ClientPort < Unset || c.ClientPort > math.MaxUint16, "clientPort", "port out of range:%d", c.ClientPort)
	wrong(c.ClientPort == Unset && c.ClientPortAddress != "", "clientPortAddress", "clientPortAddress is set but clientPort is not set")
	wrong(c.TickTimeMs == 0, "tickTime", "tickTime is not set")
	wrong(c.TickTimeMs < 0, "tickTime", "%d is not a length of time", c.TickTimeMs)
	wrong(c.MinSessionTimeoutMs > c.MaxSessionTimeoutMs, "minSessionTimeout", "minSessionTimeout must not be larger than maxSessionTimeout")
	wrong(c.MaxSessionTimeoutMs <= 0 && c.TickTimeMs > 0, "maxSessionTimeout", "%d is not a length of time", c.MaxSessionTimeoutMs)
	wrong(c.ElectionAlg != electionAlgFast, "electionAlg", "Invalid electionAlg value. Only 3 is supported.")
	wrong(c.JuteMaxBufferBytes < juteBytesMin, "jute.maxbuffer", "%d is less than %d", c.JuteMaxBufferBytes, juteBytesMin)
	wrong(c.JuteMaxBufferExtraBytes < extraBytesMin, "jute.maxbuffer.extrasize", "%d is less than %d", c.JuteMaxBufferExtraBytes, extraBytesMin)
	wrong(c.SnapCount < snapCountMin, "snapCount", "%d is less than %d", c.SnapCount, snapCountMin)
	wrong(c.SnapSizeLimitKB < 0, "snapSizeLimitInKb", "%d is negative", c.SnapSizeLimitKB)
	wrong(c.PreAllocKB < 0, "preAllocSize", "%d is negative", c.PreAllocKB)
	wrong(c.TxnLogSizeLimitKB < 0, "txnLogSizeLimitInKb", "%d is negative", c.TxnLogSizeLimitKB)
	wrong(c.GlobalOutstandingLimit < 1, "globalOutstandingLimit", "%d is less than 1", c.GlobalOutstandingLimit)
	wrong(c.SessionlessTimeoutMs < 1, "nio.sessionlessCnxnTimeout", "%d is less than 1", c.SessionlessTimeoutMs)
	wrong(c.AutopurgeSnapRetainCount < snapRetainCountMin, "autopurge.snapRetainCount", "%d is less than %d", c.AutopurgeSnapRetainCount, snapRetainCountMin)
	wrong(c.SnapshotCompression != "" && c.SnapshotCompression != "gz" && c.SnapshotCompression != "snappy", "snapshot.compression.method", "%q is not gz or snappy", c.SnapshotCompression)
	wrong(c.ContainerCheckIntervalMs < 1, "znode.container.checkIntervalMs", "%d is less than 1", c.ContainerCheckIntervalMs)
	wrong(c.ContainerMaxPerMinute < 1, "znode.container.maxPerMinute", "%d is less than 1", c.ContainerMaxPerMinute)
	return slices.Concat(faults, c.checkSecurity(), c.checkTLS(), c.checkEnsemble())
}

// checkSecurity finds demands for a security that is not switched on, as ZooKeeper does.
func (c *Config) checkSecurity() (faults []Fault) {
	const enable, server, learner = "quorum.auth.enableSasl", "quorum.auth.serverRequireSasl", "quorum.auth.learnerRequireSasl"
	needs := func(is bool, key string, has bool, other string) {
		if is && !has {
			faults = append(faults, Fault{Key: key, Text: fmt.Sprintf("%s is disabled, so cannot enable %s", other, key)})
		}
	}
	s := &c.Security.SASL
	needs(s.QuorumServerRequired, server, s.Quorum, enable)
	needs(s.QuorumLearnerRequired, learner, s.Quorum, enable)
	needs(s.QuorumServerRequired && s.Quorum, server, s.QuorumLearnerRequired, learner)
	if c.Security.SecureClientPort == Unset && c.Security.SecureClientPortAddress != "" {
		const key = "secureClientPortAddress"
		faults = append(faults, Fault{Key: key, Text: "secureClientPortAddress is set but secureClientPort is not set"})
	}
	return slices.Concat(faults, c.checkEnforced(), c.checkQuorumLogin())
}
