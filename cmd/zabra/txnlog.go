package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"zabra/internal/tools"
	"zabra/zab/zxid"
)

// exitNotLog is ZooKeeper's code for a file that is no log, and ours for a faulty command line; exitDamaged is that of a check
// that found damage.
const (
	exitNotLog  = 2
	exitDamaged = exitDataDir
)

// toolFlags are those that every tool has; utc is one of those that print times.
type toolFlags struct{ json, utc bool }

const (
	withTimes    = true
	withoutTimes = false
)

func addToolFlags(cmd *cobra.Command, flags *toolFlags, times bool) {
	cmd.Flags().BoolVar(&flags.json, "json", false, "print one JSON object per line")
	if times {
		cmd.Flags().BoolVar(&flags.utc, "utc", false, "print times in UTC instead of local time")
	}
}

func (flags toolFlags) output(cmd *cobra.Command) tools.Output {
	o := tools.Output{Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), JSON: flags.json}
	if flags.utc {
		o.Location = time.UTC
	}
	return o
}

// toolExit makes the exit code of what a tool returned.
func toolExit(err error) error {
	var (
		notLog  *tools.NotLogError
		damaged *tools.DamagedError
		decided *exit
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &decided):
		return decided
	case errors.As(err, &notLog):
		return &exit{code: exitNotLog, stderr: err.Error()}
	case errors.As(err, &damaged):
		return &exit{code: exitDamaged, stderr: err.Error()}
	}
	return &exit{code: exitFailure, stderr: err.Error()}
}

// newGroup is a verb that only has verbs below it.
func newGroup(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if err := cmd.Help(); err != nil {
			return err
		}
		return &exit{code: exitConfig}
	}}
	cmd.AddCommand(below...)
	return cmd
}

func newTxnLog() *cobra.Command {
	return newGroup("txnlog", "Print, check and cut transaction logs", newTxnLogDump(), newTxnLogVerify(), newTxnLogChop())
}

// txnLogFlags are the options of ZooKeeper's TxnLogToolkit.
type txnLogFlags struct {
	toolFlags
	dump, recover, verbose, yes, chop bool
	zxid                              string
}

