package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
)

// version, revision and built come from the Makefile through -ldflags -X. A plain "go build" leaves them empty; then the
// build information of the binary says what it can.
var version, revision, built string

// buildFacts returns the version of this binary, "devel" if it has none, the revision of its source and when it was
// built; "" and the zero time if unknown.
func buildFacts() (v, rev string, at time.Time) {
	v, rev = version, revision
	if v == "" {
		v = "devel"
	}
	if t, err := time.Parse(time.RFC3339, built); err == nil {
		at = t
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v, rev, at
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && rev == "":
			rev = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.time" && at.IsZero():
			at, _ = time.Parse(time.RFC3339, s.Value)
		}
	}
	return v, rev, at
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, rev, at := buildFacts()
			text := "zabra " + v
			if rev != "" {
				text += ", revision " + rev
			}
			if !at.IsZero() {
				text += ", built " + at.UTC().Format("2006-01-02 15:04 UTC")
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s %s/%s\n", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
