package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ergochat/readline"
)

// interactive reads commands from a terminal. Ctrl-C ends the command that is running, or the line that is being written;
// Ctrl-D ends the session.
func (sh *shell) interactive(ctx context.Context) int {
	rl, err := readline.NewFromConfig(&readline.Config{
		Stdin:                  sh.opt.Stdin,
		Prompt:                 sh.view.text(),
		AutoComplete:           &completer{sh},
		HistoryFile:            privateFile(sh.opt.HistoryFile),
		HistoryLimit:           historyFileLinesMax,
		HistorySearchFold:      true,
		DisableAutoSaveHistory: true,
		EOFPrompt:              "quit",
	})
	if err != nil {
		fmt.Fprintln(sh.err, "the terminal cannot be used:", err)
		return ExitFailure
	}
	defer rl.Close()
	sh.out, sh.err = lockedWriter{&sh.mu, rl.Stdout()}, lockedWriter{&sh.mu, rl.Stderr()}
	if sh.progress != nil {
		sh.progress = sh.err
	}
	sh.refresh = func() {
		rl.SetPrompt(sh.view.text())
		rl.Refresh()
	}
	if !sh.opt.Quiet {
		fmt.Fprintln(sh.out, "Welcome to ZooKeeper!\nJLine support is enabled")
	}
	interruptible(ctx, func(ctx context.Context) {
		sh.connect()
		if err := sh.await(ctx); err != nil {
			printError(sh.err, err)
		}
	})
	for !sh.ended {
		sh.view.set(func() { sh.view.line = len(sh.lines) })
		rl.SetPrompt(sh.view.text())
		line, err := rl.ReadLine()
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			continue
		case err != nil:
			return sh.code
		}
		if words := splitWords(line); len(words) > 0 && !secret(words) {
			rl.SaveToHistory(line) // the history is a convenience: no error if it cannot be written
		}
		interruptible(ctx, func(ctx context.Context) { sh.runLine(ctx, line) })
	}
	return sh.code
}

// secret reports a line that must not be stored.
func secret(words []string) bool { return words[0] == "addauth" }

// masked is a line as the history shows it.
func masked(line string) string {
	if words := splitWords(line); len(words) > 2 && secret(words) {
		return strings.Join(words[:2], " ") + " ******"
	}
	return line
}

// privateFile makes sure that a file exists and that nobody else can read it. It returns "" if it cannot be used.
func privateFile(path string) string {
	if path == "" {
		return ""
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return ""
	}
	f.Close()
	return path
}
