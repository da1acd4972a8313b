//go:build linux

// Command bench loads a ZooKeeper server with raw frames, any number of sessions each with any number of requests
// outstanding, and compares two servers. It measures ensembles when their leader goes, when a follower comes back, and while
// one is away. It sends traffic to loopback addresses only.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

const usage = `usage:
  bench load -addr HOST:PORT [-pid PID] [-op get|set] [-sessions N] [-outstanding N] [-size BYTES] [-warmup D] [-duration D]
  bench idle -addr HOST:PORT -pid PID [-sessions N]
  bench compare [-a KIND] [-b KIND] [-servers N] [-rounds N] [-sessions N] [-outstanding N] [-idle N] [-warmup D] [-duration D]
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
	case "load":
		return runLoad(args)
	case "idle":
		return runIdle(args)
	case "compare":
		return runCompare(args)
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

// load describes one run of the generator.
type load struct {
	addrs       []string // sessions are dealt out to them in turn
	op          string
	sessions    int
	outstanding int
	size        int // bytes of data per node
	warmup      time.Duration
	duration    time.Duration
	pids        []int // of the servers, empty when unknown
}

func (l *load) flags(fs *flag.FlagSet) {
	fs.IntVar(&l.sessions, "sessions", 64, "sessions, each on a connection of its own")
	fs.IntVar(&l.outstanding, "outstanding", 16, "requests that each session has outstanding")
	fs.IntVar(&l.size, "size", 100, "bytes of data per node")
	fs.DurationVar(&l.warmup, "warmup", 3*time.Second, "time before the measurement")
	fs.DurationVar(&l.duration, "duration", 5*time.Second, "time of the measurement")
}

func runLoad(args []string) error {
	var l load
	fs := flag.NewFlagSet("load", flag.ContinueOnError)
	addrs := fs.String("addr", "127.0.0.1:2181", "the server; several with commas in between")
	fs.StringVar(&l.op, "op", "get", "get or set")
	pid := fs.Int("pid", 0, "process id of the server, for its memory and CPU time")
	l.flags(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	l.addrs = strings.Split(*addrs, ",")
	for _, addr := range l.addrs {
		if err := loopbackOnly(addr); err != nil {
			return err
		}
	}
	if *pid != 0 {
		l.pids = []int{*pid}
	}
	res, err := l.run()
	if err != nil {
		return err
	}
	fmt.Println(res)
	return nil
}

func runIdle(args []string) error {
	fs := flag.NewFlagSet("idle", flag.ContinueOnError)
	addr := fs.String("addr", "127.0.0.1:2181", "the server")
	pid := fs.Int("pid", 0, "process id of the server")
	sessions := fs.Int("sessions", 5000, "idle sessions")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := loopbackOnly(*addr); err != nil {
		return err
	}
	perConn, err := idle(*addr, *pid, *sessions)
	if err != nil {
		return err
	}
	fmt.Printf("idle sessions=%d bytes_per_connection=%d\n", *sessions, perConn)
	return nil
}

// loopbackOnly refuses to load anything but this machine.
func loopbackOnly(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s is not a loopback address", addr)
	}
	return nil
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
