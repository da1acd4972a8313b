package conf

import (
	"fmt"
	"strings"
)

// Keys without a field. ZooKeeper knows them, so they are not typing errors; this server needs nothing for them, cannot
// do what they ask, or must not pretend to. A name that ends in a dot or a star stands for all names that begin so.

// inert keys ask for nothing that a client or an operator could miss: threads and buffers of the Java server, and what
// means something in an ensemble only. Whoever sets one of those in an ensemble is told by amongServers what it does not
// do here.
var inert = names(`
	nio.numSelectorThreads nio.numWorkerThreads nio.directBufferBytes nio.shutdownTimeout
	netty.advancedFlowControl.enabled ssl.sslProvider
	intBufferStartingSizeBytes maxResponseCacheSize maxGetChildrenResponseCacheSize
	commitProcessor.numWorkerThreads commitProcessor.maxReadBatchSize commitProcessor.maxCommitBatchSize
	commitProcessor.shutdownTimeout request_throttler.shutdownTimeout request_throttle_stall_time
	watchManagerName watcherCleanThreshold watcherCleanIntervalInSeconds watcherCleanThreadsNum
	maxInProcessingDeadWatchers bitHashCacheSize pathStats. messageTracker.
	flushDelay maxBatchSize maxWriteQueuePollTime db.autocreate enableEagerACLCheck
	metricsProvider. jvm.pause.monitor jvm.pause.sleep.time.ms jvm.pause.info-threshold.ms jvm.pause.warn-threshold.ms
	kinit security.auth_to_local kerberos. requireKerberosConfig sasl. java.security.auth.
	quorum.cnxn.threads.size observerMasterPort syncEnabled observer.
	localSessionsEnabled localSessionsUpgradingEnabled oraclePath group* weight*
	multiAddress.reachabilityCheckEnabled multiAddress.reachabilityCheckTimeoutMs quorum.auth.kerberos.
	quorumCnxnTimeoutMs tcpKeepAlive fastleader. leaderServes leader. learner.
	leaderConnectDelayDuringRetryMs observerMaster. forceSnapshotSync
	forward_learner_requests_to_commit_processor_disabled follower.
	tracelog.dir tracelog.file auditlog. jmx.log4j.disable
	admin.httpVersion requireClientAuthScheme jaasLoginRenew testingonly.initialZxid test.allowDiscontinuousProposals
`)

const (
	noAuditClass = "no Java class can be loaded; the audit log is written in the format of ZooKeeper's own"
	noPeers      = "a standalone server has no connections to other servers"
)

// unsupported keys are told about: whoever sets one expects something that does not happen.
var unsupported = map[string]string{
	"audit.impl.class":          noAuditClass,
	"IPAuthenticationProvider.": "the address of a request is that of its connection in this version",
}

// strictIntegers are direct keys without a field: what they say has no effect, but a value that ZooKeeper refuses to start
// with is refused here, too. A -D of that name means nothing.
var strictIntegers = names(`quorum.cnxn.threads.size`)

// X509Provider is the auth plugin that takes the subject of a client's certificate for its identity.
const X509Provider = authClasses + "X509AuthenticationProvider"

// auditClass is what writes the audit log of a ZooKeeper that was told nothing else.
const auditClass = "org.apache.zookeeper.audit.Slf4jAuditLogger"

// fieldless judges a key without a field, or one whose field has no effect. known is false if ZooKeeper does not know it
// either.
func fieldless(key, value string) (remark string, known bool, err error) {
	if strictIntegers[key] {
		if _, err = parseInt32(value); err != nil {
			return "", true, err
		}
	}
	if err = refusal(key, value); err != nil {
		return "", true, err
	}
	switch {
	case family(inert, key) != "", key == "serverCnxnFactory", fieldlessTLS[key]:
		return "", true, nil
	case key == "audit.impl.class" && value == auditClass:
		return "", true, nil
	case value == "false", value == "":
		// Nothing is asked for that would be missing.
		return "", family(unsupported, key) != "", nil
	}
	if name := family(unsupported, key); name != "" {
		return "no effect: " + unsupported[name], true, nil
	}
	return "", false, nil
}

// refusal returns why the server must not start: what the key asks for protects data, and a server that went on without
// it would be less safe than its operator believes. A class that cannot be loaded is refused as in ZooKeeper.
func refusal(key, value string) error {
	switch {
	case fieldlessTLS[key]:
		return refusalOfTLS(key, value)
	case key == "serverCnxnFactory" && !strings.HasSuffix(value, ".NIOServerCnxnFactory") && !strings.HasSuffix(value, ".NettyServerCnxnFactory"):
		return fmt.Errorf("Couldn't instantiate %s", shown(value))
	}
	return nil
}

// family returns the entry of a set that covers the key: the key itself or the longest beginning of it that ends in a
// dot or a star. "" if there is none.
func family[V any](set map[string]V, key string) string {
	if _, ok := set[key]; ok {
		return key
	}
	for i := len(key) - 1; i > 0; i-- {
		if key[i] == '.' {
			if _, ok := set[key[:i+1]]; ok {
				return key[:i+1]
			}
		}
		if _, ok := set[key[:i]+"*"]; ok {
			return key[:i] + "*"
		}
	}
	return ""
}

func names(list string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(list) {
		m[n] = true
	}
	return m
}
