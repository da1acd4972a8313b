package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// size counts the server lines.
func (c *Config) size() (voters, observers int) {
	for _, m := range c.Servers {
		if m.Observer {
			observers++
		} else {
			voters++
		}
	}
	return voters, observers
}

// ensemble makes the membership of the server lines, if they are those of an ensemble rather than of a standalone server.
func (l *loader) ensemble() {
	c := l.cfg
	voters, _ := c.size()
	if l.badLines || voters == 0 || voters == 1 && c.StandaloneEnabled {
		return
	}
	lines := make([]ensemble.Line, len(l.servers))
	for i, g := range l.servers {
		lines[i] = ensemble.Line{Key: g.key, Value: g.value}
	}
	e, err := ensemble.FromLines(lines, fileVersion(c.DynamicConfigFile))
	if err != nil {
		l.ensembleFault(err)
		return
	}
	c.Ensemble = e
	switch {
	case voters <= 2:
		l.warn(source{file: c.Path}, "", "No server failure will be tolerated. You need at least 3 servers.")
	case voters%2 == 0:
		l.warn(source{file: c.Path}, "", "Non-optimal configuration, consider an odd number of servers.")
	}
	l.nextEnsemble()
	l.ensembleRemarks()
}

// ensembleFault reports why there is no ensemble, with the line that is to blame, if it is one line.
func (l *loader) ensembleFault(err error) {
	at := source{file: l.cfg.Path}
	if l.cfg.DynamicConfigFile != "" {
		at.file = l.cfg.DynamicConfigFile
	}
	var le *ensemble.LineError
	if !errors.As(err, &le) {
		l.fault(at, "", "%v", err)
		return
	}
	for _, g := range l.servers {
		if g.key == le.Key {
			at = g.source
		}
	}
	l.fault(at, le.Key, "%v", le.Err)
}

// fileVersion is the version of a membership as the name of its file tells it: what stands behind the last dot, if that
// is a hexadecimal number.
func fileVersion(path string) int64 {
	name := filepath.Base(path)
	n, err := strconv.ParseInt(name[strings.LastIndexByte(name, '.')+1:], 16, 64)
	if err != nil || n < 0 || !strings.Contains(name, ".") {
		return 0
	}
	return n
}

// nextEnsemble reads the membership that was proposed when a ZooKeeper server last ran on this configuration.
func (l *loader) nextEnsemble() {
	if l.cfg.Path == "" {
		return
	}
	path := l.cfg.Path + ".dynamic.next"
	text, err := l.readFile(path, fileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		l.cfg.NextEnsemble, err = parseNext(text)
	}
	if err != nil {
		l.warn(source{file: path}, "", "ignored, as ZooKeeper does: %v", err)
		return
	}
	l.warn(source{file: path}, "", "a change of the membership to version %x was under way; this version does not complete it, version %x counts",
		l.cfg.NextEnsemble.Version(), l.cfg.Ensemble.Version())
}

func parseNext(text []byte) (*ensemble.Config, error) {
	entries, faults := scan(text)
	if len(faults) > 0 {
		return nil, errors.New(faults[0].String())
	}
	// The last of several equal keys counts, as in every properties file.
	last := map[string]string{}
	for _, e := range entries {
		last[trim(e.key)] = trim(e.value)
	}
	var b strings.Builder
	for _, key := range sortedKeys(last) {
		b.WriteString(key + "=" + last[key] + "\n")
	}
	return ensemble.Parse(b.String())
}

// ensembleRemarks warns of what is allowed in an ensemble but seldom meant, or not done by this version.
func (l *loader) ensembleRemarks() {
	c := l.cfg
	if own, ok := c.Ensemble.Member(c.MyID); ok && own.Observer != (c.PeerType == "observer") && c.Set("peerType") {
		role := map[bool]string{true: "observer", false: "participant"}[own.Observer]
		l.warn(c.sources["peerType"], "peerType", "Peer type from servers list (%s) doesn't match peerType (%s). Defaulting to servers list.", role, c.PeerType)
	}
	if c.ReconfigEnabled {
		l.warn(c.sources["reconfigEnabled"], "reconfigEnabled", "no effect: this version cannot change the ensemble at run time")
	}
	if c.ConnectToLearnerMasterLimitTicks < 0 {
		const name = "connectToLearnerMasterLimit"
		l.warn(c.sources[name], name, "%d is negative, initLimit is used", c.ConnectToLearnerMasterLimitTicks)
		c.ConnectToLearnerMasterLimitTicks = 0
	}
	seen := map[string]zxid.ServerID{}
	for _, m := range c.Ensemble.Members() {
		for _, a := range m.Addresses {
			for _, port := range []int{a.QuorumPort, a.ElectionPort} {
				at := fmt.Sprintf("%s:%d", strings.ToLower(a.Host), port)
				if other, taken := seen[at]; taken {
					l.warn(c.sources[memberKey(m.ID)], memberKey(m.ID), "%s is also an address of server.%d", at, other)
				}
				seen[at] = m.ID
			}
		}
	}
}

