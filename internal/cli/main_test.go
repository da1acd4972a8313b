package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// asMain makes the test binary behave as zabra cli, with the arguments that it holds, one a line.
const asMain = "ZABRA_TEST_CLI"

func TestMain(m *testing.M) {
	args, ok := os.LookupEnv(asMain)
	if !ok {
		os.Exit(m.Run())
	}
	opt, err := ParseOptions(strings.Split(args, "\n"), os.Getenv, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(ExitUsage)
	}
	os.Exit(Run(context.Background(), opt))
}

func itoa(n int) string { return strconv.Itoa(n) }
