package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger writes to out in one of the formats console, line and json. The level is a name of zap's. myid is the
// server's number where it has one, "" otherwise.
func newLogger(out *os.File, format, level, myid string) (*zap.Logger, error) {
	var min zapcore.Level
	if err := min.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %q is not debug, info, warn or error", level)
	}
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
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(out), min), zap.AddCaller()), nil
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

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
