package cli

import (
	"slices"
	"strings"
)

// command is an entry of the table of commands.
type command struct {
	name string
	// usage is what zkCli writes behind the name.
	usage string
	flags []flag
	// long is whether the usage lists the options, which zkCli does for some.
	long bool
	// argsMin is how many arguments there must be at least. More than are known are ignored, as zkCli does.
	argsMin int
	// offline commands need no session.
	offline bool
	// path is -1 if no argument is a path, for completion, and 2 if the first two are; else the first one is.
	path int
	// own commands are those that zkCli does not have.
	own bool
	run func(*call) error
}

// The options that many commands share. The texts are those of zkCli, since usages are compared with what it printed.
var (
	flagStat  = flag{name: "s", help: "Print znode stats additionally"}
	flagWatch = flag{name: "w", help: "Watch for changes on the znode"}
)

// commands returns the table, by name.
func commands() []*command {
	all := slices.Concat(nodeCommands(), aclCommands(), quotaCommands(), watchCommands(), ensembleCommands(), shellCommands(), treeCommands())
	slices.SortFunc(all, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	return all
}

// aliases are names that zkCli had once.
var aliases = map[string]string{"rmr": "deleteall"}

func lookupCommand(name string) *command {
	if to := aliases[name]; to != "" {
		name = to
	}
	for _, c := range commands() {
		if c.name == name {
			return c
		}
	}
	return nil
}

func usageText() string {
	var b strings.Builder
	b.WriteString("ZooKeeper -server host:port -client-configuration properties-file cmd args\n")
	for _, c := range commands() {
		b.WriteString("\t" + c.name + " " + c.usage + "\n")
	}
	return b.String()
}

// longUsage is what a command says that was used wrongly.
func (c *command) longUsage() string {
	text := strings.TrimRight(c.name+" "+c.usage, " ")
	if !c.long {
		return text
	}
	width := 0
	for _, f := range c.flags {
		width = max(width, len(f.synopsis()))
	}
	for _, f := range slices.SortedFunc(slices.Values(c.flags), func(a, b flag) int { return strings.Compare(a.name, b.name) }) {
		text += "\n " + f.synopsis() + strings.Repeat(" ", width-len(f.synopsis())) + "   " + f.help
	}
	return text + "\n"
}

func (f *flag) synopsis() string {
	if f.value == "" {
		return "-" + f.name
	}
	return "-" + f.name + " <arg>"
}

// takesPath tells whether the n-th argument, from 0, is a path.
func (c *command) takesPath(n int) bool { return c.path >= 0 && n < max(1, c.path) }
