package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"zabra/conf"
	"zabra/server"
)

// shutdownTime is what requests and clients get at a graceful stop before connections are cut. It is shorter than what
// supervisors wait before they kill.
const shutdownTime = 8 * time.Second

// echoTime is the time in which a second signal counts as an echo of the first.
const echoTime = 500 * time.Millisecond

const serverUsage = "Usage: zabra server [-Dkey=value ...] [configfile | port datadir [ticktime] [maxcnxns]]"

// serverFlags are the flags of the verb server.
type serverFlags struct {
	defines   []string
	logFormat string
	logLevel  string
	profile   string
}

func newServer() *cobra.Command {
	var flags serverFlags
	cmd := &cobra.Command{
		Use:   "server [-Dkey=value ...] [configfile | port datadir [ticktime] [maxcnxns]]",
		Short: "Run a server",
		Long: `Runs a server in the foreground until SIGTERM or SIGINT, which stop it gracefully; a second signal ends it at once. The
configuration file is a zoo.cfg: with server lines for several voters the server is a member of an ensemble, its number
stands in the file myid in dataDir. Without arguments the data is kept in ./data and only programs on this machine can
connect, to port 2181.

-D sets a property as for java. Properties are also taken from the environment variables SERVER_JVMFLAGS and JVMFLAGS;
other JVM arguments in them are skipped.

SIGHUP loads the configuration again, with the same arguments. The server takes at once, without touching a session, limits,
throttles, the four-letter words, when snapshots and purges are due, the users of the JAAS file, new content of the files with
certificates, the audit log and the level of the log; what else has changed is named in the log and takes effect at a restart. A file
with faults changes nothing. Log files are opened anew.

The level of the log is that of --log-level, or else that of the properties zookeeper.root.logger, zookeeper.console.threshold
and zookeeper.log.threshold, or else info. With zookeeper.root.logger=INFO,ROLLINGFILE it goes to zookeeper.log.file in
zookeeper.log.dir, with INFO,CONSOLE,ROLLINGFILE also to standard output.

Exit codes: 0 stopped by a signal, 1 failure, 2 command line or configuration, 3 data directory, 14 election port.`,
		RunE: func(_ *cobra.Command, args []string) error {
			return profiled(flags.profile, func() error { return serve(args, flags) })
		},
	}
	addDefines(cmd, &flags.defines)
	cmd.Flags().StringVar(&flags.logFormat, "log-format", "auto", "console, line (as ZooKeeper writes it) or json; auto is console on a terminal, else line")
	cmd.Flags().StringVar(&flags.logLevel, "log-level", "", "debug, info, warn or error")
	cmd.Flags().StringVar(&flags.profile, "profile", "", "a folder that gets the profiles of the run (CPU, heap, locks) for go tool pprof at a graceful stop")
	return cmd
}

// addDefines gives a verb the flag -D.
func addDefines(cmd *cobra.Command, defines *[]string) {
	cmd.Flags().StringArrayVarP(defines, "define", "D", nil, "set a property, as -Dkey=value; may be repeated")
}

// properties are the -D of the environment and of the command line, in the order in which ZooKeeper's scripts hand them
// to java, where the last one counts.
func properties(defines []string) map[string]string {
	all := conf.JVMProperties(os.Getenv("SERVER_JVMFLAGS"))
	maps.Copy(all, conf.JVMProperties(os.Getenv("JVMFLAGS")))
	for _, d := range defines {
		name, value, _ := strings.Cut(d, "=")
		all[name] = value
	}
	return all
}

// load reads the configuration that the arguments name.
func load(args []string, props map[string]string) (*conf.Config, error) {
	switch len(args) {
	case 0:
		return conf.Load("", props)
	case 1:
		return conf.Load(args[0], props)
	}
	return conf.FromArguments(args, props)
}

// warningsOf returns what was noticed, whether the configuration can be used or not.
func warningsOf(cfg *conf.Config, err error) []conf.Fault {
	var e *conf.Error
	switch {
	case errors.As(err, &e):
		return e.Warnings
	case cfg != nil:
		return cfg.Warnings
	}
	return nil
}

func serve(args []string, flags serverFlags) error {
	start := time.Now()
	tuneCollector()
	if len(args) > 4 {
		return &exit{code: exitConfig, stderr: serverUsage}
	}
	level, err := newLevel(flags.logLevel)
	if err != nil {
		return &exit{code: exitConfig, stderr: err.Error()}
	}
	log, err := newLogger(os.Stdout, flags.logFormat, level, "")
	if err != nil {
		return &exit{code: exitConfig, stderr: err.Error()}
	}

	signals, hangups := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	again := reloading{hangups: hangups, load: func() (*conf.Config, error) { return flags.load(args) },
		level: levels{console: level, file: zap.NewAtomicLevel()}, once: new(sync.Mutex)}
	if isTerminal(os.Stdout) {
		again.terminal = os.Stdout
	}

	cfg, err := again.load()
	logFaults(cfg, err, log)
	if err != nil {
		return &exit{code: exitConfig, stderr: "Invalid config, exiting abnormally"}
	}
	again.level.set(cfg)
	if log, again.file, err = serverLog(cfg, flags.logFormat, again.level); err != nil {
		return &exit{code: exitConfig, stderr: err.Error()}
	}
	again.toFile, again.notToConsole = cfg.Log.ToFile, cfg.Log.NotToConsole
	return runServer(cfg, log, start, signals, again)
}

