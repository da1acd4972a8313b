package cli

import (
	"fmt"

	"zabra/server/client"
	"zabra/wire"
)

func watchCommands() []*command {
	return []*command{
		{name: "addWatch", usage: "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE",
			argsMin: 1, run: addWatch, flags: []flag{{name: "m", value: "mode", help: "PERSISTENT or PERSISTENT_RECURSIVE"}}},
		{name: "removewatches", usage: "path [-c|-d|-a] [-l]", argsMin: 1, run: removeWatches, flags: []flag{
			{name: "c", help: "Those of ls"}, {name: "d", help: "Those of get and stat"}, {name: "a", help: "All"},
			{name: "p", help: "The persistent ones"}, {name: "r", help: "The persistent recursive ones"}, {name: "l", help: "Also if the server cannot be asked"},
		}},
		{name: "printwatches", usage: "on|off", path: -1, offline: true, run: printWatches},
	}
}

func addWatch(c *call) error {
	mode, kind := int32(wire.AddWatchPersistentRecursive), watchRecursive
	switch text, _ := c.flags.value("m"); text {
	case "", "PERSISTENT_RECURSIVE":
	case "PERSISTENT":
		mode, kind = wire.AddWatchPersistent, watchPersistent
	default:
		return errUsage
	}
	path := c.args[0]
	return c.sess.watch(kind, path, func() error {
		return c.sess.do(c.ctx, path, func(zk *client.Client, inside string) error {
			return zk.AddWatch(c.ctx, inside, mode)
		})
	})
}

func removeWatches(c *call) error {
	path, name := c.args[0], "a"
	for _, n := range []string{"c", "d", "a", "p", "r"} {
		if c.flags.has(n) {
			name = n
			break
		}
	}
	if err := checkPath(path); err != nil {
		return err
	}
	inside := c.sess.inside(path)
	var mine []watchKind
	for _, kind := range removals[name].kinds {
		if c.sess.watches.has(kind, inside) {
			mine = append(mine, kind)
		}
	}
	err := error(&opError{path: path, err: wire.CodeNoWatcher})
	if len(mine) > 0 {
		err = c.sess.do(c.ctx, path, func(zk *client.Client, inside string) error {
			return zk.RemoveWatches(c.ctx, inside, removals[name].wireType)
		})
	}
	if err != nil && (len(mine) == 0 || !c.flags.has("l")) {
		return err
	}
	for _, kind := range mine {
		c.sess.watches.remove(kind, inside)
		c.notify(notice{"SyncConnected", removedEvents[kind], path, -1})
	}
	return nil
}

func printWatches(c *call) error {
	if len(c.args) > 0 {
		c.hidden.Store(c.args[0] != "on")
		return nil
	}
	state := "on"
	if c.hidden.Load() {
		state = "off"
	}
	fmt.Fprintln(c.out, "printwatches is "+state)
	return nil
}
