package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Run runs the command of the options, or those of a terminal or a script, and returns the exit code.
func Run(ctx context.Context, opt *Options) int {
	servers, err := parseServers(opt.Servers)
	if err != nil {
		fmt.Fprintln(opt.Stderr, err)
		return ExitUsage
	}
	sh := newShell(opt, servers)
	defer sh.close(false)
	sh.document.Store(isDocument(opt.Words))
	if !opt.Quiet {
		fmt.Fprintln(sh.aside(), "Connecting to "+servers.text)
	}
	if len(opt.Words) == 0 && opt.StdinTerminal {
		return sh.interactive(ctx)
	}
	if offline(opt.Words) {
		sh.execute(ctx, opt.Words)
		return sh.code
	}
	interrupted := interruptible(ctx, func(ctx context.Context) {
		sh.connect()
		err = sh.await(ctx)
	})
	switch {
	case interrupted:
		return ExitInterrupted
	case err != nil && (opt.Wait || isLoginRefused(err)):
		printError(sh.err, err)
		return ExitFailure
	case len(opt.Words) > 0:
		interruptible(ctx, func(ctx context.Context) { sh.execute(ctx, opt.Words) })
		return sh.code
	}
	return sh.script(ctx)
}

// offline reports a command that says all without a server.
func offline(words []string) bool { return len(words) > 0 && words[0] == "help" }

// endSignals ask for the end of the process: by an operator, or because the terminal is gone. A process that was started
// so that it survives its terminal, as nohup does, is left alone.
func endSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// interruptible runs f with a context that ends with Ctrl-C or a signal that ends the process, and reports whether it did.
func interruptible(ctx context.Context, f func(context.Context)) bool {
	ctx, stop := signal.NotifyContext(ctx, append(endSignals(), syscall.SIGINT)...)
	defer stop()
	f(ctx)
	return ctx.Err() != nil
}

// await waits for the first connection: until each server was tried once, or if the options say so for a whole session
// timeout. Commands wait for it as well; this makes the events come first.
func (sh *shell) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sh.opt.Timeout)
	defer cancel()
	if _, err := sh.sess.connection(ctx, sh.opt.Wait); err != nil {
		return &opError{err: err}
	}
	return nil
}

// errLine is a line of a script that is too long.
var errLine = fmt.Errorf("a line of the script is longer than %d bytes", lineBytesMax)

// script runs the lines that come from a pipe or a file.
func (sh *shell) script(ctx context.Context) int {
	if !sh.opt.Quiet { // what zkCli prints, which scripts may skip line by line
		fmt.Fprintln(sh.out, "Welcome to ZooKeeper!\nJLine support is disabled")
	}
	r := bufio.NewReader(sh.opt.Stdin)
	for !sh.ended {
		line, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintln(sh.err, err)
			return ExitFailure
		}
		interruptible(ctx, func(ctx context.Context) { sh.runLine(ctx, line) })
		if sh.code == ExitInterrupted || err != nil {
			break
		}
	}
	return sh.code
}

// readLine returns a line without its end. The last one comes together with io.EOF.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > lineBytesMax:
			return "", errLine
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return strings.TrimRight(string(line), "\r\n"), err
	}
}
