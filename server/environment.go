package server

import (
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"zabra/server/admin"
)

// notAvailable is what ZooKeeper prints for a property that there is not.
const notAvailable = "<NA>"

// environment returns ZooKeeper's list of properties. The keys of the Java machine tell what comes closest to them here.
func environment(version string) admin.Environment {
	host, err := os.Hostname()
	if err != nil {
		host = notAvailable
	}
	name, home := notAvailable, notAvailable
	if u, err := user.Current(); err == nil {
		name, home = u.Username, u.HomeDir
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = notAvailable
	}
	free, limit, total := memory()
	return admin.Environment{
		{Key: "zookeeper.version", Value: version},
		{Key: "host.name", Value: host},
		{Key: "java.version", Value: runtime.Version()},
		{Key: "java.vendor", Value: notAvailable},
		{Key: "java.home", Value: notAvailable},
		{Key: "java.class.path", Value: notAvailable},
		{Key: "java.library.path", Value: notAvailable},
		{Key: "java.io.tmpdir", Value: os.TempDir()},
		{Key: "java.compiler", Value: runtime.Compiler},
		{Key: "os.name", Value: osName()},
		{Key: "os.arch", Value: runtime.GOARCH},
		{Key: "os.version", Value: osRelease()},
		{Key: "user.name", Value: name},
		{Key: "user.home", Value: home},
		{Key: "user.dir", Value: dir},
		{Key: "os.memory.free", Value: megabytes(free)},
		{Key: "os.memory.max", Value: megabytes(limit)},
		{Key: "os.memory.total", Value: megabytes(total)},
	}
}

// memory returns, in bytes, what of the process's memory is unused, how far it may grow, and how much it has.
func memory() (free, limit, total uint64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(samples)
	free, total = samples[0].Value.Uint64(), samples[2].Value.Uint64()-samples[1].Value.Uint64()
	limit = uint64(debug.SetMemoryLimit(-1))
	if physical := physicalMemory(); physical > 0 {
		limit = min(limit, physical)
	}
	return free, limit, total
}

func megabytes(n uint64) string { return strconv.FormatUint(n>>20, 10) + "MB" }

// versionText makes the version text of the options, and of what the binary knows of itself where they say nothing.
func versionText(opts Options) string {
	own, revision, built := opts.Version, opts.Revision, opts.Built
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return admin.Version(own, revision, built)
	}
	if own == "" && info.Main.Version != "(devel)" {
		own = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision" && revision == "":
			revision = setting.Value[:min(len(setting.Value), revisionChars)]
		case setting.Key == "vcs.time" && built.IsZero():
			if t, err := time.Parse(time.RFC3339, setting.Value); err == nil {
				built = t
			}
		}
	}
	return admin.Version(own, revision, built)
}

// revisionChars is how much of a revision's hash is shown.
const revisionChars = 12
