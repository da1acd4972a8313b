// Package entrypoint lets a container that holds nothing but this server be used like the official image of ZooKeeper: the
// same environment variables make zoo.cfg and myid, and the same command lines are understood.
//
// Files are written only where there are none: what was mounted or what an earlier start left is used as it is. Beyond the
// official image, a server can take its number and its neighbours from the ordinal at the end of its host name, as the pods
// of a StatefulSet have one.
package entrypoint

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// The ports of a generated configuration, as the official image has them.
const (
	clientPort   = 2181
	quorumPort   = 2888
	electionPort = 3888
)

const (
	// serversMax bounds the server lines that are made from a count.
	serversMax = 255
	// valueBytesMax bounds one environment variable that goes into zoo.cfg.
	valueBytesMax = 64 << 10
)

// Settings are what the environment says.
type Settings struct {
	// ConfDir, DataDir and DataLogDir are the folders of zoo.cfg, of snapshots and myid, and of the transaction log.
	ConfDir, DataDir, DataLogDir string
	// LogLevel is what ZOO_LOG4J_PROP begins with, "" if it is not set.
	LogLevel string

	vars     map[string]string
	hostName string
}

// FromEnvironment reads the variables, which have the form name=value. hostName counts where HOSTNAME is not set. An empty
// variable is the same as none.
func FromEnvironment(environ []string, hostName string) (*Settings, error) {
	s := &Settings{vars: map[string]string{}, hostName: hostName}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value = strings.TrimSpace(value); value != "" {
			s.vars[name] = value
		}
	}
	if name := s.vars["HOSTNAME"]; name != "" {
		s.hostName = name
	}
	s.ConfDir = s.or("ZOO_CONF_DIR", "/conf")
	s.DataDir = s.or("ZOO_DATA_DIR", "/data")
	s.DataLogDir = s.or("ZOO_DATA_LOG_DIR", "/datalog")
	s.LogLevel = s.vars["ZOO_LOG4J_PROP"]
	for _, name := range append(variables(), "ZOO_CFG_EXTRA", "ZOO_SERVERS") {
		if len(s.vars[name]) > valueBytesMax {
			return nil, fmt.Errorf("%s is longer than %d bytes", name, valueBytesMax)
		}
	}
	for _, name := range variables() {
		if strings.ContainsAny(s.vars[name], "\r\n") {
			return nil, fmt.Errorf("%s has more than one line", name)
		}
	}
	return s, nil
}

// lines are the keys of zoo.cfg in the order of the official image, with the variable and the value without it.
var lines = []struct{ key, variable, otherwise string }{
	{"dataDir", "ZOO_DATA_DIR", "/data"},
	{"dataLogDir", "ZOO_DATA_LOG_DIR", "/datalog"},
	{"tickTime", "ZOO_TICK_TIME", "2000"},
	{"initLimit", "ZOO_INIT_LIMIT", "5"},
	{"syncLimit", "ZOO_SYNC_LIMIT", "2"},
	{"autopurge.snapRetainCount", "ZOO_AUTOPURGE_SNAPRETAINCOUNT", "3"},
	{"autopurge.purgeInterval", "ZOO_AUTOPURGE_PURGEINTERVAL", "0"},
	{"maxClientCnxns", "ZOO_MAX_CLIENT_CNXNS", "60"},
	{"standaloneEnabled", "ZOO_STANDALONE_ENABLED", "true"},
	{"admin.enableServer", "ZOO_ADMINSERVER_ENABLED", "true"},
}

const (
	whitelistVariable = "ZOO_4LW_COMMANDS_WHITELIST"
	countVariable     = "ZOO_SERVERS_COUNT"
	domainVariable    = "ZOO_SERVERS_DOMAIN"
)

// variables are those whose value is one line of zoo.cfg or a part of one.
func variables() []string {
	names := []string{whitelistVariable, countVariable, domainVariable, "ZOO_CONF_DIR", "ZOO_MY_ID", "HOSTNAME"}
	for _, l := range lines {
		names = append(names, l.variable)
	}
	return names
}

