package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"zabra/conf"
	"zabra/internal/logfile"
)

// newLevel is the level of a log before the configuration is known: the one given with --log-level, or info.
func newLevel(option string) (zap.AtomicLevel, error) {
	level, err := zapcore.ParseLevel(option)
	if err != nil {
		return zap.AtomicLevel{}, fmt.Errorf("--log-level: %q is not debug, info, warn or error", option)
	}
	return zap.NewAtomicLevelAt(level), nil
}

// levelOf is the level that a configuration asks for, info if it does not say.
func levelOf(cfg *conf.Config) zapcore.Level {
	level, _ := zapcore.ParseLevel(cfg.LogLevel) // it is one, or ""
	return level
}

// levels are those of the log on standard output and of the one in a file. They may change while the log is in use.
type levels struct{ console, file zap.AtomicLevel }

// set takes the levels from a configuration.
func (l *levels) set(cfg *conf.Config) {
	console, file := levelsOf(cfg)
	l.console.SetLevel(console)
	l.file.SetLevel(file)
}

// lower takes those levels of a configuration that let more through than the present ones.
func (l *levels) lower(cfg *conf.Config) {
	console, file := levelsOf(cfg)
	l.console.SetLevel(min(console, l.console.Level()))
	l.file.SetLevel(min(file, l.file.Level()))
}

func levelsOf(cfg *conf.Config) (console, file zapcore.Level) {
	return max(levelOf(cfg), threshold(cfg.Log.ConsoleLevel)), max(levelOf(cfg), threshold(cfg.Log.FileLevel))
}

// threshold is a level below which nothing is written, debug for none.
func threshold(text string) zapcore.Level {
	if text == "" {
		return zapcore.DebugLevel
	}
	level, _ := zapcore.ParseLevel(text)
	return level
}

// serverLog makes the log of a server that has a configuration: on standard output, in a file, or both. file is nil if there is
// none. A file is written as ZooKeeper writes it, or as JSON if that is asked for.
func serverLog(cfg *conf.Config, format string, l levels) (log *zap.Logger, file *logfile.File, err error) {
	myid := ""
	if cfg.MyID != conf.Unset {
		myid = fmt.Sprint(cfg.MyID)
	}
	if log, err = newLogger(os.Stdout, format, l.console, myid); err != nil || !cfg.Log.ToFile {
		return log, nil, err
	}
	if file, err = logfile.Open(cfg.Log.Path(), cfg.Log.FileBytesMax, cfg.Log.FilesKept); err != nil {
		return nil, nil, fmt.Errorf("root.logger asks for a log file, which cannot be opened; look at log.dir and log.file: %w", err)
	}
	encoder := zapcore.NewConsoleEncoder(lineConfig(myid))
	if format == "json" {
		encoder = zapcore.NewJSONEncoder(jsonConfig())
	}
	core := zapcore.NewCore(encoder, file, l.file)
	if !cfg.Log.NotToConsole {
		core = zapcore.NewTee(log.Core(), core)
	}
	return zap.New(core, zap.AddCaller()), file, nil
}

// newLogger writes to out in one of the formats console, line and json. The level may change while the log is in use. myid
// is the server's number where it has one, "" otherwise.
func newLogger(out *os.File, format string, level zapcore.LevelEnabler, myid string) (*zap.Logger, error) {
	if format == "auto" {
		format = "line"
		if isTerminal(out) {
			format = "console"
		}
	}
	var encoder zapcore.Encoder
	switch format {
	case "console":
		encoder = zapcore.NewConsoleEncoder(consoleConfig())
	case "line":
		encoder = zapcore.NewConsoleEncoder(lineConfig(myid))
	case "json":
		encoder = zapcore.NewJSONEncoder(jsonConfig())
	default:
		return nil, fmt.Errorf("--log-format: %q is not auto, console, line or json", format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(out), level), zap.AddCaller()), nil
}

// isTerminal tells whether f is a terminal, and one that is still there.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// consoleConfig is for people: short time, coloured level.
func consoleConfig() zapcore.EncoderConfig {
	c := zap.NewDevelopmentEncoderConfig()
	c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	c.EncodeLevel = zapcore.CapitalColorLevelEncoder
	c.ConsoleSeparator = " "
	c.CallerKey = zapcore.OmitKey
	return c
}

// lineConfig is the line that ZooKeeper's own configuration of logback writes, which log shippers have patterns for:
//
//	2026-11-30 08:07:58,676 [myid:] - INFO  [main:server@177] - message
//
// There are no threads with names here, so the thread is always main. Fields follow as JSON.
func lineConfig(myid string) zapcore.EncoderConfig {
	c := zap.NewProductionEncoderConfig()
	c.ConsoleSeparator = " "
	c.EncodeTime = func(t time.Time, enc zapcore.PrimitiveArrayEncoder) {
		enc.AppendString(t.Format("2006-01-02 15:04:05,000") + " [myid:" + myid + "] -")
	}
	c.EncodeLevel = func(l zapcore.Level, enc zapcore.PrimitiveArrayEncoder) {
		enc.AppendString(fmt.Sprintf("%-5s", l.CapitalString()))
	}
	c.EncodeCaller = func(caller zapcore.EntryCaller, enc zapcore.PrimitiveArrayEncoder) {
		file := strings.TrimSuffix(filepath.Base(caller.File), ".go")
		enc.AppendString(fmt.Sprintf("[main:%s@%d] -", file, caller.Line))
	}
	c.EncodeDuration = zapcore.StringDurationEncoder
	return c
}

func jsonConfig() zapcore.EncoderConfig {
	c := zap.NewProductionEncoderConfig()
	c.TimeKey = "time"
	c.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	c.EncodeDuration = zapcore.StringDurationEncoder
	return c
}
