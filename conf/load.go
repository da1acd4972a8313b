package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zabra/zab/ensemble"
)

// Load reads the configuration file at path; "" stands for the built-in configuration. overrides are the -D properties
// by their full name ("zookeeper.snapCount", "jute.maxbuffer"); the zookeeper. ones yield to the file, as in ZooKeeper,
// but not to the built-in configuration. It also reads what the file refers to: the dynamic file and myid, and it
// resolves clientPortAddress.
//
// The error is an *Error with all faults, or the error of reading the file.
func Load(path string, overrides map[string]string) (*Config, error) {
	if path == "" {
		l := newLoader("")
		l.cfg.Embedded, l.cfg.FileText = true, embedded
		l.file("", []byte(embedded))
		l.properties(overrides)
		return l.finish()
	}
	text, err := readFile(path, fileBytesMax)
	if err != nil {
		return nil, fmt.Errorf("Error processing %s: %w", path, err)
	}
	l := newLoader(path)
	l.resolve, l.cfg.FileText = net.LookupHost, withoutSecrets(text)
	l.properties(overrides)
	l.file(path, text)
	return l.finish()
}

// FromArguments is the configuration of a server that was started as "port dataDir [tickTime] [maxClientCnxns]".
func FromArguments(args []string, overrides map[string]string) (*Config, error) {
	if len(args) < 2 || len(args) > 4 {
		return nil, fmt.Errorf("%d arguments instead of two to four: port dataDir [tickTime] [maxClientCnxns]", len(args))
	}
	l := newLoader("")
	l.properties(overrides)
	for i, name := range []string{"clientPort", "dataDir", "tickTime", "maxClientCnxns"}[:len(args)] {
		l.given[name] = given{key: name, value: args[i], label: name}
	}
	return l.finish()
}

// parse is Load without the file system: no dynamic file, no myid, no name lookup.
func parse(text []byte, overrides map[string]string) (*Config, error) {
	l := newLoader("zoo.cfg")
	l.properties(overrides)
	l.file(l.cfg.Path, text)
	l.readFile = func(string, int) ([]byte, error) { return nil, fs.ErrNotExist }
	return l.finish()
}

// source is where a value comes from.
type source struct {
	file string // "" is the command line
	line int
}

// given is a key with the value that counts, trimmed.
type given struct {
	key, value string
	label      string // the key as it was written: -Dzookeeper.key on the command line
	source     source
}

// loader gathers the values of all sources, then fills in the Config.
type loader struct {
	cfg      *Config
	given    map[string]given
	servers  []given // server.N, group*, weight*; each key once when serverLines is through
	badLines bool    // not every one of them could be read
	badMyID  bool    // the file myid is there and cannot be read
	faults   []Fault
	warnings []Fault

	defines  map[string]string // all -D properties
	readFile func(path string, bytesMax int) ([]byte, error)
	resolve  func(host string) ([]string, error) // nil: names are not looked up
}

func newLoader(path string) *loader {
	l := &loader{cfg: defaults(), given: map[string]given{}, readFile: readFile}
	l.cfg.Path = path
	return l
}

