package main

import (
	"context"
	"os"
	"strings"
	"sync"

	"go.uber.org/zap"

	"zabra/conf"
	"zabra/internal/logfile"
	"zabra/server"
)

// reloading lets a running server take up its configuration again when SIGHUP comes. The zero value never does.
type reloading struct {
	hangups <-chan os.Signal
	// load reads the configuration as the start did.
	load  func() (*conf.Config, error)
	level levels
	// file is where the log goes beside or instead of standard output, nil if there is none. toFile and notToConsole are how
	// that was settled at the start.
	file                 *logfile.File
	toFile, notToConsole bool
	// terminal is where the log goes, if that was a terminal at the start; nil otherwise.
	terminal *os.File
	// once is held while the configuration is taken up.
	once *sync.Mutex
}

// run takes up the configuration at each SIGHUP until ctx ends. When the terminal that the server was started on goes away,
// SIGHUP means that: it is handed to lost, and run returns.
func (r *reloading) run(ctx context.Context, s *server.Server, log *zap.Logger, lost chan<- os.Signal) {
	for {
		select {
		case sig := <-r.hangups:
			if r.terminal != nil && !isTerminal(r.terminal) {
				lost <- sig
				return
			}
			_, _ = r.again(s, log) // it is told in the log
		case <-ctx.Done():
			return
		}
	}
}

// again loads the configuration, and has the server take what can change while it runs. A faulty one changes nothing. Any
// goroutine may call it.
func (r *reloading) again(s *server.Server, log *zap.Logger) (server.Reloaded, error) {
	r.once.Lock()
	defer r.once.Unlock()
	cfg, err := r.load()
	logFaults(cfg, err, log)
	if err != nil {
		log.Error("the configuration has faults, so nothing has changed; correct it and send SIGHUP again")
		return server.Reloaded{}, err
	}
	if r.file != nil { // it may have been moved away
		if err := r.file.Reopen(); err != nil {
			log.Error("the log file cannot be opened anew, the old one serves on; look at log.dir", zap.Error(err))
		}
	}
	taken, needRestart := s.Reconfigure(cfg)
	r.level.lower(cfg) // who switches it on or off sees the lines either way
	defer r.level.set(cfg)
	if cfg.Log.ToFile != r.toFile || cfg.Log.NotToConsole != r.notToConsole {
		log.Warn("root.logger: where the log goes changes at a restart; its level counts at once")
	}
	if len(taken) > 0 {
		log.Info("configuration loaded again", zap.Strings("taken", texts(taken)))
	} else {
		log.Info("configuration loaded again; it has nothing new that a running server takes")
	}
	if len(needRestart) > 0 {
		names := make([]string, len(needRestart))
		for i, c := range needRestart {
			names[i] = c.Key
		}
		log.Warn("changed, takes effect at a restart: "+strings.Join(names, ", "), zap.Strings("changes", texts(needRestart)))
	}
	return server.Reloaded{Taken: taken, NeedRestart: needRestart}, nil
}

func texts(changes []conf.Change) []string {
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = c.String()
	}
	return lines
}

// logFaults tells what was noticed about a configuration, and all that is wrong with it.
func logFaults(cfg *conf.Config, err error, log *zap.Logger) {
	for _, w := range warningsOf(cfg, err) {
		log.Warn(w.String())
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			log.Error(line)
		}
	}
}
