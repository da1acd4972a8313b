package storage

import (
	"slices"
	"strconv"
	"strings"

	"zabra/zab/zxid"
)

// Names in version-2. Those of ZooKeeper are fixed; ours begin so that ZooKeeper's own filters pass over them.
const (
	versionDir       = "version-2"
	logPrefix        = "log."
	snapshotPrefix   = "snapshot."
	acceptedName     = "acceptedEpoch"
	currentName      = "currentEpoch"
	tmpSuffix        = ".tmp"
	stateName        = "zabra.state"
	lockName         = "zabra.lock"
	logTmpName       = "zabra.log.tmp"
	snapshotTmpName  = "zabra.snapshot.tmp"
	stateTmpName     = "zabra.state.tmp"
	receivedName     = "zabra.received"
	receivedInfoName = "zabra.received.info"
	backupTmpName    = "zabra.backup.tmp"
	restoreTmpName   = "zabra.restore.tmp"
	supersededDir    = "superseded" // beside version-2
	initializeMarker = "initialize"
)

// Values of Config.Compression, which are also the suffixes of snapshot names.
const (
	compressionNone   = ""
	compressionGzip   = "gz"
	compressionSnappy = "snappy"
)

// parseZxidName takes the hex zxid of a file name. Only the form in which ZooKeeper writes it counts: lower case, no
// padding, not negative. A name such as log.5.bak or snapshot.0A is somebody else's file.
func parseZxidName(text string) (zxid.Zxid, bool) {
	v, err := strconv.ParseInt(text, 16, 64)
	if err != nil || v < 0 || zxid.Zxid(v).Hex() != text {
		return 0, false
	}
	return zxid.Zxid(v), true
}

func parseLogName(name string) (zxid.Zxid, bool) {
	text, ok := strings.CutPrefix(name, logPrefix)
	if !ok {
		return 0, false
	}
	return parseZxidName(text)
}

// parseSnapshotName takes snapshot.HEX, snapshot.HEX.gz and snapshot.HEX.snappy, nothing else.
func parseSnapshotName(name string) (z zxid.Zxid, compression string, ok bool) {
	text, ok := strings.CutPrefix(name, snapshotPrefix)
	if !ok {
		return 0, "", false
	}
	text, compression, found := strings.Cut(text, ".")
	if found && compression != compressionGzip && compression != compressionSnappy {
		return 0, "", false
	}
	z, ok = parseZxidName(text)
	return z, compression, ok
}

func logName(z zxid.Zxid) string { return logPrefix + z.Hex() }

func snapshotName(z zxid.Zxid, compression string) string {
	name := snapshotPrefix + z.Hex()
	if compression != compressionNone {
		name += "." + compression
	}
	return name
}

// logNames picks the logs out of a directory listing, in ascending order of zxid.
func logNames(names []string) []zxid.Zxid {
	var logs []zxid.Zxid
	for _, name := range names {
		if z, ok := parseLogName(name); ok {
			logs = append(logs, z)
		}
	}
	slices.Sort(logs)
	return logs
}

// current leaves out the logs that a snapshot which was installed has replaced.
func (s *Store) current(logs []zxid.Zxid) []zxid.Zxid {
	barrier := zxid.Zxid(s.barrier.Load())
	return slices.DeleteFunc(logs, func(z zxid.Zxid) bool { return barrier > 0 && z <= barrier })
}

// follows tells whether z may come directly after prev in a log: the next counter, or the first one of a later epoch.
func follows(prev, z zxid.Zxid) bool {
	return z == prev+1 || z.Epoch() > prev.Epoch() && z.Counter() == zxid.CounterMin
}
