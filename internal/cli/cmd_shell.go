package cli

import (
	"errors"
	"fmt"
	"strconv"
)

func shellCommands() []*command {
	return []*command{
		{name: "connect", usage: "host:port", path: -1, offline: true, run: connect},
		{name: "close", path: -1, run: closeSession},
		{name: "quit", path: -1, offline: true, run: quit},
		{name: "history", path: -1, offline: true, run: history},
		{name: "redo", usage: "cmdno", path: -1, offline: true, argsMin: 1, run: redo},
		{name: "version", path: -1, run: version},
		{name: "help", usage: "[command]", path: -1, offline: true, own: true, run: help},
	}
}

func connect(c *call) error {
	if len(c.args) > 0 {
		servers, err := parseServers(c.args[0])
		if err != nil {
			return err
		}
		c.servers = servers
	}
	c.connect()
	return c.await(c.ctx)
}

func closeSession(c *call) error {
	c.close(true)
	return nil
}

func quit(c *call) error {
	c.close(true)
	c.ended = true
	return nil
}

// history shows the last lines, the one with this command included.
func history(c *call) error {
	for i := max(0, len(c.lines)-historyShown); i < len(c.lines); i++ {
		fmt.Fprintf(c.out, "%d - %s\n", i, masked(c.lines[i]))
	}
	return nil
}

// redo runs a line again, and puts it into the history in place of itself.
func redo(c *call) error {
	n, err := strconv.Atoi(c.args[0])
	now := len(c.lines) - 1
	switch {
	case err != nil:
		return fmt.Errorf("redo %s: it must be the number of a line, as history shows it", c.args[0])
	case n < 0 || n >= now || c.lines[n] == "":
		return errors.New("Command index out of range")
	}
	words := splitWords(c.lines[n])
	if words[0] == "redo" {
		return errors.New("No redoing redos")
	}
	c.lines[now] = c.lines[n]
	c.execute(c.ctx, words)
	if c.code != ExitOK {
		return &exitCode{c.code}
	}
	return nil
}

// exitCode is the code of a command that was run by another.
type exitCode struct{ code int }

func (e *exitCode) Error() string { return "exit code " + strconv.Itoa(e.code) }

func version(c *call) error {
	fmt.Fprintln(c.out, "ZooKeeper CLI version: "+c.opt.Version)
	return nil
}

// help shows one command's options, or all commands.
func help(c *call) error {
	if len(c.args) == 0 {
		fmt.Fprint(c.out, usageText())
		return nil
	}
	cmd := lookupCommand(c.args[0])
	if cmd == nil {
		return fmt.Errorf("there is no command %s, help lists all of them", c.args[0])
	}
	withOptions := *cmd
	withOptions.long = len(cmd.flags) > 0
	fmt.Fprintln(c.out, withOptions.longUsage())
	return nil
}
