package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"zabra/internal/tools"
)

// purgeUsage is printed where ZooKeeper's tool prints its own.
const purgeUsage = `Usage: zabra purge [--dry-run] dataLogDir [snapDir] -n COUNT
  dataLogDir  where the transaction logs are
  snapDir     where the snapshots are, if that is elsewhere
  COUNT       how many snapshots stay, 3 or more
`

func newPurge() *cobra.Command {
	var flags toolFlags
	var opt tools.PurgeOptions
	var retain string
	cmd := &cobra.Command{
		Use:   "purge [--dry-run] dataLogDir [snapDir] -n COUNT",
		Short: "Remove old snapshots and logs",
		Long: `Removes snapshots and logs that nobody needs, as ZooKeeper's PurgeTxnLog does: the newest COUNT snapshots that are whole
stay, 3 at least, and the logs from the one on that holds the transaction after the oldest of them. Each of these snapshots is
read in full and synced before anything is removed; with fewer than COUNT whole ones nothing is, and that is printed (with
--json as an object with "refused").

It may run beside an Apache ZooKeeper server. A running Zabra server purges by itself (autopurge.purgeInterval,
autopurge.snapRetainCount): its directory is left alone. A directory with a zabra.lock is locked while files are removed, a
moment only: a Zabra server that starts in it may find its directory in use.

Exit codes: 0 done, 1 failure, wrong arguments, or a Zabra server is running on the directory.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 || retain == "" {
				return purgeRefused(cmd.OutOrStdout(), "")
			}
			n, err := strconv.Atoi(retain)
			if err != nil {
				return purgeRefused(cmd.OutOrStdout(), fmt.Sprintf("'%s' can not be parsed to integer.", retain))
			}
			opt.LogDir, opt.Retain = args[0], n
			if len(args) > 1 {
				opt.SnapDir = args[1]
			}
			return purged(cmd.OutOrStdout(), tools.Purge(flags.output(cmd), opt))
		},
	}
	addToolFlags(cmd, &flags, withTimes)
	cmd.Flags().StringVarP(&retain, "retain", "n", "", "how many snapshots stay, 3 at least")
	cmd.Flags().BoolVar(&opt.DryRun, "dry-run", false, "only name the files that would be removed")
	return cmd
}

// purgeRefused tells what is wrong with the arguments as ZooKeeper does: the usage goes to stdout, and the code is 1.
func purgeRefused(out io.Writer, why string) error {
	if _, err := io.WriteString(out, purgeUsage); err != nil {
		return err
	}
	return &exit{code: exitFailure, stderr: why}
}

func purged(out io.Writer, err error) error {
	var retain *tools.RetainError
	var missing *tools.NoPathError
	if errors.As(err, &retain) || errors.As(err, &missing) {
		return purgeRefused(out, err.Error())
	}
	return toolExit(err)
}
