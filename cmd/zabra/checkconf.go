package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"zabra/conf"
)

func newCheckConf() *cobra.Command {
	var defines []string
	cmd := &cobra.Command{
		Use:   "check-conf [-Dkey=value ...] FILE",
		Short: "Check a configuration file and print what it amounts to",
		Long: `Reads FILE as "zabra server FILE" would, with the -D properties of the command line and of SERVER_JVMFLAGS and
JVMFLAGS, and prints the effective configuration: what was set first, then the defaults. The output is a configuration
file itself. Warnings and faults go to stderr, all of them. Exits with 2 if there is a fault.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := conf.Load(args[0], properties(defines))
			for _, w := range warningsOf(cfg, err) {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
			}
			if err != nil {
				return &exit{code: exitConfig, stderr: err.Error()}
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), cfg)
			return err
		},
	}
	addDefines(cmd, &defines)
	return cmd
}
