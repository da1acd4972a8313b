package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
)

// shell runs command lines on a session. Its methods are for one goroutine.
type shell struct {
	opt *Options
	out io.Writer
	err io.Writer
	// progress is where progress is shown, nil if nobody watches.
	progress io.Writer
	// mu keeps the output of commands and events apart.
	mu sync.Mutex

	servers serverList
	sess    *session
	lines   []string // the history of this run; zkCli counts lines from 0
	code    int      // the exit code of the last command
	ended   bool     // quit was called
	quiet   atomic.Bool
	hidden  atomic.Bool // printwatches is off
	// document is whether stdout gets a document, which nothing else may be in.
	document atomic.Bool
	view     promptView
	// refresh shows the prompt anew; nil without a terminal.
	refresh func()
	// stream gets the events in place of notify, while the command watch runs.
	stream atomic.Pointer[func(notice)]
}

// call is one command with its options and arguments.
type call struct {
	*shell
	ctx   context.Context
	flags flagSet
	args  []string
}

func newShell(opt *Options, servers serverList) *shell {
	sh := &shell{opt: opt, servers: servers}
	sh.out, sh.err = lockedWriter{&sh.mu, opt.Stdout}, lockedWriter{&sh.mu, opt.Stderr}
	if opt.StderrTerminal {
		sh.progress = sh.err
	}
	sh.quiet.Store(opt.Quiet)
	sh.view.color = opt.Color
	return sh
}

// connect opens a session, in place of the one that there was.
func (sh *shell) connect() {
	sh.close(true)
	sh.view.set(func() { sh.view.servers, sh.view.state = sh.servers.text, stateConnecting })
	sh.sess = openSession(sessionConfig{
		servers: sh.servers, timeout: sh.opt.Timeout, readOnly: sh.opt.ReadOnly, tls: sh.opt.TLS, login: sh.opt.Login, notify: sh.notify,
		changed: sh.stateChanged,
	})
}

// stateChanged runs on the session's goroutine, or on that of the command that ended it.
func (sh *shell) stateChanged(st state) {
	sh.view.set(func() { sh.view.state = st })
	if sh.refresh != nil {
		sh.refresh()
	}
}

// notify prints an event.
func (sh *shell) notify(n notice) {
	if stream := sh.stream.Load(); stream != nil {
		(*stream)(n)
		return
	}
	if sh.hidden.Load() || n.typ == "None" && sh.quiet.Load() {
		return
	}
	text := n.String()
	if sh.opt.Color {
		text = colour(colourEvent, text)
	}
	fmt.Fprintf(sh.aside(), "\nWATCHER::\n\n%s\n", text)
}

// aside is where everything goes that no command has asked for.
func (sh *shell) aside() io.Writer {
	if sh.document.Load() {
		return sh.err
	}
	return sh.out
}

// runLine runs a line and enters it into the history.
func (sh *shell) runLine(ctx context.Context, line string) {
	words := splitWords(line)
	if len(words) == 0 {
		return
	}
	sh.lines = append(sh.lines, line)
	if old := len(sh.lines) - historyLinesMax; old > 0 {
		sh.lines[old-1] = "" // a long script must not fill the memory
	}
	sh.execute(ctx, words)
}

// execute runs one command and keeps its exit code.
func (sh *shell) execute(ctx context.Context, words []string) {
	cmd := lookupCommand(words[0])
	switch {
	case cmd == nil:
		sh.usage()
		fmt.Fprintf(sh.err, "Command not found: Command not found %s\n", words[0])
		sh.code = ExitUnknown
		return
	case !cmd.offline && !sh.alive():
		fmt.Fprintln(sh.out, "Not connected")
		sh.code = ExitFailure
		return
	}
	code := sh.report(ctx, cmd, sh.run(ctx, cmd, words[1:]))
	if !sh.ended { // quit ends with the code of the command before
		sh.code = code
	}
}

func (sh *shell) alive() bool {
	if sh.sess == nil {
		return false
	}
	_, alive := sh.sess.current()
	return alive
}

func (sh *shell) run(ctx context.Context, cmd *command, words []string) error {
	flags, args, err := parseFlags(cmd.flags, words)
	switch {
	case err != nil:
		return err
	case len(args) < cmd.argsMin:
		return errUsage
	}
	return cmd.run(&call{shell: sh, ctx: ctx, flags: flags, args: args})
}

// errTold is a failure that has been told already.
var errTold = errors.New("told already")

// report tells what went wrong and returns the exit code.
func (sh *shell) report(ctx context.Context, cmd *command, err error) int {
	var inner *exitCode
	switch {
	case err == nil, errors.Is(err, errDone):
		return ExitOK
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, &inner):
		return inner.code
	case errors.Is(err, errUsage):
		fmt.Fprintln(sh.err, cmd.longUsage())
	case !errors.Is(err, errTold):
		printError(sh.err, err)
	}
	return ExitFailure
}

// usage lists all commands.
func (sh *shell) usage() {
	fmt.Fprint(sh.err, usageText())
}

// promptView is what the prompt shows. The session changes it while a line is being written.
type promptView struct {
	mu      sync.Mutex
	servers string
	state   state
	line    int
	color   bool
}

func (p *promptView) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *promptView) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := string(p.state)
	if p.color && p.state != stateConnected {
		st = colour(colourWarning, st)
	}
	return "[zk: " + p.servers + "(" + st + ") " + strconv.Itoa(p.line) + "] "
}

// close ends the session, if there is one.
func (sh *shell) close(farewell bool) {
	if sh.sess != nil {
		sh.sess.close(farewell && sh.alive())
		sh.sess = nil
	}
}

// The colours, as the terminal names them.
const (
	colourEvent   = "36"
	colourWarning = "33"
	colourAdded   = "32"
	colourRemoved = "31"
)

func colour(c, text string) string { return "\x1b[" + c + "m" + text + "\x1b[0m" }
