// Package seeded, imported by a package's tests, makes its property tests draw the same values in each run, so that a
// run tells about the code and not about luck. A run with the variable ZABRA_RANDOM set draws new ones; so does one that names its own
// seed with -rapid.seed. What such a run finds becomes a test of its own.
package seeded

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // defines the flag
)

// seed is any number but 0, which stands for a random one.
const seed = "20261130"

func init() {
	if os.Getenv("ZABRA_RANDOM") != "" {
		return
	}
	if err := flag.Set("rapid.seed", seed); err != nil {
		panic("seeded: " + err.Error())
	}
}
