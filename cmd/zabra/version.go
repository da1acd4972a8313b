package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"zabra/server/admin"
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
	var zookeeper bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, rev, at := buildFacts()
			if zookeeper {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), zookeeperVersion(v, rev, at))
				return err
			}
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
	cmd.Flags().BoolVar(&zookeeper, "zookeeper", false, "print it in the form of zkServer.sh version, with the release of ZooKeeper that is followed")
	return cmd
}

// zookeeperVersion is the line of zkServer.sh version. Scripts look in it for three numbers with dots between.
func zookeeperVersion(v, rev string, at time.Time) string {
	text := "Apache ZooKeeper, version " + admin.Version(v, rev, time.Time{})
	if !at.IsZero() {
		text += at.UTC().Format(" 2006-01-02 15:04 UTC")
	}
	return text
}