func (s *Settings) or(variable, otherwise string) string {
	if v := s.vars[variable]; v != "" {
		return v
	}
	return otherwise
}

// ConfigPath is where zoo.cfg is.
func (s *Settings) ConfigPath() string { return filepath.Join(s.ConfDir, "zoo.cfg") }

// Config is the text of zoo.cfg that the environment asks for.
func (s *Settings) Config() (string, error) {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s=%s\n", l.key, s.or(l.variable, l.otherwise))
	}
	servers, err := s.servers()
	if err != nil {
		return "", err
	}
	for _, line := range servers {
		b.WriteString(line + "\n")
	}
	if words := s.vars[whitelistVariable]; words != "" {
		fmt.Fprintf(&b, "4lw.commands.whitelist=%s\n", words)
	}
	for _, line := range extra(s.vars["ZOO_CFG_EXTRA"]) {
		b.WriteString(line + "\n")
	}
	return b.String(), nil
}

// extra splits the list of additional lines at blanks. A piece without an equals sign belongs to the value before it, which
// had a blank.
func extra(list string) (entries []string) {
	for _, piece := range strings.Fields(list) {
		if n := len(entries); n > 0 && !strings.Contains(piece, "=") {
			entries[n-1] += " " + piece
			continue
		}
		entries = append(entries, piece)
	}
	return entries
}

// servers are the server lines.
func (s *Settings) servers() ([]string, error) {
	if list := strings.Fields(s.vars["ZOO_SERVERS"]); len(list) > 0 {
		for _, line := range list {
			if !strings.Contains(line, "=") {
				return nil, fmt.Errorf("ZOO_SERVERS: %q is not of the form server.1=host:%d:%d;%d", line, quorumPort, electionPort, clientPort)
			}
		}
		return list, nil
	}
	count, err := s.count()
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return []string{serverLine(1, "localhost")}, nil
	}
	base, _, err := s.ordinal(count)
	if err != nil {
		return nil, err
	}
	list := make([]string, count)
	for i := range count {
		host := fmt.Sprintf("%s-%d", base, i)
		if domain := strings.Trim(s.vars[domainVariable], "."); domain != "" {
			host += "." + domain
		}
		list[i] = serverLine(i+1, host)
	}
	return list, nil
}

func serverLine(id int, host string) string {
	return fmt.Sprintf("server.%d=%s:%d:%d;%d", id, host, quorumPort, electionPort, clientPort)
}

// count is the number of servers whose names differ in their ordinal; 0 if it is not given.
func (s *Settings) count() (int, error) {
	text := s.vars[countVariable]
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > serversMax {
		return 0, fmt.Errorf("%s: %q is not a number from 1 to %d", countVariable, text, serversMax)
	}
	return n, nil
}

// ordinal splits the host name of one of count servers, as in zabra-2.
func (s *Settings) ordinal(count int) (base string, n int, err error) {
	name, _, _ := strings.Cut(s.hostName, ".")
	i := strings.LastIndexByte(name, '-')
	if i > 0 {
		n, err = strconv.Atoi(name[i+1:])
	}
	if i <= 0 || err != nil || n < 0 {
		return "", 0, fmt.Errorf("%s is set, but the host name %q does not end in -0, -1 and so on: set ZOO_MY_ID and ZOO_SERVERS instead", countVariable, s.hostName)
	}
	if n >= count {
		return "", 0, fmt.Errorf("%s is %d, and the host name %q is one of more: raise it for all servers", countVariable, count, s.hostName)
	}
	return name[:i], n, nil
}

// MyID is the number that the environment gives this server.
func (s *Settings) MyID() (int64, error) {
	if text := s.vars["ZOO_MY_ID"]; text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("ZOO_MY_ID: %q is not a number", text)
		}
		return id, nil
	}
	count, err := s.count()
	if err != nil || count == 0 {
		return 1, err
	}
	_, n, err := s.ordinal(count)
	return int64(n) + 1, err
}
