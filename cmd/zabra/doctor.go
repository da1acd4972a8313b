package main

import (
	"time"

	"github.com/spf13/cobra"

	"zabra/internal/tools"
)

func newDoctor() *cobra.Command {
	var flags toolFlags
	var logDir string
	cmd := &cobra.Command{
		Use:   "doctor DIR [--log-dir DIR]",
		Short: "Tell what state a data directory is in and what a start would do",
		Long: `Looks at a data directory (dataDir) and says in plain words who is at work there, who wrote it, what it holds, what is
damaged or left over, and whether Zabra, alone or in an ensemble, and Apache ZooKeeper would start on it and what they would
change. Nothing in the directory is changed: the start is only tried, with all changes kept in memory. The whole state is
loaded, so it takes the time and the memory of a start.

Where the system does not say who holds the lock of the directory, as in a container, a shared lock is tried for a moment: a
Zabra server that starts in it may find its directory in use.

Exit codes: 0 a Zabra server starts here, or runs here; 1 the directory cannot be looked at; 2 command line; 3 no server would
start.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := tools.Diagnose(args[0], logDir, time.Now())
			if err != nil {
				return toolExit(err)
			}
			if err := d.Print(flags.output(cmd)); err != nil {
				return err
			}
			if !d.Sound() {
				return &exit{code: exitDataDir}
			}
			return nil
		},
	}
	addToolFlags(cmd, &flags, withTimes)
	cmd.Flags().StringVar(&logDir, "log-dir", "", "dataLogDir, if it is not DIR")
	return cmd
}
