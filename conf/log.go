package conf

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Log says where the server's log goes. ZooKeeper leaves that to log4j or logback, whose own files are not read here; the
// properties that those which come with it refer to mean the same.
type Log struct {
	// ConsoleLevel and FileLevel are levels as LogLevel is: nothing below goes there. "" adds nothing to LogLevel.
	ConsoleLevel, FileLevel string
	// ToFile writes the log to File in Dir, NotToConsole keeps it from standard output.
	ToFile, NotToConsole bool
	// Dir is a directory, "" for the one that the process runs in, File a name in it.
	Dir, File string
	// FileBytesMax is the size at which the file is set aside, FilesKept how many of the old ones stay.
	FileBytesMax int64
	FilesKept    int
}

// Path is the name of the file.
func (l *Log) Path() string { return filepath.Join(l.Dir, l.File) }

// AuditText and AuditJSON are the formats of an audit log.
const (
	AuditText = "text"
	AuditJSON = "json"
)

// auditFile is what ZooKeeper's own set-up calls the audit log.
const auditFile = "zookeeper_audit.log"

// Audit configures the audit log.
type Audit struct {
	Enabled bool
	// Format is AuditText, the lines of ZooKeeper, or AuditJSON.
	Format string
	// File is where it goes, "" for zookeeper_audit.log in the directory of the log if that is set, and else for the log itself.
	File string
}

// AuditPath is the file of the audit log, "" if it has none of its own.
func (c *Config) AuditPath() string {
	if c.Audit.File != "" {
		return c.Audit.File
	}
	if c.Log.Dir != "" {
		return filepath.Join(c.Log.Dir, auditFile)
	}
	return ""
}

func logDefaults() Log {
	return Log{File: "zookeeper.log", FileBytesMax: 256 << 20, FilesKept: 20}
}

// logKeys are those of the log and the audit log. Where the log goes is settled at the start.
var logKeys = []key{
	key{name: "root.logger", reach: property, set: setRootLogger, show: showRootLogger}.running(func(to, from *Config) {
		to.LogLevel, to.Log.ToFile, to.Log.NotToConsole = from.LogLevel, from.Log.ToFile, from.Log.NotToConsole
	}),
	levelKey("console.threshold", func(c *Config) *string { return &c.Log.ConsoleLevel }),
	levelKey("log.threshold", func(c *Config) *string { return &c.Log.FileLevel }),
	text("log.dir", property, func(c *Config) *string { return &c.Log.Dir }),
	text("log.file", property, func(c *Config) *string { return &c.Log.File }),
	{name: "log.maxfilesize", reach: property, set: setFileSize, show: func(c *Config) (string, bool) { return strconv.FormatInt(c.Log.FileBytesMax, 10), true }},
	propInt("log.maxbackupindex", property, 1, filesKeptMax, func(c *Config) *int { return &c.Log.FilesKept }),

	livePropBool("audit.enable", func(c *Config) *bool { return &c.Audit.Enabled }),
	live(bareOneOf("zabra.audit.format", auditFormat, AuditText, AuditJSON), auditFormat),
	live(text("zabra.audit.file", bare, auditFileOf), auditFileOf),
}

func auditFormat(c *Config) *string { return &c.Audit.Format }
func auditFileOf(c *Config) *string { return &c.Audit.File }

func bareOneOf(name string, field func(*Config) *string, words ...string) key {
	k := oneOf(name, field, words...)
	k.reach = bare
	return k
}

// filesKeptMax bounds the old files of a log.
const filesKeptMax = 1000

// logLevels are the levels of Java's log libraries, and what they are here.
var logLevels = map[string]string{
	"ALL": "debug", "TRACE": "debug", "DEBUG": "debug", "INFO": "info", "WARN": "warn", "ERROR": "error", "FATAL": "error", "OFF": "error",
}

// ParseLogLevel reads what scripts and images hand to log4j, as in "WARN,CONSOLE": the level counts, the rest names
// appenders. It is debug, info, warn or error here; ok is false if there is none.
func ParseLogLevel(text string) (level string, ok bool) {
	word, _, _ := strings.Cut(text, ",")
	level, ok = logLevels[strings.ToUpper(trim(word))]
	return level, ok
}

// levelKey is a property that holds a level.
func levelKey(name string, field func(*Config) *string) key {
	set := func(c *Config, v string) (string, error) {
		level, ok := ParseLogLevel(v)
		*field(c) = level
		if !ok && v != "" {
			return fmt.Sprintf("%q is not a level, and counts for nothing", shown(v)), nil
		}
		return "", nil
	}
	return live(key{name: name, reach: property, set: set, show: showText(field)}, field)
}

// The appenders of the log4j.properties that came with ZooKeeper.
const (
	appenderConsole = "CONSOLE"
	appenderFile    = "ROLLINGFILE"
)

// setRootLogger reads a level and the names of appenders. Without one of those it knows, the log goes to standard output.
func setRootLogger(c *Config, v string) (string, error) {
	c.LogLevel, c.Log.ToFile, c.Log.NotToConsole = "", false, false
	if v == "" {
		return "", nil
	}
	var appenders []string
	_, rest, _ := strings.Cut(v, ",")
	for name := range strings.SplitSeq(rest, ",") {
		appenders = append(appenders, strings.ToUpper(trim(name)))
	}
	if slices.Contains(appenders, appenderFile) {
		c.Log.ToFile, c.Log.NotToConsole = true, !slices.Contains(appenders, appenderConsole)
	}
	level, ok := ParseLogLevel(v)
	if !ok {
		return fmt.Sprintf("%q does not begin with a level, and counts for nothing", shown(v)), nil
	}
	c.LogLevel = level
	return "", nil
}

func showRootLogger(c *Config) (string, bool) {
	parts := []string{c.LogLevel}
	if c.Log.ToFile {
		if !c.Log.NotToConsole {
			parts = append(parts, appenderConsole)
		}
		parts = append(parts, appenderFile)
	}
	text := strings.Join(parts, ",")
	return text, text != ""
}

// fileUnits are those of log4j and logback.
var fileUnits = []struct {
	suffix string
	bytes  int64
}{{"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}}

// setFileSize reads a size as log4j and logback do: bytes, or a number with KB, MB or GB.
func setFileSize(c *Config, v string) (string, error) {
	digits, factor := strings.ToUpper(v), int64(1)
	for _, u := range fileUnits {
		if rest, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, factor = trim(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/factor {
		return fmt.Sprintf("%q is not a size such as 256MB, the default %d is used", shown(v), c.Log.FileBytesMax), nil
	}
	c.Log.FileBytesMax = n * factor
	return "", nil
}
