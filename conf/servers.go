package conf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// dynamicFile reads the file that holds the server lines, if they are not in the main file.
func (l *loader) dynamicFile() {
	path := l.cfg.DynamicConfigFile
	if path == "" {
		return
	}
	for _, g := range l.servers {
		l.fault(g.source, g.key, "parameter: %s must be in a separate dynamic config file", g.key)
	}
	l.servers = nil
	text, err := l.readFile(path, fileBytesMax)
	if err != nil {
		l.fault(l.cfg.sources["dynamicConfigFile"], "dynamicConfigFile", "%v", err)
		return
	}
	entries, faults := scan(text)
	for _, f := range faults {
		l.fault(source{path, f.Line}, f.Key, "%s", f.Text)
	}
	for _, e := range entries {
		g := fromEntry(e, path)
		switch {
		case g.key == "version":
			l.fault(g.source, g.key, "dynamic file shouldn't have version inside")
		case ensemble.Belongs(g.key):
			l.servers = append(l.servers, g)
		default:
			l.fault(g.source, g.key, "Unrecognised parameter: %s", shown(g.key))
		}
	}
}

// serverLines parses the server lines in l.servers. Groups and weights mean nothing for one server: they are looked at
// when it is clear that there are more.
func (l *loader) serverLines() {
	byKey := map[string]given{}
	for _, g := range l.servers {
		if old, again := byKey[g.key]; again {
			l.warn(old.source, g.key, "set again on line %d, which counts", g.source.line)
		}
		byKey[g.key] = g
	}
	l.servers = l.servers[:0]
	for _, name := range sortedKeys(byKey) {
		g := byKey[name]
		l.servers = append(l.servers, g)
		text, ok := strings.CutPrefix(name, "server.")
		if !ok {
			continue
		}
		m, err := l.serverLine(text, g.value)
		if err != nil {
			l.fault(g.source, g.key, "%v", err)
			l.badLines = true
			continue
		}
		l.cfg.Servers = append(l.cfg.Servers, m)
		l.cfg.sources[memberKey(m.ID)] = g.source
	}
	slices.SortFunc(l.cfg.Servers, func(a, b ensemble.Member) int { return cmp.Compare(a.ID, b.ID) })
}

func (l *loader) serverLine(id, value string) (ensemble.Member, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return ensemble.Member{}, fmt.Errorf("For input string: %q", shown(id))
	}
	m, err := ensemble.ParseMember(zxid.ServerID(n), value)
	if err == nil && len(m.Addresses) > 1 && !l.cfg.MultiAddressEnabled {
		err = fmt.Errorf("Multiple address feature is disabled, but multiple addresses were specified for sid %d", n)
	}
	return m, err
}

func memberKey(id zxid.ServerID) string { return fmt.Sprintf("server.%d", id) }

// myID reads the first line of the file myid. A standalone server needs none.
func (l *loader) myID() {
	if l.cfg.DataDir == "" {
		return
	}
	path := filepath.Join(l.cfg.DataDir, "myid")
	text, err := l.readFile(path, myidBytesMax)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return // a data directory that is a file is for the server to refuse
	}
	if err != nil {
		l.fault(source{file: path}, "", "%v", err)
		l.badMyID = true
		return
	}
	line, _, _ := strings.Cut(string(text), "\n")
	id, err := strconv.ParseInt(trim(line), 10, 64)
	if err != nil {
		if trim(line) == "" {
			l.fault(source{file: path}, "", "is empty: it has to contain the number of this server's line")
			l.badMyID = true
			return
		}
		l.fault(source{file: path}, "", "serverid %s is not a number", shown(trim(line)))
		l.badMyID = true
		return
	}
	l.cfg.MyID = zxid.ServerID(id)
}

// clientAddress takes the client address of this server's own line, which must not contradict clientPort.
func (l *loader) clientAddress() {
	c := l.cfg
	own := slices.IndexFunc(c.Servers, func(m ensemble.Member) bool { return m.ID == c.MyID })
	if own < 0 && c.MyID == Unset && len(c.Servers) == 1 && c.Ensemble == nil && c.Servers[0].ClientPort > 0 && c.ClientPort == Unset {
		// Apache would listen on nothing here, which helps nobody: only one server can be meant.
		own = 0
		l.warn(source{file: c.Path}, "", "myid file is missing: taking the client address of the only server line")
	}
	if own < 0 || c.Servers[own].ClientPort == 0 {
		l.lookupClientAddress()
		return
	}
	s := c.Servers[own]
	if c.ClientPort != Unset && (c.ClientPort != s.ClientPort || !wildcard(c.ClientPortAddress) && !l.sameHost(c.ClientPortAddress, s.ClientHost)) {
		l.fault(c.sources["clientPort"], "clientPort",
			"client address for this server (id = %d) in static config file is %s is different from client address found in dynamic file: %s",
			s.ID, c.ClientAddr(), net.JoinHostPort(s.ClientHost, strconv.Itoa(s.ClientPort)))
		return
	}
	c.ClientPort, c.ClientPortAddress = s.ClientPort, s.ClientHost
	from := c.sources[memberKey(s.ID)]
	c.sources["clientPort"], c.sources["clientPortAddress"] = from, from
	l.lookupClientAddress()
}

func wildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// sameHost compares two names by their addresses, if they can be looked up.
func (l *loader) sameHost(a, b string) bool {
	if strings.EqualFold(a, b) || l.resolve == nil {
		return strings.EqualFold(a, b)
	}
	as, errA := l.resolve(a)
	bs, errB := l.resolve(b)
	return errA == nil && errB == nil && slices.ContainsFunc(as, func(s string) bool { return slices.Contains(bs, s) })
}

// lookupClientAddress makes sure that there is something to bind to.
func (l *loader) lookupClientAddress() {
	l.lookupAddress("clientPortAddress", l.cfg.ClientPortAddress)
	l.lookupAddress("secureClientPortAddress", l.cfg.Security.SecureClientPortAddress)
}

func (l *loader) lookupAddress(key, host string) {
	if l.resolve == nil || host == "" || net.ParseIP(host) != nil {
		return
	}
	if _, err := l.resolve(host); err != nil {
		l.fault(l.cfg.sources[key], key, "%s cannot be resolved: %v", shown(host), err)
	}
}
