package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"zabra/conf"
	"zabra/internal/entrypoint"
)

const entrypointVerb = "docker-entrypoint"

// commandLine is the command line for a binary with the given arguments, its own name first. Under the name of one of
// ZooKeeper's scripts, as a link in an image without a shell, it does what that script does.
func commandLine(argv []string) []string {
	if name := filepath.Base(argv[0]); slices.Contains(entrypoint.StandIns, name) {
		return append([]string{entrypointVerb, name}, argv[1:]...)
	}
	return argv[1:]
}

func newEntrypoint() *cobra.Command {
	return &cobra.Command{
		Use:   entrypointVerb + " [zkServer.sh start-foreground | zkCli.sh ... | zkCleanup.sh ... | VERB ...]",
		Short: "Run a server, or another verb, as the official container image would",
		Long: `Writes zoo.cfg into ZOO_CONF_DIR (/conf) and myid into ZOO_DATA_DIR (/data) where there are none, from the environment
variables of the official image, and runs the command line, which may name ZooKeeper's scripts. Without arguments it runs a
server.

Variables: ZOO_MY_ID, ZOO_SERVERS, ZOO_TICK_TIME, ZOO_INIT_LIMIT, ZOO_SYNC_LIMIT, ZOO_AUTOPURGE_PURGEINTERVAL,
ZOO_AUTOPURGE_SNAPRETAINCOUNT, ZOO_MAX_CLIENT_CNXNS, ZOO_STANDALONE_ENABLED, ZOO_ADMINSERVER_ENABLED,
ZOO_4LW_COMMANDS_WHITELIST, ZOO_CFG_EXTRA, ZOO_DATA_DIR, ZOO_DATA_LOG_DIR, ZOO_CONF_DIR, ZOO_LOG4J_PROP (the level), and
JVMFLAGS, SERVER_JVMFLAGS (the -D properties). With ZOO_SERVERS_COUNT=3 and ZOO_SERVERS_DOMAIN=name.of.the.service, a server
whose host name ends in -0 is number 1 of three, and so on.`,
		DisableFlagParsing: true,
		RunE:               runEntrypoint,
	}
}

func runEntrypoint(cmd *cobra.Command, args []string) error {
	hostName, err := os.Hostname()
	if err != nil {
		return &exit{code: exitFailure, stderr: err.Error()}
	}
	settings, err := entrypoint.FromEnvironment(os.Environ(), hostName)
	if err != nil {
		return &exit{code: exitConfig, stderr: err.Error()}
	}
	root := newRoot()
	line, err := settings.Command(args, entrypoint.Program{
		IsVerb: func(name string) bool {
			return name == "help" || slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
		},
		Positional: positional,
		Dirs: func(config string) (logDir, dataDir string, err error) {
			c, err := conf.Load(config, properties(nil))
			if err != nil {
				return "", "", err
			}
			return c.LogDir(), c.DataDir, nil
		},
	})
	if err != nil {
		return &exit{code: exitConfig, stderr: err.Error()}
	}
	if line[0] == "server" {
		notes, err := settings.Prepare()
		for _, n := range notes {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", n)
		}
		if err != nil {
			return &exit{code: exitConfig, stderr: err.Error()}
		}
		line = withLogLevel(line, settings.LogLevel)
	}
	root.SetArgs(line)
	root.SetOut(cmd.OutOrStdout())
	root.SetErr(cmd.ErrOrStderr())
	return root.Execute()
}

// positional picks the arguments of the verb server that are neither flags nor their values.
func positional(args []string) ([]string, error) {
	cmd := newServer()
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	return cmd.Flags().Args(), nil
}

// withLogLevel adds the level of ZOO_LOG4J_PROP to the command line of a server, unless that has one.
func withLogLevel(line []string, property string) []string {
	level, ok := conf.ParseLogLevel(property)
	if !ok || slices.ContainsFunc(line, func(a string) bool { return strings.HasPrefix(a, "--log-level") }) {
		return line
	}
	return slices.Concat(line[:1], []string{"--log-level=" + level}, line[1:])
}
