package admin

import (
	"strings"
	"time"
)

// CompatibleWith is the release of Apache ZooKeeper whose behaviour the server follows. It leads the version text,
// because agents and clients look there for three numbers with dots between and switch features on by them: kazoo reads
// `zookeeper.version=` of envi, Datadog and Telegraf the first line of srvr and the first of mntr.
const CompatibleWith = "3.9.5"

// Version returns the version text of srvr, stat, mntr and envi:
//
//	3.9.5-zabra-1.0.0-0a1b2c3, built on 2026-11-30 08:00 UTC
//
// The parts are the release of ZooKeeper that is followed, our own version, and the revision it was built from; an
// empty part is left out with its hyphen, a zero time with its phrase.
func Version(own, revision string, built time.Time) string {
	var sb strings.Builder
	sb.WriteString(CompatibleWith)
	sb.WriteString("-zabra")
	for _, part := range []string{own, revision} {
		if part != "" {
			sb.WriteByte('-')
			sb.WriteString(part)
		}
	}
	if !built.IsZero() {
		sb.WriteString(built.UTC().Format(", built on 2006-01-02 15:04 UTC"))
	}
	return sb.String()
}
