//go:build linux

// Command bench measures Zabra side by side with Apache ZooKeeper and writes docs/benchmarks.md from what it has measured. The load
// comes from zabra bench, started as a process of its own. It also measures ensembles when their leader goes, when a
// follower comes back, and while one is away.
package main

import (
	"flag"
	"fmt"
	"os"
	"syscall"
)

const usage = `usage:
  bench compare [-rows ROW,ROW] [-rounds N] [-again] [-quick] [-list] [-reference KIND] [-results DIR] [-data DIR] [-generator PATH]
                [-duration D] [-warmup D] [-jvm-warmup D]
  bench render [-reference KIND] [-results DIR] [-quick] [-out FILE]
  bench failover [-kinds KIND,KIND] [-rounds N] [-servers N] [-tick MS] [-load N] [-kill-median D] [-kill-worst D] [-term-median D]
  bench rejoin [-kinds KIND,KIND] [-away N] [-rate N] [-baseline D] [-ratio-max N]
  bench memory [-kind KIND] [-duration D] [-rate N] [-suspended] [-growth-max N]
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	switch verb, args := args[0], args[1:]; verb {
	case "compare":
		return runCompare(args)
	case "render":
		return runRender(args)
	case "failover":
		return runFailover(args)
	case "rejoin":
		return runRejoin(args)
	case "memory":
		return runMemory(args)
	default:
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("unknown verb %q", verb)
	}
}

// raiseFileLimit lets this process and the servers it starts have as many sockets as the system allows.
func raiseFileLimit() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
