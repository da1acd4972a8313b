// Command telegraf gathers from servers with the zookeeper input of Telegraf and prints what it made of each, one JSON object
// a line: the tags and fields, or the error. Arguments: addresses.
//
// It is a module of its own, since Telegraf brings more dependencies than the server has.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/config"
	"github.com/influxdata/telegraf/plugins/inputs/zookeeper"
)

const timeout = 10 * time.Second

// gathered is what Telegraf would store.
type gathered struct {
	// The methods of an accumulator that this input does not call are missing.
	telegraf.Accumulator `json:"-"`

	Measurement string
	Tags        map[string]string
	Fields      map[string]any
	Error       string
}

// AddFields implements telegraf.Accumulator.
func (g *gathered) AddFields(measurement string, fields map[string]any, tags map[string]string, _ ...time.Time) {
	g.Measurement, g.Fields, g.Tags = measurement, fields, tags
}

// AddError implements telegraf.Accumulator.
func (g *gathered) AddError(err error) {
	if err != nil {
		g.Error = err.Error()
	}
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, addr := range os.Args[1:] {
		input := &zookeeper.Zookeeper{Servers: []string{addr}, Timeout: config.Duration(timeout), ParseFloats: "float"}
		g := &gathered{}
		g.AddError(input.Gather(g))
		if err := out.Encode(g); err != nil {
			fmt.Fprintln(os.Stderr, "telegraf:", err)
			os.Exit(1)
		}
	}
}
