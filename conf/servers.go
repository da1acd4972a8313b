package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"zabra/zab/zxid"
)

// Server is one server line: server.<id>=host:quorumPort:electionPort[:role][|...][;[clientHost:]clientPort].
type Server struct {
	ID        zxid.ServerID
	Addresses []ServerAddress
	Observer  bool
	// ClientHost and ClientPort are the client address of the line; the port is Unset if it has none.
	ClientHost string
	ClientPort int
}

// ServerAddress is where other servers reach a server. IPv6 addresses have no brackets.
type ServerAddress struct {
	Host                     string
	QuorumPort, ElectionPort int
}

// String renders the value of the line as ZooKeeper does: the role always, several addresses by host, the client part
// only if there is one.
func (s Server) String() string {
	role := "participant"
	if s.Observer {
		role = "observer"
	}
	list := slices.Clone(s.Addresses)
	slices.SortStableFunc(list, func(a, b ServerAddress) int { return strings.Compare(a.Host, b.Host) })
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = fmt.Sprintf("%s:%d:%d:%s", bracketed(a.Host), a.QuorumPort, a.ElectionPort, role)
	}
	text := strings.Join(parts, "|")
	if s.ClientPort != Unset {
		text += fmt.Sprintf(";%s:%d", bracketed(s.ClientHost), s.ClientPort)
	}
	return text
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

const wrongForm = " does not have the form server_config or server_config;client_config" +
	" where server_config is the pipe separated list of host:port:port or host:port:port:type" +
	" and client_config is port or host:port"

// parseServer reads the value of a server line. Blanks around the parts are tolerated, which ZooKeeper does not.
func parseServer(id zxid.ServerID, value string) (Server, error) {
	s := Server{ID: id, ClientPort: Unset}
	peers, client, hasClient := strings.Cut(value, ";")
	list := strings.Split(peers, "|")
	if strings.Contains(client, ";") || len(list) > addressesMax {
		return s, errors.New(shown(value) + wrongForm)
	}
	for i, text := range list {
		parts := hostParts(trim(text))
		if len(parts) < 3 || len(parts) > 4 {
			return s, errors.New(shown(value) + wrongForm)
		}
		a := ServerAddress{Host: parts[0]}
		var err error
		if a.QuorumPort, err = serverPort(parts[0], parts[1]); err != nil {
			return s, err
		}
		if a.ElectionPort, err = serverPort(parts[0], parts[2]); err != nil {
			return s, err
		}
		if a.QuorumPort == a.ElectionPort {
			return s, fmt.Errorf("Client and election port must be different! Please update the configuration file on server.%d", id)
		}
		observer, err := role(parts[3:])
		if err != nil {
			return s, err
		}
		if i > 0 && observer != s.Observer {
			return s, fmt.Errorf("Multiple addresses should have the same type (participant/observer): %s", shown(value))
		}
		s.Observer = observer
		s.Addresses = append(s.Addresses, a)
	}
	if !hasClient {
		return s, nil
	}
	parts := hostParts(trim(client))
	if len(parts) > 2 {
		return s, errors.New(shown(value) + wrongForm)
	}
	s.ClientHost = "0.0.0.0"
	if len(parts) == 2 {
		s.ClientHost = parts[0]
	}
	port, err := serverPort(s.ClientHost, parts[len(parts)-1])
	if err == nil && port > 0 {
		s.ClientPort = port
	}
	return s, err
}

// hostParts splits at colons and trims the parts, but keeps a bracketed IPv6 address together.
func hostParts(text string) []string {
	var parts []string
	if end := strings.IndexByte(text, ']'); strings.HasPrefix(text, "[") && end > 0 {
		parts = append(parts, text[1:end])
		text = text[end+1:]
		if text == "" {
			return parts
		}
		text = strings.TrimPrefix(text, ":")
	}
	for part := range strings.SplitSeq(text, ":") {
		parts = append(parts, trim(part))
	}
	return parts
}

func serverPort(host, text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("Address unresolved: %s:%s", shown(host), shown(text))
	}
	if n < 0 || n > math.MaxUint16 {
		return 0, fmt.Errorf("port out of range:%d", n)
	}
	return int(n), nil
}

