package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"zabra/internal/cli"
	"zabra/server/admin"
)

func newCLI() *cobra.Command {
	return &cobra.Command{
		Use:   "cli [options] [command [arguments]]",
		Short: "Run commands against a ZooKeeper server, as zkCli does",
		// The options are those of zkCli, with one hyphen.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := cli.ParseOptions(args, os.Getenv, cmd.ErrOrStderr())
			switch {
			case errors.Is(err, cli.ErrHelp):
				_, err := fmt.Fprint(cmd.OutOrStdout(), cli.Synopsis)
				return err
			case err != nil:
				return &exit{code: exitConfig, stderr: err.Error()}
			}
			opt.Stdout, opt.Stderr, opt.Stdin = cmd.OutOrStdout(), cmd.ErrOrStderr(), cmd.InOrStdin()
			v, rev, at := buildFacts()
			opt.Version = admin.Version(v, rev, at)
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			if code := cli.Run(ctx, opt); code != exitOK {
				return &exit{code: code} // the command has said why
			}
			return nil
		},
	}
}
