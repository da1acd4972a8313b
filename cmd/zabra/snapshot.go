package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"zabra/internal/tools"
)

func newSnapshot() *cobra.Command {
	return newGroup("snapshot", "Print, check and compare snapshots",
		newSnapshotDump(), newSnapshotVerify(), newSnapshotCompare(), newSnapshotSummary())
}

// jsonOption is the option -json of ZooKeeper's SnapshotFormatter: here a letter j with the rest of the word behind it.
type jsonOption struct{ set bool }

// String implements pflag.Value.
func (j *jsonOption) String() string { return "" }

// Type implements pflag.Value.
func (j *jsonOption) Type() string { return "" }

// Set implements pflag.Value.
func (j *jsonOption) Set(rest string) error {
	if rest != "son" {
		return errors.New("the option is -json")
	}
	j.set = true
	return nil
}

func newSnapshotDump() *cobra.Command {
	var flags toolFlags
	var data, ncdu bool
	var document jsonOption
	cmd := &cobra.Command{
		Use:   "dump [-d | -json | --json] FILE",
		Short: "Print a snapshot",
		Long: `Prints every node of a snapshot and its sessions, as ZooKeeper's SnapshotFormatter does; siblings come in the order of
their names. -d prints the data too (base64). -json prints the document that ncdu opens: "zabra snapshot dump -json FILE |
ncdu -f -". --json prints one object per line: the snapshot, each node with ACL and data, each session.

Exit codes: 0 done, 1 the file is missing or damaged, 2 command line.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode := tools.DumpStats
			switch {
			case ncdu || document.set:
				mode = tools.DumpNCDU
			case data:
				mode = tools.DumpData
			}
			return toolExit(tools.DumpSnapshot(flags.output(cmd), args[0], mode, time.Now().UnixMilli()))
		},
	}
	addToolFlags(cmd, &flags, withTimes)
	cmd.Flags().BoolVarP(&data, "data", "d", false, "print the data of each node")
	cmd.Flags().BoolVar(&ncdu, "ncdu", false, "print a document for ncdu, as -json does")
	cmd.Flags().VarP(&document, "json-document", "j", "")
	_ = cmd.Flags().MarkHidden("json-document")
	return cmd
}

func newSnapshotVerify() *cobra.Command {
	var flags toolFlags
	var logDir string
	cmd := &cobra.Command{
		Use:   "verify [--log-dir DIR] FILE|DIR ...",
		Short: "Check snapshots in full",
		Long: `Reads snapshots, or all snapshots of data directories, from beginning to end: structure, parents, checksums, and the
digest. ZooKeeper writes snapshots while the tree changes; the digest is that of the moment when it was done, so the log is
replayed up to there first, if it is at hand.

Exit codes: 0 all is well, 1 a file cannot be read, 2 command line, 3 damage.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return toolExit(tools.VerifySnapshots(flags.output(cmd), args, logDir))
		},
	}
	addToolFlags(cmd, &flags, withoutTimes)
	cmd.Flags().StringVar(&logDir, "log-dir", "", "dataLogDir, if the logs are not beside the snapshots")
	return cmd
}

func newSnapshotCompare() *cobra.Command {
	var flags toolFlags
	var opt tools.CompareOptions
	cmd := &cobra.Command{
		Use:   "compare -l LEFT -r RIGHT [-b BYTES] [-n NODES] [-d] [-i]",
		Short: "Compare the sizes of two snapshots, node by node",
		Long: `Names the nodes of two snapshots whose data, or whose number of nodes, differ by more than BYTES or NODES at and below
them, level by level, as ZooKeeper's SnapshotComparer does. LEFT and RIGHT may also be given without -l and -r. It compares
sizes, not content.

Exit codes: 0 done, whether or not they differ, 1 a file is missing or damaged, 2 command line.`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				if opt.Left == "" {
					opt.Left = arg
				} else {
					opt.Right = arg
				}
			}
			opt.Answers = cmd.InOrStdin()
			o := flags.output(cmd)
			if err := opt.Check(o); err != nil {
				return &exit{code: exitConfig, stderr: err.Error()}
			}
			return toolExit(tools.CompareSnapshots(o, opt))
		},
	}
	addToolFlags(cmd, &flags, withoutTimes)
	f := cmd.Flags()
	f.StringVarP(&opt.Left, "left", "l", "", "the left snapshot")
	f.StringVarP(&opt.Right, "right", "r", "", "the right snapshot")
	f.Int64VarP(&opt.Bytes, "bytes", "b", 0, "name nodes with a larger difference in bytes of data")
	f.Int64VarP(&opt.Nodes, "nodes", "n", 0, "name nodes with a larger difference in the number of nodes below them")
	f.BoolVarP(&opt.Debug, "debug", "d", false, "tell of every comparison")
	f.BoolVarP(&opt.Interactive, "interactive", "i", false, "ask before each step")
	return cmd
}

func newSnapshotSummary() *cobra.Command {
	var flags toolFlags
	cmd := &cobra.Command{
		Use:   "summary FILE [START [DEPTH]]",
		Short: "Print how many nodes and how much data the subtrees of a snapshot have",
		Long: `Prints for each node with children how many nodes are below it and how many bytes of data it and they have, as ZooKeeper's
SnapshotRecursiveSummary does. START is the node to begin at, / by default; DEPTH the number of levels below it that are
printed, 0 (the default) for all.

Exit codes: 0 done, 1 the file is missing or damaged, or has no such node, 2 command line.`,
		Args: cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			start, depth := "/", 0
			if len(args) > 1 {
				start = args[1]
			}
			if len(args) > 2 {
				n, err := strconv.Atoi(args[2])
				if err != nil || n < 0 {
					return &exit{code: exitConfig, stderr: fmt.Sprintf("%q is no depth: give a number of levels, 0 for all", args[2])}
				}
				depth = n
			}
			return toolExit(tools.Summarize(flags.output(cmd), args[0], start, depth))
		},
	}
	addToolFlags(cmd, &flags, withoutTimes)
	return cmd
}
