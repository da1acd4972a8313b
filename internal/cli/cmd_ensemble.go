package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"zabra/wire"
)

// configNode holds the configuration of the ensemble.
const configNode = "/zookeeper/config"

func ensembleCommands() []*command {
	return []*command{
		{name: "config", usage: "[-c] [-w] [-s]", path: -1, run: config, flags: []flag{
			{name: "c", help: "Only the version and the client addresses"}, flagWatch, flagStat,
		}},
		{name: "reconfig", usage: "[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | " +
			"[-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]",
			path: -1, run: reconfig, flags: []flag{
				flagStat, {name: "v", value: "version", help: "Only if the configuration has this version, in hexadecimal digits"},
				{name: "file", value: "path", help: "File with the new members"}, {name: "members", value: "list", help: "The new members"},
				{name: "add", value: "server", help: "Server to add"}, {name: "remove", value: "ids", help: "Servers to remove"},
			}},
	}
}

// config shows the configuration of the ensemble. Its node is the same whatever the root of the session's paths is.
func config(c *call) error {
	watch := c.flags.has("w")
	zk, err := c.sess.connection(c.ctx, false)
	var data []byte
	var st wire.Stat
	if err == nil {
		isNew := watch && c.sess.watches.add(watchData, configNode)
		if data, st, err = zk.GetData(c.ctx, configNode, watch); err != nil && isNew {
			c.sess.watches.remove(watchData, configNode)
		}
	}
	if err != nil {
		return &opError{path: configNode, err: err}
	}
	text := string(data)
	if c.flags.has("c") {
		text = clientAddresses(text)
	}
	fmt.Fprintln(c.out, text)
	if c.flags.has("s") {
		printStat(c.out, &st)
	}
	return nil
}

// clientAddresses takes the version and the client addresses out of a configuration.
func clientAddresses(text string) string {
	version, addrs := "", ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case key == "version":
			version = value
		case strings.HasPrefix(key, "server."):
			if _, client, ok := strings.Cut(value, ";"); ok && client != "" {
				addrs += client + ","
			}
		}
	}
	return version + " " + addrs
}

func reconfig(c *call) error {
	req, err := c.reconfigRequest()
	if err != nil {
		return err
	}
	zk, err := c.sess.connection(c.ctx, false)
	var data []byte
	var st wire.Stat
	if err == nil {
		data, st, err = zk.Reconfig(c.ctx, req)
	}
	if err != nil {
		return &opError{err: err}
	}
	fmt.Fprintf(c.out, "Committed new configuration:\n%s\n", data)
	if c.flags.has("s") {
		printStat(c.out, &st)
	}
	return nil
}

// reconfigRequest makes the request that the options ask for.
func (c *call) reconfigRequest() (*wire.ReconfigRequest, error) {
	req := &wire.ReconfigRequest{ConfigID: -1}
	if text, ok := c.flags.value("v"); ok {
		id, err := strconv.ParseInt(text, 16, 64)
		if err != nil {
			return nil, errors.New("-v must be followed by a long (configuration version)")
		}
		req.ConfigID = id
	}
	whole, parts := c.flags.has("file") || c.flags.has("members"), c.flags.has("add") || c.flags.has("remove")
	switch {
	case whole && parts:
		return nil, errors.New("Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes is not allowed)")
	case c.flags.has("file") && c.flags.has("members"):
		return nil, errors.New("Can't use -file and -members together (conflicting non-incremental modes)")
	case !whole && !parts:
		return nil, errUsage
	}
	if path, ok := c.flags.value("file"); ok {
		members, err := readMembers(path)
		if err != nil {
			return nil, err
		}
		req.NewMembers = []byte(members)
	}
	if c.flags.has("members") {
		req.NewMembers = []byte(strings.Join(c.flags["members"], ","))
	}
	if c.flags.has("add") {
		req.Joining = []byte(strings.Join(c.flags["add"], ","))
	}
	if c.flags.has("remove") {
		req.Leaving = []byte(strings.Join(c.flags["remove"], ","))
	}
	return req, nil
}

// readMembers takes the lines about servers, groups and weights from a dynamic configuration file.
func readMembers(path string) (string, error) {
	data, err := readSmall(path)
	if err != nil {
		return "", fmt.Errorf("Error processing %s: %w", path, err)
	}
	var members []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"server.", "group", "weight"} {
			if strings.HasPrefix(line, prefix) {
				members = append(members, line)
			}
		}
	}
	if len(members) == 0 {
		return "", fmt.Errorf("Error processing %s: it has no line that begins with server.", path)
	}
	return strings.Join(members, ","), nil
}
