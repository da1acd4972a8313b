// Command zabra is a ZooKeeper server and its tools. A verb has the file of its name; health.go has status, too, and
// entrypoint.go docker-entrypoint. The rest is what several of them need: log.go, memory.go, profile.go, reload.go.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The exit codes of ZooKeeper that scripts and supervisors look at.
const (
	exitOK = 0
	// exitFailure is every failure that has no code of its own, such as a client port in use.
	exitFailure = 1
	// exitConfig is a command line or configuration that cannot be used.
	exitConfig = 2
	// exitDataDir is a data directory that is missing, not writable or mixed up.
	exitDataDir = 3
	// exitElectionPort is an election port that cannot be bound.
	exitElectionPort = 14
)

// exit is an error that names the exit code and what stderr gets to see; "" if everything was said before.
type exit struct {
	code   int
	stderr string
}

func (e *exit) Error() string { return e.stderr }

func main() {
	os.Exit(run(commandLine(os.Args), os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	var e *exit
	if !errors.As(err, &e) {
		// What cobra itself refuses: an unknown verb or flag, or a wrong number of arguments.
		fmt.Fprintln(stderr, err)
		return exitConfig
	}
	if e.stderr != "" {
		fmt.Fprintln(stderr, e.stderr)
	}
	return e.code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "zabra",
		Short:         "A ZooKeeper server in one binary",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.Help(); err != nil {
				return err
			}
			return &exit{code: exitConfig}
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newServer(), newVersion(), newCheckConf(), newSim(), newBench(), newEntrypoint(), newHealth(), newStatus(),
		newTxnLog(), newSnapshot(), newRestore(), newPurge(), newDoctor(), newCLI(), newLab())
	return root
}
