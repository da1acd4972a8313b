// Command telegraf asks a server as Telegraf's zookeeper input does, and prints what it has read as JSON: telegraf HOST:PORT.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/influxdata/telegraf/config"
	"github.com/influxdata/telegraf/plugins/inputs/zookeeper"
	"github.com/influxdata/telegraf/testutil"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr string) error {
	var read testutil.Accumulator
	input := zookeeper.Zookeeper{Servers: []string{addr}, Timeout: config.Duration(20 * time.Second), ParseFloats: "float"}
	if err := read.GatherError(input.Gather); err != nil {
		return err
	}
	if len(read.Metrics) != 1 {
		return fmt.Errorf("%d measurements", len(read.Metrics))
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"tags": read.Metrics[0].Tags, "fields": read.Metrics[0].Fields})
}
