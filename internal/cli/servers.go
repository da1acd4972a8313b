package cli

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const (
	portDefault    = "2181"
	serversDefault = "localhost:2181"
)

// serverList is a parsed connect string.
type serverList struct {
	text   string
	addrs  []string
	chroot string // "" for none; it begins with a slash and does not end with one
}

// parseServers reads "host:port,host:port/chroot". The port is 2181 if it is left out.
func parseServers(text string) (serverList, error) {
	list := serverList{text: text}
	hosts := text
	if i := strings.IndexByte(text, '/'); i >= 0 {
		hosts = text[:i]
		if root := text[i:]; root != "/" {
			if err := checkPath(root); err != nil {
				return list, fmt.Errorf("server list %q: the part behind the addresses: %w", text, err)
			}
			list.chroot = root
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if host = strings.TrimSpace(host); host == "" {
			continue
		}
		addr, err := parseServer(host)
		if err != nil {
			return list, fmt.Errorf("server list %q: %w", text, err)
		}
		list.addrs = append(list.addrs, addr)
	}
	if len(list.addrs) == 0 {
		return list, fmt.Errorf("server list %q: it names no server, write HOST:PORT,HOST:PORT", text)
	}
	return list, nil
}

// parseServer completes one address.
func parseServer(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil { // no port, or an address of IP version 6 without brackets
		host, port = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), portDefault
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("%q: the port must be a number from 1 to 65535", text)
	}
	return net.JoinHostPort(host, port), nil
}
