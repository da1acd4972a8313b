package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"zabra/server/client"
	"zabra/wire"
)

var (
	errContainer = errors.New("-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
	errTTLRange  = fmt.Errorf("ttl must be positive and cannot be larger than: %d", int64(ttlMsMax))
)

func nodeCommands() []*command {
	// The texts of get and set are those of zkCli: their usages are compared with what it printed.
	version := flag{name: "v", value: "version", help: "Set with an expected version"}
	onlyVersion := flag{name: "v", value: "version", help: "Only if the node has this version"}
	return []*command{
		{name: "create", usage: "[-s] [-e] [-c] [-t ttl] path [data] [acl]", argsMin: 1, run: create, flags: []flag{
			{name: "s", help: "Number the node"}, {name: "e", help: "End with the session"}, {name: "c", help: "Make a container"},
			{name: "t", value: "ttl", help: "Time to live in milliseconds"},
		}},
		{name: "get", usage: "[-s] [-w] [-b] [-x] path", argsMin: 1, run: get, long: true, flags: []flag{
			flagStat, flagWatch, {name: "b", help: "Output data in base64 format"}, {name: "x", help: "Output data in hexdump format"},
		}},
		{name: "set", usage: "path data [-s] [-v version] [-b]", argsMin: 2, run: set, long: true, flags: []flag{
			flagStat, version, {name: "b", help: "Supply data in base64 format"},
		}},
		{name: "stat", usage: "[-w] path", argsMin: 1, run: stat, flags: []flag{flagWatch}},
		{name: "ls", usage: "[-s] [-w] [-R] path", argsMin: 1, run: ls, flags: []flag{
			flagStat, flagWatch, {name: "R", help: "List the whole subtree"},
		}},
		{name: "delete", usage: "[-v version] path", argsMin: 1, run: deleteNode, flags: []flag{onlyVersion}},
		{name: "deleteall", usage: "path [-b batch size]", argsMin: 1, run: deleteAll, flags: []flag{
			{name: "b", value: "size", help: "Delete this many nodes with one request"},
		}},
		{name: "sync", usage: "path", argsMin: 1, run: syncPath},
		{name: "getAllChildrenNumber", usage: "path", argsMin: 1, run: getAllChildrenNumber},
		{name: "getEphemerals", usage: "path", run: getEphemerals},
	}
}

// deprecated tells of a form that zkCli still takes.
func (c *call) deprecated(old, instead string) {
	fmt.Fprintf(c.err, "'%s' has been deprecated. Please use '%s' instead.\n", old, instead)
}

// oldWatch handles "get path watch": any second argument sets a watch.
func (c *call) oldWatch(name, instead string) bool {
	if len(c.args) > 1 {
		c.deprecated(name+" path [watch]", instead)
		return true
	}
	return c.flags.has("w")
}

// version reads the option -v, -1 if it is not there.
func (c *call) version() (int32, error) {
	text, ok := c.flags.value("v")
	if !ok {
		return -1, nil
	}
	return parseVersion(text)
}

func parseVersion(text string) (int32, error) {
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("-v %s: the version must be a whole number, -1 stands for any", text)
	}
	return int32(v), nil
}

// createFlags tells the kind of node, and its life in milliseconds.
func (c *call) createFlags() (flags int32, ttlMs int64, err error) {
	if c.flags.has("s") {
		flags |= wire.FlagSequential
	}
	if c.flags.has("e") {
		flags |= wire.FlagEphemeral
	}
	container, text, ttl := c.flags.has("c"), "", false
	if container && flags != 0 {
		return 0, 0, errContainer
	}
	if text, ttl = c.flags.value("t"); ttl {
		ttlMs, err = strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			return 0, 0, errors.New("-t argument must be a long value")
		case c.flags.has("e"):
			return 0, 0, errors.New("TTLs cannot be used with Ephemeral znodes")
		case container:
			return 0, 0, errors.New("TTLs cannot be used with Container znodes")
		case ttlMs <= 0 || ttlMs > ttlMsMax:
			return 0, 0, errTTLRange
		case flags == wire.FlagSequential:
			return wire.FlagTTLSequential, ttlMs, nil
		}
		return wire.FlagTTL, ttlMs, nil
	}
	if container {
		flags = wire.FlagContainer
	}
	return flags, 0, nil
}

func create(c *call) error {
	flags, ttlMs, err := c.createFlags()
	if err != nil {
		return err
	}
	path, acl := c.args[0], wire.OpenACL
	var data []byte
	if len(c.args) > 1 {
		data = []byte(c.args[1])
	}
	if len(c.args) > 2 {
		var bad *aclError
		if acl, err = parseACL(c.args[2]); errors.As(err, &bad) {
			fmt.Fprintf(c.err, "%s\nKeeperErrorCode = InvalidACL\nAcl is not valid : null\n", bad.reason)
			return errTold
		}
	}
	// The number makes a name of what ends with a slash.
	checked, tail := path, ""
	if c.flags.has("s") {
		checked, tail = path+"1", "1"
	}
	var made string
	err = c.sess.do(c.ctx, checked, func(zk *client.Client, inside string) (err error) {
		made, err = createNode(c, zk, inside[:len(inside)-len(tail)], data, acl, flags, ttlMs)
		return err
	})
	var op *opError
	if errors.As(err, &op) {
		op.path = path
		c.explainCreate(op)
	}
	if err == nil {
		fmt.Fprintln(c.err, "Created "+c.sess.outside(made))
	}
	return err
}

