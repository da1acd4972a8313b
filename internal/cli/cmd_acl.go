package cli

import (
	"errors"
	"fmt"
	"strings"

	"zabra/server/client"
	"zabra/wire"
)

func aclCommands() []*command {
	return []*command{
		{name: "getAcl", usage: "[-s] path", argsMin: 1, run: getACL, flags: []flag{flagStat}},
		{name: "setAcl", usage: "[-s] [-v version] [-R] path acl", argsMin: 2, run: setACL, flags: []flag{
			flagStat, {name: "v", value: "version", help: "Only if the list has this version"}, {name: "R", help: "Set for the whole subtree"},
		}},
		{name: "addauth", usage: "scheme auth", argsMin: 1, path: -1, run: addAuth},
		{name: "whoami", path: -1, run: whoAmI},
	}
}

func getACL(c *call) error {
	var acl []wire.ACL
	var st wire.Stat
	err := c.sess.do(c.ctx, c.args[0], func(zk *client.Client, inside string) (err error) {
		acl, st, err = zk.GetACL(c.ctx, inside)
		return err
	})
	if err != nil {
		return err
	}
	for i := range acl {
		fmt.Fprintf(c.out, "'%s,'%s\n: %s\n", c.shown(acl[i].Scheme), c.shown(acl[i].ID), permText(acl[i].Perms))
	}
	if c.flags.has("s") {
		printStat(c.out, &st)
	}
	return nil
}

func setACL(c *call) error {
	path := c.args[0]
	acl, err := parseACL(c.args[1])
	if err != nil {
		return err
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	if c.flags.has("R") {
		return c.setACLs(path, acl, version)
	}
	var st wire.Stat
	err = c.sess.do(c.ctx, path, func(zk *client.Client, inside string) (err error) {
		st, err = zk.SetACL(c.ctx, inside, acl, version)
		return err
	})
	if err == nil && c.flags.has("s") {
		printStat(c.out, &st)
	}
	return err
}

// setACLs sets the list for a whole subtree, and goes on where a node refuses.
func (c *call) setACLs(path string, acl []wire.ACL, version int32) error {
	top, err := c.sess.walk(c.ctx, path, walkOptions{})
	if err != nil {
		return err
	}
	nodes := top.flatten()
	trouble, tell := c.collect()
	bar := c.bar("lists set", len(nodes))
	defer bar.end()
	err = c.sess.pipeline(c.ctx, len(nodes), func(i int) (wire.Op, wire.Record) {
		return wire.OpSetACL, &wire.SetACLRequest{Path: []byte(c.sess.inside(nodes[i].path)), ACL: acl, Version: version}
	}, func(i int, answer *client.Call) error {
		bar.add(1)
		if answer.Err != nil && !errors.Is(answer.Err, wire.CodeNoNode) {
			return tell(&opError{path: nodes[i].path, err: answer.Err})
		}
		return nil
	})
	return errors.Join(err, trouble())
}

func addAuth(c *call) error {
	var auth []byte
	if len(c.args) > 1 {
		auth = []byte(c.args[1])
	}
	return c.sess.addAuth(c.ctx, c.args[0], auth)
}

func whoAmI(c *call) error {
	zk, err := c.sess.connection(c.ctx, false)
	var who []wire.ClientInfo
	if err == nil {
		who, err = zk.WhoAmI(c.ctx)
	}
	if err != nil {
		return &opError{err: err}
	}
	lines := []string{"Auth scheme: User"}
	for _, w := range who {
		lines = append(lines, c.shown(w.Scheme+": "+w.User))
	}
	fmt.Fprintln(c.out, strings.Join(lines, "\n"))
	return nil
}
