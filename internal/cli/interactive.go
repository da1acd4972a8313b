package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ergochat/readline"
	"golang.org/x/term"
)

// interactive reads commands from a terminal. Ctrl-C ends the command that is running, or the line that is being written;
// Ctrl-D ends the session, and so do the signals that ask for the end of the process.
func (sh *shell) interactive(ctx context.Context) int {
	ctx, release := signal.NotifyContext(ctx, endSignals()...)
	defer release()
	file, lines := openHistory(sh.opt.HistoryFile)
	defer file.close()
	rl, err := sh.lineEditor(lines)
	if err != nil {
		fmt.Fprintln(sh.err, "the terminal cannot be used:", err)
		return ExitFailure
	}
	defer rl.Close()
	defer keepTerminal(sh.opt.Stdin)()
	defer context.AfterFunc(ctx, func() { rl.Close() })() // which ends a ReadLine
	sh.attach(rl)
	interruptible(ctx, func(ctx context.Context) {
		sh.connect()
		if err := sh.await(ctx); err != nil {
			printError(sh.err, err)
		}
	})
	for !sh.ended && ctx.Err() == nil {
		sh.view.set(func() { sh.view.line = len(sh.lines) })
		rl.SetPrompt(sh.view.text())
		line, err := editLine(ctx, rl)
		switch {
		case errors.Is(err, readline.ErrInterrupt) || ctx.Err() != nil:
			continue
		case err != nil:
			return sh.code
		}
		if words := splitWords(line); len(words) > 0 && !secret(words) {
			rl.SaveToHistory(line) // it has no file that could fail
			file.add(line)
		}
		interruptible(ctx, func(ctx context.Context) { sh.runLine(ctx, line) })
	}
	if ctx.Err() != nil {
		return ExitInterrupted
	}
	return sh.code
}

// editLine reads a line until the context ends. An editor that is closed in the moment in which it begins to read can miss that:
// then it is left behind.
func editLine(ctx context.Context, rl *readline.Instance) (string, error) {
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := rl.ReadLine()
		answers <- answer{line, err}
	}()
	select {
	case a := <-answers:
		return a.line, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return a.line, a.err
	case <-time.After(editorEndTime):
		return "", ctx.Err()
	}
}

// keepTerminal returns what puts the terminal back into the state in which it is now.
func keepTerminal(in io.Reader) (restore func()) {
	file, ok := in.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(int(file.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(file.Fd()), state) } // it may be gone
}

// lineEditor reads lines, with those of earlier sessions as its history.
func (sh *shell) lineEditor(history []string) (*readline.Instance, error) {
	rl, err := readline.NewFromConfig(&readline.Config{
		Stdin:        sh.opt.Stdin,
		Prompt:       sh.view.text(),
		AutoComplete: &completer{sh},
		// The editor would make its file readable for all when it writes it anew, so that historyFile is ours. Without any
		// it begins in another state.
		HistoryFile:            os.DevNull,
		HistoryLimit:           historyFileLinesMax,
		HistorySearchFold:      true,
		DisableAutoSaveHistory: true,
		EOFPrompt:              "quit",
	})
	if err != nil {
		return nil, err
	}
	for _, line := range history {
		rl.SaveToHistory(line)
	}
	return rl, nil
}

// attach lets everything be written through the line editor, which keeps it apart from the line.
func (sh *shell) attach(rl *readline.Instance) {
	sh.out, sh.err = lockedWriter{&sh.mu, rl.Stdout()}, lockedWriter{&sh.mu, rl.Stderr()}
	if sh.progress != nil {
		sh.progress = sh.err
	}
	sh.refresh = func() {
		rl.SetPrompt(sh.view.text())
		rl.Refresh()
	}
	if !sh.opt.Quiet {
		fmt.Fprintln(sh.out, "help lists the commands, Tab completes, Ctrl-D ends")
	}
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