// explainCreate adds the line that zkCli prints for some errors.
func (c *call) explainCreate(err *opError) {
	switch codeOf(err) {
	case wire.CodeInvalidACL:
		fmt.Fprintln(c.err, keeperError(wire.CodeInvalidACL, err.path))
	case wire.CodeEphemeralOnLocalSession:
		fmt.Fprintln(c.err, "Unable to create ephemeral node on a local session")
	}
}

func createNode(c *call, zk *client.Client, path string, data []byte, acl []wire.ACL, flags int32, ttlMs int64) (made string, err error) {
	switch flags {
	case wire.FlagContainer:
		made, _, err = zk.CreateContainer(c.ctx, path, data, acl)
	case wire.FlagTTL, wire.FlagTTLSequential:
		made, _, err = zk.CreateTTL(c.ctx, path, data, acl, flags, ttlMs)
	default:
		made, err = zk.Create(c.ctx, path, data, acl, flags)
	}
	return made, err
}

func get(c *call) error {
	path := c.args[0]
	watch := c.oldWatch("get", "get [-s] [-w] path")
	data, st, err := c.getData(path, watch)
	if err != nil {
		return err
	}
	c.printData(data)
	if c.flags.has("s") {
		printStat(c.out, &st)
	}
	return nil
}

// getData reads a node and sets a watch on it, if wanted.
func (c *call) getData(path string, watch bool) (data []byte, st wire.Stat, err error) {
	read := func() error {
		return c.sess.do(c.ctx, path, func(zk *client.Client, inside string) (err error) {
			data, st, err = zk.GetData(c.ctx, inside, watch)
			return err
		})
	}
	if !watch {
		return data, st, read()
	}
	err = c.sess.watch(watchData, path, read)
	return data, st, err
}

func (c *call) printData(data []byte) {
	if data == nil {
		data = []byte("null")
	}
	switch {
	case c.flags.has("x"):
		fmt.Fprintln(c.out, hexDump(data))
	case c.flags.has("b"):
		fmt.Fprintln(c.out, base64.StdEncoding.EncodeToString(data))
	case c.opt.StdoutTerminal:
		fmt.Fprintln(c.out, printable(data))
	default:
		c.out.Write(append(data, '\n'))
	}
}

func set(c *call) error {
	version, err := c.version()
	if err != nil {
		return err
	}
	data := []byte(c.args[1])
	if c.flags.has("b") {
		if data, err = base64.StdEncoding.DecodeString(c.args[1]); err != nil {
			return fmt.Errorf("set -b: the data is not in base64: %w", err)
		}
	}
	var st wire.Stat
	err = c.sess.do(c.ctx, c.args[0], func(zk *client.Client, inside string) (err error) {
		st, err = zk.SetData(c.ctx, inside, data, version)
		return err
	})
	if err == nil && c.flags.has("s") {
		printStat(c.out, &st)
	}
	return err
}

func stat(c *call) error {
	path := c.args[0]
	watch := c.oldWatch("stat", "stat [-w] path")
	var st wire.Stat
	read := func(zk *client.Client, inside string) (err error) {
		st, err = zk.Exists(c.ctx, inside, watch)
		return err
	}
	err := c.sess.do(c.ctx, path, func(zk *client.Client, inside string) error {
		if !watch {
			return read(zk, inside)
		}
		// The watch is of one kind if the node exists and of another if it does not.
		isNew := c.sess.watches.add(watchExist, inside)
		err := read(zk, inside)
		if err == nil {
			if isNew && c.sess.watches.remove(watchExist, inside) { // else an event has used it up already
				c.sess.watches.add(watchData, inside)
			}
		} else if isNew && !errors.Is(err, wire.CodeNoNode) {
			c.sess.watches.remove(watchExist, inside)
		}
		return err
	})
	if err == nil {
		printStat(c.out, &st)
	}
	return err
}

func deleteNode(c *call) error {
	version, err := c.version()
	if len(c.args) > 1 && err == nil {
		c.deprecated("delete path [version]", "delete [-v version] path")
		version, err = parseVersion(c.args[1])
	}
	if err != nil {
		return err
	}
	return c.sess.do(c.ctx, c.args[0], func(zk *client.Client, inside string) error {
		return zk.Delete(c.ctx, inside, version)
	})
}

func syncPath(c *call) error {
	err := c.sess.do(c.ctx, c.args[0], func(zk *client.Client, inside string) error {
		_, err := zk.Sync(c.ctx, inside)
		return err
	})
	if code := codeOf(err); err != nil && code != wire.CodeOK {
		fmt.Fprintf(c.out, "Sync has failed. rc=%d\n", int32(code))
		return errTold
	}
	if err == nil {
		fmt.Fprintln(c.out, "Sync is OK")
	}
	return err
}

func getAllChildrenNumber(c *call) error {
	n := 0
	err := c.sess.do(c.ctx, c.args[0], func(zk *client.Client, inside string) (err error) {
		n, err = zk.GetAllChildrenNumber(c.ctx, inside)
		return err
	})
	if err == nil {
		fmt.Fprintln(c.out, n)
	}
	return err
}

func getEphemerals(c *call) error {
	path := "/"
	if len(c.args) > 0 {
		path = c.args[0]
	}
	var found []string
	err := c.sess.do(c.ctx, path, func(zk *client.Client, inside string) (err error) {
		found, err = zk.GetEphemerals(c.ctx, inside)
		return err
	})
	if err != nil {
		return err
	}
	for i := range found {
		found[i] = c.sess.outside(found[i])
	}
	fmt.Fprintln(c.out, list(found))
	return nil
}