// load reads the configuration of a server. The level of the log on the command line counts more than the one in it.
func (f *serverFlags) load(args []string) (*conf.Config, error) {
	cfg, err := load(args, properties(f.defines))
	if err == nil && f.logLevel != "" {
		cfg.LogLevel, cfg.Log.ConsoleLevel, cfg.Log.FileLevel = f.logLevel, "", ""
	}
	return cfg, err
}

// runServer serves until a signal or a failure ends it.
func runServer(cfg *conf.Config, log *zap.Logger, start time.Time, signals <-chan os.Signal, again reloading) error {
	describe(cfg, log)
	v, rev, at := buildFacts()
	var s *server.Server // known before anybody can ask it to load again
	opts := server.Options{Log: log, Version: v, Revision: rev, Built: at, UntouchedBytes: int64(len(heapFloor))}
	if again.load != nil {
		opts.Reload = func() (server.Reloaded, error) { return again.again(s, log) }
	}
	var err error
	if s, err = server.New(cfg, opts); err != nil {
		log.Error("cannot start: " + err.Error())
		return startFailure(err)
	}
	stats := s.Stats()
	what := "serving"
	if cfg.Ensemble != nil {
		what = "started" // it serves when there is a quorum, and says so
	}
	log.Info(what,
		address("address", s.Addr()),
		address("secureAddress", s.SecureAddr()),
		zap.String("dataDir", cfg.DataDir),
		zap.String("dataLogDir", cfg.LogDir()),
		zap.Stringer("zxid", stats.Zxid),
		zap.Int("nodes", stats.Nodes+1), // as srvr counts: the root twice
		zap.Duration("took", time.Since(start).Round(100*time.Microsecond)))

	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lost := make(chan os.Signal, 1)
	go again.run(ctx, s, log, lost)
	if heapFloor != nil {
		go giveBack(ctx.Done())
	}

	var sig os.Signal
	select {
	case err = <-stopped:
		return ended(served(err), log)
	case sig = <-signals:
	case sig = <-lost:
	}
	log.Info("stopping; a second signal ends the process at once", zap.Stringer("signal", sig))
	go dieAtSecond(signals)
	return ended(shutdown(s, stopped, log), log)
}

// address is a field of the log; none for a port that is not there.
func address(key string, a net.Addr) zap.Field {
	if a == nil {
		return zap.Skip()
	}
	return zap.Stringer(key, a)
}

// ended makes the exit code of how the server ended; err is nil for a clean stop.
func ended(err error, log *zap.Logger) error {
	if err != nil {
		log.Error("stopped: " + err.Error())
		return &exit{code: exitFailure, stderr: "Severe unrecoverable error, exiting abnormally: " + err.Error()}
	}
	log.Info("stopped")
	return nil
}

// shutdown stops the server gracefully and waits for Serve to return. Connections that had to
// be cut when the time was over are no failure; a disk that failed in the last sync is.
func shutdown(s *server.Server, stopped <-chan error, log *zap.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	err := s.Shutdown(ctx)
	if failure := served(<-stopped); failure != nil {
		return failure // what Shutdown says follows from it
	}
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("not everything could be answered in time; the connections that were left have been cut", zap.Duration("waited", shutdownTime))
		return nil
	}
	return err
}

// served returns why Serve could not go on; nil when the server was closed.
func served(err error) error {
	if errors.Is(err, server.ErrServerClosed) {
		return nil
	}
	return err
}

// dieAtSecond ends the process the way an unhandled signal would. Signals on the heels of the first do not count:
// timeout(1), shells and some supervisors send one to the process and one to its group.
func dieAtSecond(signals <-chan os.Signal) {
	first := time.Now()
	for sig := range signals {
		if number, ok := sig.(syscall.Signal); ok && time.Since(first) > echoTime {
			os.Exit(128 + int(number))
		}
	}
}

// describe says which mode the configuration leads to, how to open a server that serves this machine only, and which keys
// change nothing.
func describe(cfg *conf.Config, log *zap.Logger) {
	switch {
	case cfg.Ensemble != nil:
		voters := len(cfg.Ensemble.Voters())
		log.Info(fmt.Sprintf("Starting quorum peer, myid=%d", cfg.MyID), zap.Int("voters", voters), zap.Int("observers", len(cfg.Ensemble.Members())-voters))
	case len(cfg.Servers) > 0:
		log.Info("only one server specified, running in standalone mode")
	case cfg.Embedded:
		log.Info("no configuration file given, running in standalone mode on this machine only;" +
			" to serve others, write a file with dataDir, clientPort and clientPortAddress=0.0.0.0 and name it as argument")
	default:
		log.Info("Either no config or no quorum defined in config, running in standalone mode")
	}
	if len(cfg.WithoutEffect) > 0 {
		log.Info("some keys of the configuration have no effect in this version", zap.Strings("keys", cfg.WithoutEffect))
	}
}

// startFailure maps why a server did not start to ZooKeeper's exit codes and words.
func startFailure(err error) error {
	var e *server.StartError
	if errors.As(err, &e) {
		switch e.Stage {
		case server.StageConfig:
			return &exit{code: exitConfig, stderr: "Invalid config, exiting abnormally"}
		case server.StageDataDir:
			return &exit{code: exitDataDir, stderr: "Unable to access datadir, exiting abnormally"}
		case server.StageElectionPort:
			return &exit{code: exitElectionPort, stderr: "Unable to bind election port, exiting abnormally: " + err.Error()}
		}
	}
	return &exit{code: exitFailure, stderr: fmt.Sprintf("Unexpected exception, exiting abnormally: %v", err)}
}