func newTxnLogDump() *cobra.Command {
	var flags txnLogFlags
	cmd := &cobra.Command{
		Use:   "dump [-d | -r [-v] [-y] | -c -z ZXID] FILE",
		Short: "Print a transaction log, or repair or cut a copy of it",
		Long: `Prints every transaction of a log, as ZooKeeper's TxnLogToolkit does, and takes its options. A record with a wrong
checksum is marked with CRC ERROR.

With -r the log is copied to FILE.fixed, and records with a wrong checksum get the right one: it asks each time, with -y it
does not. That makes the file readable; what was damaged in it stays wrong. Where no record can be read and valid ones follow,
no copy is made: it would be without them. With -c the log is copied to FILE.chopped<zxid> up to the transaction that -z names
(decimal, or hex with 0x); "zabra txnlog chop --help" says how to put that in place. FILE itself is never changed. In a
directory version-2 Apache ZooKeeper takes a copy of either name for a log: move it away before such a server starts.

Exit codes: 0 done, 1 failure or a damaged file, 2 no transaction log, or command line.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return toolExit(flags.run(flags.output(cmd), args[0], cmd.InOrStdin()))
		},
	}
	addToolFlags(cmd, &flags.toolFlags, withTimes)
	f := cmd.Flags()
	f.BoolVarP(&flags.dump, "dump", "d", false, "print the log (this is what happens without options)")
	f.BoolVarP(&flags.recover, "recover", "r", false, "copy the log and repair wrong checksums")
	f.BoolVarP(&flags.verbose, "verbose", "v", false, "with -r: print all records, not only those repaired")
	f.BoolVarP(&flags.yes, "yes", "y", false, "with -r: repair without asking")
	f.BoolVarP(&flags.chop, "chop", "c", false, "copy the log up to the transaction of -z")
	f.StringVarP(&flags.zxid, "zxid", "z", "", "with -c: the last transaction of the copy")
	cmd.MarkFlagsMutuallyExclusive("dump", "recover", "chop")
	cmd.MarkFlagsMutuallyExclusive("recover", "json")
	return cmd
}

func (flags *txnLogFlags) run(o tools.Output, file string, answers io.Reader) error {
	// ZooKeeper's tool takes these without a word, and scripts may rely on that.
	if !flags.recover && (flags.verbose || flags.yes) {
		fmt.Fprintln(o.Err, "-v and -y do nothing without -r.")
	}
	if !flags.chop && flags.zxid != "" {
		fmt.Fprintln(o.Err, "-z does nothing without -c.")
	}
	switch {
	case flags.recover:
		return tools.RecoverLog(o, file, tools.RecoverOptions{Verbose: flags.verbose, Yes: flags.yes, Answers: answers})
	case flags.chop:
		return chopLog(o, file, flags.zxid, "")
	}
	return tools.DumpLog(o, file)
}

func chopLog(o tools.Output, file, last, out string) error {
	z, err := parseZxid(last)
	if err != nil {
		return &exit{code: exitConfig, stderr: err.Error()}
	}
	_, err = tools.ChopLog(o, file, z, out)
	return err
}

// parseZxid takes decimal, hex with 0x and octal with 0, as ZooKeeper's tool does.
func parseZxid(text string) (zxid.Zxid, error) {
	v, err := strconv.ParseInt(text, 0, 64)
	if err != nil || v <= 0 {
		return 0, fmt.Errorf("%q is no zxid: give a decimal number, or hex with 0x in front", text)
	}
	return zxid.Zxid(v), nil
}

func newTxnLogVerify() *cobra.Command {
	var flags toolFlags
	cmd := &cobra.Command{
		Use:   "verify FILE|DIR ...",
		Short: "Check transaction logs in full",
		Long: `Reads logs, or all logs of data directories, from beginning to end: checksum, length and content of every record, the
order of the transactions, the end of each log, and holes between the logs of a directory. A torn end, which a crash leaves
and a start cuts off, is no damage. The newest log of a running server may look torn for a moment.

Exit codes: 0 all is well, 1 a file cannot be read, 2 command line, 3 damage or a hole.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return toolExit(tools.VerifyLogs(flags.output(cmd), args))
		},
	}
	addToolFlags(cmd, &flags, withoutTimes)
	return cmd
}

// chopRecipe says how a chopped copy is put in place; docs/tools.md says it in the same words.
const chopRecipe = `To put the copy in place, stop the server and move out of version-2 (of dataDir and of dataLogDir): FILE, all later logs,
all snapshots with a higher zxid than ZXID in their names, and zabra.state, which promises what is no longer there. Snapshots
that "zabra snapshot verify" calls "written while the tree changed" hold transactions up to the zxid named there: move them
away, too, if that is higher than ZXID (without a digest nobody can tell: rely on an older one). At least one snapshot has to
stay. Then give the copy FILE's name. Leave acceptedEpoch and currentEpoch as they are: they must not go back. Do this on all
members of an ensemble with the same ZXID, or on none. "zabra doctor" says what a start then does.`

func newTxnLogChop() *cobra.Command {
	var flags toolFlags
	var last, out string
	cmd := &cobra.Command{
		Use:   "chop FILE ZXID",
		Short: "Copy a transaction log up to a transaction",
		Long: `Copies a log up to and including the transaction ZXID (decimal, or hex with 0x) to FILE.chopped<zxid in decimal>. FILE
stays as it is.

` + chopRecipe + `

Exit codes: 0 done, 1 failure (no such transaction, the copy exists already), 2 no transaction log, or command line.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				last = args[1]
			}
			return toolExit(chopLog(flags.output(cmd), args[0], last, out))
		},
	}
	addToolFlags(cmd, &flags, withoutTimes)
	cmd.Flags().StringVarP(&last, "zxid", "z", "", "the last transaction of the copy")
	cmd.Flags().StringVarP(&out, "output", "o", "", "the name of the copy")
	return cmd
}