// checkEnsemble finds what keeps this server from being a member of its ensemble.
func (c *Config) checkEnsemble() (faults []Fault) {
	if c.Ensemble == nil {
		return nil
	}
	wrong := func(bad bool, key, format string, args ...any) {
		if bad {
			faults = append(faults, Fault{Key: key, Text: fmt.Sprintf(format, args...)})
		}
	}
	own, member := c.Ensemble.Member(c.MyID)
	wrong(c.InitLimitTicks == 0, "initLimit", "initLimit is not set")
	wrong(c.InitLimitTicks < 0, "initLimit", "%d is not a number of ticks", c.InitLimitTicks)
	wrong(c.SyncLimitTicks == 0, "syncLimit", "syncLimit is not set")
	wrong(c.SyncLimitTicks < 0, "syncLimit", "%d is not a number of ticks", c.SyncLimitTicks)
	wrong(c.CnxTimeoutMs < 1, "cnxTimeout", "%d is less than 1", c.CnxTimeoutMs)
	wrong(c.ElectionPortBindRetry < 0, "electionPortBindRetry", "%d is negative", c.ElectionPortBindRetry)
	wrong(member && c.ExtendedTypesEnabled && tooLarge(c.MyID, c.Emulate353TTLNodes), "extendedTypesEnabled",
		"extendedTypesEnabled is true but Server ID is too large. Cannot be larger than %d", serverIDMax(c.Emulate353TTLNodes))
	if member {
		faults = append(faults, c.checkPorts(own)...)
	}
	return faults
}

// checkMyID finds out whether this server is a member of its ensemble.
func (c *Config) checkMyID() []Fault {
	if c.Ensemble == nil || c.DataDir == "" {
		return nil
	}
	if _, ok := c.Ensemble.Member(c.MyID); ok {
		return nil
	}
	what := fmt.Sprintf("My id %d not in the peer list", c.MyID)
	if c.MyID == Unset {
		what = "myid file is missing"
	}
	return []Fault{{Text: fmt.Sprintf("%s: %s has to contain the number of this server's line, one of %s",
		what, filepath.Join(c.DataDir, "myid"), memberIDs(c.Ensemble))}}
}

// serverIDMax is the highest id that leaves the first byte of session ids distinct from the marks of TTL nodes.
func serverIDMax(emulate353 bool) zxid.ServerID {
	if emulate353 {
		return 127
	}
	return 254
}

func tooLarge(id zxid.ServerID, emulate353 bool) bool {
	return id > serverIDMax(emulate353) || zxid.ServerID(byte(id)) > serverIDMax(emulate353)
}

// checkPorts finds ports that this server would have to open twice. The client port clashes with another one only if
// both are sure to be opened on the same address. An observer never opens its quorum port.
func (c *Config) checkPorts(own ensemble.Member) (faults []Fault) {
	if c.ClientPort <= 0 {
		return nil
	}
	for _, a := range own.Addresses {
		if !wildcard(c.ClientPortAddress) && !wildcard(a.Host) && !c.QuorumListenOnAllIPs && !strings.EqualFold(c.ClientPortAddress, a.Host) {
			continue
		}
		for _, p := range []struct {
			name string
			port int
		}{{"quorum", a.QuorumPort}, {"election", a.ElectionPort}} {
			if p.port == c.ClientPort && (p.name == "election" || !own.Observer) {
				faults = append(faults, Fault{Key: memberKey(own.ID), Text: fmt.Sprintf("port %d is both the %s port and the client port of this server", p.port, p.name)})
			}
		}
	}
	return faults
}

func memberIDs(e *ensemble.Config) string {
	var ids []string
	for _, m := range e.Members() {
		ids = append(ids, strconv.FormatInt(int64(m.ID), 10))
	}
	return shown(strings.Join(ids, ", "))
}

// checkSize finds server lines that make neither an ensemble nor a standalone server.
func (c *Config) checkSize() []Fault {
	if c.Ensemble != nil {
		return nil
	}
	voters, observers := c.size()
	text := ""
	switch {
	case voters == 0 && !c.StandaloneEnabled:
		text = "standaloneEnabled = false then number of participants should be >0"
	case voters == 0 && observers > 0:
		text = "Observers w/o participants is an invalid configuration"
	case voters == 1 && observers > 0 && c.StandaloneEnabled:
		text = "Observers w/o quorum is an invalid configuration"
	default:
		return nil
	}
	return []Fault{{Key: "", Text: text}}
}

// amongServers judges keys without a field that mean something in an ensemble only. concerns is false for all others.
func amongServers(key, value string) (remark string, concerns bool, err error) {
	if err := refusalAmongServers(key, value); err != nil {
		return "", true, err
	}
	on, off := strings.EqualFold(value, "true"), strings.EqualFold(value, "false")
	switch {
	case key == "observerMasterPort" && strings.Trim(value, "+-0") != "":
		return "no effect: observers learn from the leader in this version", true, nil
	case key == "leaderServes" && value == "no":
		return "no effect: the leader serves clients in this version", true, nil
	case key == "localSessionsEnabled" && on, key == "localSessionsUpgradingEnabled" && on:
		return "no effect: every session is a global one in this version", true, nil
	case key == "oraclePath" && value != "":
		return "no effect: no oracle is asked by this version, half of the servers are no quorum", true, nil
	case (key == "syncEnabled" || key == "observer.syncEnabled") && off:
		return "no effect: observers write their log in this version", true, nil
	case key == "forceSnapshotSync" && on:
		return "no effect: a learner gets a snapshot only when the log does not serve", true, nil
	case key == "leader.nodelay" && off, key == "follower.nodelay" && off:
		return "no effect: what servers say to each other leaves at once in this version", true, nil
	case key == "leader.nodelay", key == "follower.nodelay", value == "", off:
		// Nothing is asked for that would be missing.
	case strings.HasPrefix(key, "fastleader."):
		return "no effect: the times of an election are fixed in this version", true, nil
	case strings.HasPrefix(key, "leader."), strings.HasPrefix(key, "learner."):
		return "no effect: this version has no such setting of leaders and learners", true, nil
	}
	return "", false, nil
}

// refusalAmongServers is refusal for what matters in an ensemble only.
func refusalAmongServers(key, value string) error {
	off := strings.EqualFold(value, "false")
	switch {
	case key == "db.autocreate" && off:
		return errors.New("not supported by this version: refusing to start, since a server that has lost its data would vote before it has got them back")
	}
	return nil
}
