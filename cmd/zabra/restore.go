package main

import (
	"errors"
	"math"

	"github.com/spf13/cobra"

	"zabra/conf"
	"zabra/internal/tools"
	"zabra/zab/zxid"
)

func newRestore() *cobra.Command {
	var flags toolFlags
	var opt tools.RestoreOptions
	var config string
	var defines []string
	var epoch uint32
	cmd := &cobra.Command{
		Use:   "restore FILE --config zoo.cfg | --data-dir DIR [--data-log-dir DIR]",
		Short: "Make a snapshot the state of an empty data directory",
		Long: `Reads a snapshot, or what the admin command backup has sent, in full, and writes it into an empty data directory as the
state with which a server starts there. For an ensemble: stop all members, move version-2 of dataDir and dataLogDir away on
each of them, run this with the same FILE on each of them, start them.

The state begins with a new epoch, so that clients which have seen more than the snapshot has are taken back; --epoch chooses
one beyond all that was ever reached if the snapshot is older than some changes of the leader (currentEpoch of the old
directories tells). Sessions are not restored: what clients remember of the lost time is wrong, so they have to begin anew.

Exit codes: 0 done, 1 the file is missing or damaged or the directory is not empty, 2 command line or configuration.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.File, opt.Epoch = args[0], zxid.Epoch(epoch)
			if err := configureRestore(&opt, config, properties(defines)); err != nil {
				return &exit{code: exitConfig, stderr: err.Error()}
			}
			if epoch > math.MaxInt32 {
				return &exit{code: exitConfig, stderr: "--epoch is at most 2147483647"}
			}
			return toolExit(tools.Restore(flags.output(cmd), opt))
		},
	}
	addToolFlags(cmd, &flags, withoutTimes)
	addDefines(cmd, &defines)
	f := cmd.Flags()
	f.StringVar(&config, "config", "", "configuration file of the server")
	f.StringVar(&opt.SnapDir, "data-dir", "", "dataDir, without a configuration file")
	f.StringVar(&opt.LogDir, "data-log-dir", "", "dataLogDir, if it is elsewhere")
	f.Uint32Var(&epoch, "epoch", 0, "epoch to begin with; 0 for the one after the snapshot's")
	cmd.MarkFlagsMutuallyExclusive("config", "data-dir")
	cmd.MarkFlagsMutuallyExclusive("config", "data-log-dir")
	return cmd
}

// configureRestore takes from the server's configuration where it looks for its state, and in which form.
func configureRestore(opt *tools.RestoreOptions, file string, defines map[string]string) error {
	cfg := conf.Default()
	switch {
	case file != "":
		var err error
		if cfg, err = conf.Load(file, defines); err != nil {
			return err
		}
		opt.SnapDir, opt.LogDir = cfg.DataDir, cfg.LogDir()
	case opt.SnapDir == "":
		return errors.New("where to? --config names the server's configuration file, --data-dir its dataDir")
	}
	opt.Compression = cfg.SnapshotCompression
	opt.NoDigest, opt.NoLastZxid = !cfg.DigestEnabled, !cfg.SerializeLastProcessedZxidEnabled
	return nil
}