func (l *loader) fault(s source, key, format string, args ...any) {
	if len(l.faults) < faultsMax {
		l.faults = append(l.faults, Fault{File: s.file, Line: s.line, Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

func (l *loader) warn(s source, key, format string, args ...any) {
	if len(l.warnings) < faultsMax {
		l.warnings = append(l.warnings, Fault{File: s.file, Line: s.line, Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

// ownPrefix begins the names of keys that ZooKeeper does not have.
const ownPrefix = "zabra."

// properties takes the -D properties that concern this server. Those of the JVM and its libraries are none of ours.
func (l *loader) properties(overrides map[string]string) {
	l.defines = overrides
	for _, name := range sortedKeys(overrides) {
		value := trim(overrides[name])
		key, prefixed := strings.CutPrefix(name, "zookeeper.")
		r, hasField := lookup(key)
		label := "-D" + shown(name)
		g := given{key: key, value: value, label: label}
		switch {
		case hasField && r.reach == bare && !prefixed, hasField && (r.reach == property || r.reach == either) && prefixed,
			key == "fsync.warningthresholdms":
			l.given[key] = g
		case hasField && r.reach == direct && prefixed, prefixed && strictIntegers[key]:
			l.warn(source{}, label, "no effect: ZooKeeper reads %s from the file only", key)
		case hasField && r.reach == bare:
			l.warn(source{}, label, "no effect: the property is called %s", key)
		case hasField:
			l.warn(source{}, label, "no effect: the property is called zookeeper.%s", key)
		case prefixed:
			l.given[key] = g
		}
	}
}

// file takes the entries of a properties file.
func (l *loader) file(path string, text []byte) {
	if i := bytes.IndexFunc(text, func(r rune) bool { return r > 0x7e }); i >= 0 {
		l.warn(source{path, 1 + bytes.Count(text[:i], []byte("\n"))}, "", "read as ISO-8859-1, as Java does; other characters are written \\uXXXX")
	}
	entries, faults := scan(text)
	for _, f := range faults {
		l.fault(source{path, f.Line}, f.Key, "%s", f.Text)
	}
	for _, e := range entries {
		g := fromEntry(e, path)
		if ensemble.Belongs(g.key) {
			l.servers = append(l.servers, g)
			continue
		}
		l.entry(g)
	}
}

func fromEntry(e entry, path string) given {
	key := trim(e.key)
	return given{key: key, value: trim(e.value), label: shown(key), source: source{path, e.line}}
}

// entry lets a key of the file meet what was given before it.
func (l *loader) entry(g given) {
	old, again := l.given[g.key]
	k, hasField := lookup(g.key)
	switch {
	case again && old.source.line > 0:
		l.warn(old.source, g.key, "set again on line %d, which counts", g.source.line)
	case again && hasField && k.reach == bare:
		l.warn(g.source, g.key, "also given as -D%s, which counts", g.key)
		return
	case again && old.value != g.value:
		l.warn(g.source, g.key, "also given as -Dzookeeper.%s; the file counts, as in ZooKeeper", g.key)
	}
	if hasField && k.reach == bare && !l.cfg.Embedded && !strings.HasPrefix(g.key, ownPrefix) {
		l.warn(g.source, g.key, "ZooKeeper takes this one as -D%s only and would ignore the line; here it counts", g.key)
	}
	l.given[g.key] = g
}

// finish fills in the fields, follows the references and checks the whole.
func (l *loader) finish() (*Config, error) {
	all := make([]given, 0, len(l.given))
	for _, name := range sortedKeys(l.given) {
		all = append(all, l.given[name])
	}
	slices.SortStableFunc(all, func(a, b given) int { return a.source.line - b.source.line })
	for _, g := range all {
		l.apply(g)
	}
	l.dynamicFile()
	l.serverLines()
	l.myID()
	l.ensemble()
	l.logins()
	for _, g := range all {
		l.applyFieldless(g)
	}
	l.clientAddress()
	l.complete()
	faults := l.cfg.check()
	if !l.badLines {
		faults = append(faults, l.cfg.checkSize()...)
	}
	if !l.badMyID {
		faults = append(faults, l.cfg.checkMyID()...)
	}
	for _, f := range faults {
		s, ok := l.cfg.sources[f.Key]
		if !ok {
			s.file = l.cfg.Path
		}
		l.fault(s, f.Key, "%s", f.Text)
	}
	byLine := func(a, b Fault) int { return a.Line - b.Line }
	slices.SortStableFunc(l.faults, byLine)
	slices.SortStableFunc(l.warnings, byLine)
	if len(l.faults) > 0 {
		return nil, &Error{Path: l.cfg.Path, Faults: l.faults, Warnings: l.warnings}
	}
	l.cfg.Warnings = l.warnings
	return l.cfg, nil
}

// apply puts one value into its field, if it has one.
func (l *loader) apply(g given) {
	k, ok := lookup(g.key)
	if !ok {
		return
	}
	remark, err := k.set(l.cfg, g.value)
	if err != nil {
		l.fault(g.source, g.label, "%s", err.Error())
	}
	if remark != "" {
		l.warn(g.source, g.label, "%s", remark)
	}
	l.cfg.sources[g.key] = g.source
}

// applyFieldless judges a value that has no field, or one without effect. It must be known whether there is an ensemble.
func (l *loader) applyFieldless(g given) {
	if k, ok := lookup(g.key); ok && !k.idle || toldElsewhere[g.key] {
		return
	}
	remark, known, err := fieldless(g.key, g.value)
	if l.cfg.Ensemble != nil && err == nil {
		if r, concerns, e := amongServers(g.key, g.value); concerns {
			remark, known, err = r, true, e
		}
	}
	switch {
	case err != nil:
		l.fault(g.source, g.label, "%s", err.Error())
	case remark != "":
		l.warn(g.source, g.label, "%s", remark)
	case !known && len(l.warnings) < faultsMax: // looking for the nearest key takes time
		l.warn(g.source, g.label, "%s", unknown(g.key))
	case known && !asksForNothing(g.key, g.value):
		l.cfg.WithoutEffect = append(l.cfg.WithoutEffect, g.key)
	}
}

// asksForNothing tells whether the value is what a server does anyway.
func asksForNothing(key, value string) bool {
	if value == "" || value == "false" {
		return true
	}
	k, ok := lookup(key)
	if !ok {
		return false
	}
	set := defaults()
	if _, err := k.set(set, value); err != nil {
		return false
	}
	usual, _ := k.show(defaults())
	now, _ := k.show(set)
	return usual == now
}

// unknown is the warning for a key that nothing reads, here or in ZooKeeper.
func unknown(key string) string {
	text := fmt.Sprintf("unknown key without effect (ZooKeeper would make it the system property zookeeper.%s)", shown(key))
	if rest, ok := strings.CutPrefix(key, "zookeeper."); ok && isKnown(rest) {
		return text + fmt.Sprintf("; in the file it is called %s", rest)
	}
	if best := nearest(key); best != "" {
		return text + fmt.Sprintf("; did you mean %s?", best)
	}
	return text
}

// keyIndex finds a key's entry in keys.
var keyIndex = func() map[string]int {
	m := make(map[string]int, len(keys))
	for i, k := range keys {
		m[k.name] = i
	}
	return m
}()

func lookup(name string) (key, bool) {
	i, ok := keyIndex[name]
	if !ok {
		return familyKey(name)
	}
	return keys[i], true
}

// readFile reads a whole file, refusing one that is longer than bytesMax.
func readFile(path string, bytesMax int) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(bytesMax)+1))
	if err != nil {
		return nil, err
	}
	if len(text) > bytesMax {
		return nil, fmt.Errorf("longer than %d bytes: %w", bytesMax, errTooLong)
	}
	return text, nil
}

var errTooLong = errors.New("not a configuration file")

func sortedKeys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
