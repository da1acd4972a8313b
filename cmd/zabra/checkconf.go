package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"zabra/conf"
)

// checkConf are the flags of the verb check-conf.
type checkConf struct {
	defines []string
	quiet   bool
	key     string
}

func newCheckConf() *cobra.Command {
	var flags checkConf
	cmd := &cobra.Command{
		Use:   "check-conf [-Dkey=value ...] [--faults-only | --key NAME] FILE",
		Short: "Check a configuration file and print what it amounts to",
		Long: `Reads FILE as "zabra server FILE" would, with the -D properties of the command line and of SERVER_JVMFLAGS and
JVMFLAGS, and prints the effective configuration: what was set first, then the defaults, then what has no effect. The output
is a configuration file itself and means the same. Warnings and faults go to stderr, all of them. Exits with 2 if there is a
fault.

--faults-only prints nothing on stdout, and of the remarks only the faults. --key prints the value of one key, and exits with
1 if it has none; passwords are not printed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	addDefines(cmd, &flags.defines)
	cmd.Flags().BoolVar(&flags.quiet, "faults-only", false, "say nothing but what keeps a server from starting")
	cmd.Flags().StringVar(&flags.key, "key", "", "print the value of this key only")
	cmd.MarkFlagsMutuallyExclusive("faults-only", "key")
	return cmd
}

func (f *checkConf) run(cmd *cobra.Command, path string) error {
	cfg, err := conf.Load(path, properties(f.defines))
	if !f.quiet && f.key == "" {
		for _, w := range warningsOf(cfg, err) {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
		}
	}
	if err != nil {
		return &exit{code: exitConfig, stderr: err.Error()}
	}
	switch {
	case f.quiet:
		return nil
	case f.key != "":
		value, ok := cfg.Value(f.key)
		if !ok {
			return &exit{code: exitFailure}
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), value)
	default:
		_, err = fmt.Fprint(cmd.OutOrStdout(), cfg)
	}
	return err
}