func role(text []string) (observer bool, err error) {
	if len(text) == 0 {
		return false, nil
	}
	switch strings.ToLower(text[0]) {
	case "participant":
		return false, nil
	case "observer":
		return true, nil
	}
	return false, fmt.Errorf("Unrecognised peertype: %s", shown(text[0]))
}

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
		case strings.HasPrefix(g.key, "server."), strings.HasPrefix(g.key, "group"), strings.HasPrefix(g.key, "weight"):
			l.servers = append(l.servers, g)
		default:
			l.fault(g.source, g.key, "Unrecognised parameter: %s", shown(g.key))
		}
	}
}

// serverLines parses what is left in l.servers. Groups and weights mean nothing for one server and are not looked at.
func (l *loader) serverLines() {
	byKey := map[string]given{}
	for _, g := range l.servers {
		if old, again := byKey[g.key]; again {
			l.warn(old.source, g.key, "set again on line %d, which counts", g.source.line)
		}
		byKey[g.key] = g
	}
	for _, name := range sortedKeys(byKey) {
		g := byKey[name]
		text, ok := strings.CutPrefix(name, "server.")
		if !ok {
			continue
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			l.fault(g.source, g.key, "For input string: %q", shown(text))
			continue
		}
		s, err := parseServer(zxid.ServerID(id), g.value)
		if err != nil {
			l.fault(g.source, g.key, "%v", err)
			continue
		}
		if len(s.Addresses) > 1 && !l.cfg.MultiAddressEnabled {
			l.fault(g.source, g.key, "Multiple address feature is disabled, but multiple addresses were specified for sid %d", id)
			continue
		}
		l.cfg.Servers = append(l.cfg.Servers, s)
		l.cfg.sources[name] = g.source
	}
	slices.SortFunc(l.cfg.Servers, func(a, b Server) int { return compare(a.ID, b.ID) })
}

func compare(a, b zxid.ServerID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

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
		return
	}
	line, _, _ := strings.Cut(string(text), "\n")
	id, err := strconv.ParseInt(trim(line), 10, 64)
	if err != nil {
		l.fault(source{file: path}, "", "serverid %s is not a number", shown(trim(line)))
		return
	}
	l.cfg.MyID = zxid.ServerID(id)
}

// clientAddress takes the client address of this server's own line, which must not contradict clientPort.
func (l *loader) clientAddress() {
	c := l.cfg
	own := slices.IndexFunc(c.Servers, func(s Server) bool { return s.ID == c.MyID })
	if own < 0 && c.MyID == Unset && len(c.Servers) == 1 && c.Servers[0].ClientPort != Unset && c.ClientPort == Unset {
		// Apache would listen on nothing here, which helps nobody: only one server can be meant.
		own = 0
		l.warn(source{file: c.Path}, "", "myid file is missing: taking the client address of the only server line")
	}
	if own < 0 || c.Servers[own].ClientPort == Unset {
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
	from := c.sources[fmt.Sprintf("server.%d", s.ID)]
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
	host := l.cfg.ClientPortAddress
	if l.resolve == nil || host == "" || net.ParseIP(host) != nil {
		return
	}
	if _, err := l.resolve(host); err != nil {
		l.fault(l.cfg.sources["clientPortAddress"], "clientPortAddress", "%s cannot be resolved: %v", shown(host), err)
	}
}

// checkSize decides whether the server lines make a server that this version can run: none at all, or one.
func (c *Config) checkSize() []Fault {
	voters, observers := 0, 0
	for _, s := range c.Servers {
		if s.Observer {
			observers++
		} else {
			voters++
		}
	}
	text := ""
	switch {
	case voters == 0 && !c.StandaloneEnabled:
		text = "standaloneEnabled = false then number of participants should be >0"
	case voters == 0 && observers > 0:
		text = "Observers w/o participants is an invalid configuration"
	case voters == 1 && observers > 0 && c.StandaloneEnabled:
		text = "Observers w/o quorum is an invalid configuration"
	case voters > 1:
		text = fmt.Sprintf("ensembles are not supported yet by this version: %d voters are configured", voters)
	case voters == 1 && !c.StandaloneEnabled:
		text = "ensembles are not supported yet by this version: standaloneEnabled=false asks for one of one server"
	default:
		return nil
	}
	return []Fault{{Key: "", Text: text}}
}
