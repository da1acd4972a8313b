package ensemble

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"zabra/zab/zxid"
)

const wrongForm = " does not have the form server_config or server_config;client_config" +
	" where server_config is the pipe separated list of host:port:port or host:port:port:type" +
	" and client_config is port or host:port"

// ParseMember reads the value of a server line, host:quorumPort:electionPort[:role][|...][;[clientHost:]clientPort], with
// ZooKeeper's words for what is wrong. Blanks around the parts are tolerated, which ZooKeeper does not.
func ParseMember(id zxid.ServerID, value string) (Member, error) {
	m := Member{ID: id}
	peers, client, hasClient := strings.Cut(value, ";")
	list := strings.Split(peers, "|")
	if strings.Contains(client, ";") || len(list) > addressesMax {
		return m, errors.New(shown(value) + wrongForm)
	}
	for i, text := range list {
		a, observer, err := parseAddress(id, text, value)
		if err != nil {
			return m, err
		}
		if i > 0 && observer != m.Observer {
			return m, fmt.Errorf("Multiple addresses should have the same type (participant/observer): %s", shown(value))
		}
		m.Observer = observer
		m.Addresses = append(m.Addresses, a)
	}
	if !hasClient {
		return m, nil
	}
	parts := hostParts(trim(client))
	if len(parts) > 2 {
		return m, errors.New(shown(value) + wrongForm)
	}
	host := "0.0.0.0"
	if len(parts) == 2 {
		host = parts[0]
	}
	port, err := parsePort(host, parts[len(parts)-1])
	if err == nil && port > 0 {
		m.ClientHost, m.ClientPort = host, port
	}
	return m, err
}

// parseAddress reads one of the addresses of a server line.
func parseAddress(id zxid.ServerID, text, line string) (a Address, observer bool, err error) {
	parts := hostParts(trim(text))
	if len(parts) < 3 || len(parts) > 4 {
		return a, false, errors.New(shown(line) + wrongForm)
	}
	a.Host = parts[0]
	if a.QuorumPort, err = parsePort(a.Host, parts[1]); err != nil {
		return a, false, err
	}
	if a.ElectionPort, err = parsePort(a.Host, parts[2]); err != nil {
		return a, false, err
	}
	if a.QuorumPort == a.ElectionPort {
		return a, false, fmt.Errorf("Client and election port must be different! Please update the configuration file on server.%d", id)
	}
	observer, err = parseRole(parts[3:])
	return a, observer, err
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

func parsePort(host, text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("Address unresolved: %s:%s", shown(host), shown(text))
	}
	if n < 0 || n > math.MaxUint16 {
		return 0, fmt.Errorf("port out of range:%d", n)
	}
	return int(n), nil
}

func parseRole(text []string) (observer bool, err error) {
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

// Text renders the value of the server line as ZooKeeper does: the role always, several addresses by host, the client
// part only if there is one.
func (m Member) Text() string {
	role := "participant"
	if m.Observer {
		role = "observer"
	}
	list := slices.Clone(m.Addresses)
	slices.SortStableFunc(list, func(a, b Address) int { return strings.Compare(a.Host, b.Host) })
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = fmt.Sprintf("%s:%d:%d:%s", bracketed(a.Host), a.QuorumPort, a.ElectionPort, role)
	}
	text := strings.Join(parts, "|")
	if m.ClientPort > 0 {
		text += fmt.Sprintf(";%s:%d", bracketed(m.ClientHost), m.ClientPort)
	}
	return text
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// trim cuts off what Java's String.trim does.
func trim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// shown cuts a value that is quoted in a message.
func shown(v string) string {
	if len(v) > shownBytesMax {
		return v[:shownBytesMax] + "..."
	}
	return v
}
