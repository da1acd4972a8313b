package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"zabra/conf"
	"zabra/internal/lab"
	"zabra/server"
)

const labLockLong = `Lets clients wait for one lock, hands it over again and again, and counts what each hand-over costs the server.

Mode queue is the recipe: each client makes a node with a number and watches the one directly before it. A release is one
notification, to the one whose turn it is, however many wait.
Mode herd is what a lock looks like at first thought: the one who can create the node has the lock, and all others watch that
node. At each release the server tells everybody, everybody tries to create it, and all but one have asked in vain.

The scoreboard has a row for each hand-over: the winner, how many waited, the notifications that the server has sent, the
waiters that were woken, the requests that it has received meanwhile, how many of these were futile (neither the release nor made
by the winner), and the time from the release until the winner knew. Notifications and requests are the server's own counters,
read by mntr or from --metrics; what others do to the same server is counted too. What it does not count is shown as "-". On a
terminal the board is drawn in place; otherwise it is a line for each row, or with --json an object for each row and a summary.

A client that is killed loses its connection without having closed its session: the server cannot know that it is gone, and
waits for the session's timeout. A killed holder keeps the lock until then. A killed waiter keeps its place in the queue, and its
end wakes the one behind it, which finds that its turn has not come. Another client comes for each that was killed, as the last
in line.

Without --server a server is started for this run only, in a temporary folder and on a free port of this machine. On a given
one everything happens below a new node, /zabra-lab-..., which is removed. It has to admit one connection more than there are
waiters and one holder (maxClientCnxns).

Keys on a terminal: k kills a waiter, h the holder; space pauses, q quits.`

const labLockExample = `  zabra lab lock --waiters 50 --mode herd
  zabra lab lock --waiters 50 --mode queue
  zabra lab lock --waiters 10 --kill-holder-every 5 --session-timeout 2s
  zabra lab lock --server 10.0.0.1:2181 --metrics http://10.0.0.1:7000/metrics --json`

func newLab() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Watch what recipes cost a server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.Help(); err != nil {
				return err
			}
			return &exit{code: exitConfig}
		},
	}
	cmd.AddCommand(newLabLock())
	return cmd
}

// labFlags are those that the lab itself does not know.
type labFlags struct {
	mode, metrics string
	json          bool
}

func newLabLock() *cobra.Command {
	c := lab.Default()
	f := labFlags{mode: string(c.Mode)}
	cmd := &cobra.Command{
		Use:     "lock",
		Short:   "Hand a lock over in a line of clients and count what that costs",
		Long:    labLockLong,
		Example: labLockExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Mode = lab.Mode(f.mode)
			if err := errors.Join(c.Check(), f.check(&c)); err != nil {
				return &exit{code: exitConfig, stderr: err.Error()}
			}
			if err := runLab(cmd, c, &f); err != nil {
				return &exit{code: exitFailure, stderr: "zabra lab: " + err.Error()}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.mode, "mode", f.mode, "how the clients wait: "+strings.Join(lab.Modes, " or "))
	flags.IntVar(&c.Waiters, "waiters", c.Waiters, "clients that wait, beside the one that holds the lock")
	flags.IntVar(&c.Rounds, "rounds", c.Rounds, "hand-overs")
	flags.DurationVar(&c.Hold, "hold", c.Hold, "how long each holder keeps the lock")
	flags.StringVar(&c.Server, "server", "", "the server `HOST:PORT`; without it one is started for this run")
	flags.StringVar(&f.metrics, "metrics", "", "`URL` at which the server has its metrics for Prometheus, to read them there and not by mntr")
	flags.DurationVar(&c.SessionTimeout, "session-timeout", c.SessionTimeout, "session timeout to ask for, which is how long a killed client is waited for")
	flags.IntVar(&c.KillHolderEvery, "kill-holder-every", 0, "kill the holder in each `N`th round; 0 is never")
	flags.IntVar(&c.KillWaiterEvery, "kill-waiter-every", 0, "kill a waiter before each `N`th round; 0 is never")
	flags.BoolVar(&f.json, "json", false, "write an object on a line for each row, and one for the summary")
	return cmd
}

// check reports the faults of what the lab itself does not check.
func (f *labFlags) check(c *lab.Config) error {
	var errs []error
	if c.Server != "" {
		errs = append(errs, lab.CheckServer(c.Server))
	}
	if f.metrics != "" {
		u, err := url.Parse(f.metrics)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			errs = append(errs, fmt.Errorf("--metrics %q: it must be a URL such as http://10.0.0.1:7000/metrics", f.metrics))
		case c.Server == "":
			errs = append(errs, errors.New("--metrics: it belongs to a --server"))
		}
	}
	return errors.Join(errs...)
}

// runLab sees to the server, the signals and the terminal.
func runLab(cmd *cobra.Command, c lab.Config, f *labFlags) (err error) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	stop := context.AfterFunc(ctx, release) // the second signal ends the process
	defer stop()
	if c.Server == "" {
		s, err := startLabServer(&c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.end()) }()
		c.Server = s.Addr().String()
	}
	c.Meter = lab.Mntr(c.Server)
	if f.metrics != "" {
		c.Meter = lab.Prometheus(f.metrics)
	}
	board, leave := labBoard(cmd, &c, f.json)
	defer leave()
	_, err = lab.Run(ctx, c, board)
	return err
}

// labBoard chooses what fits the output. On a terminal it takes over the keyboard until leave is called.
func labBoard(cmd *cobra.Command, c *lab.Config, json bool) (_ lab.Board, leave func()) {
	leave = func() {}
	out, isFile := cmd.OutOrStdout().(*os.File)
	switch {
	case json:
		return lab.JSON(cmd.OutOrStdout()), leave
	case !isFile || !isTerminal(out):
		return lab.Plain(cmd.OutOrStdout()), leave
	}
	in, isFile := cmd.InOrStdin().(*os.File)
	if isFile && isTerminal(in) {
		if before, err := term.MakeRaw(int(in.Fd())); err == nil {
			keys := make(chan lab.Key)
			done := make(chan struct{})
			go readKeys(in, keys, done)
			c.Keys = keys
			leave = func() {
				close(done)
				_ = term.Restore(int(in.Fd()), before)
			}
		}
	}
	size := func() (width, height int) {
		width, height, _ = term.GetSize(int(out.Fd())) // 0 and 0 if it fails, for which the board has an answer
		return width, height
	}
	return lab.Live(out, size, c.Keys != nil), leave
}

// readKeys hands on what is pressed. The terminal does not make signals of keys meanwhile: Ctrl-C and Ctrl-D quit. It ends
// with the input, or at the first key after done is closed, which is at the end of the process.
func readKeys(in io.Reader, keys chan<- lab.Key, done <-chan struct{}) {
	const ctrlC, ctrlD = 3, 4
	var b [1]byte
	for {
		if _, err := in.Read(b[:]); err != nil {
			return
		}
		key := lab.Key(b[0])
		if b[0] == ctrlC || b[0] == ctrlD {
			key = lab.KeyQuit
		}
		select {
		case keys <- key:
		case <-done:
			return
		}
	}
}

// labServer is a server that lives for one run.
type labServer struct {
	*server.Server
	dir    string
	served chan error
}

// startLabServer starts it. Its ticks are short, so that it grants the session timeout that is asked for and sees in good time
// that it is over.
func startLabServer(c *lab.Config) (*labServer, error) {
	dir, err := os.MkdirTemp("", "zabra-lab-")
	if err != nil {
		return nil, err
	}
	s := &labServer{dir: dir, served: make(chan error, 1)}
	if s.Server, err = newLabServer(c, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a server: %w", err), os.RemoveAll(dir))
	}
	go func() { s.served <- s.Serve() }()
	return s, nil
}

func newLabServer(c *lab.Config, dir string) (*server.Server, error) {
	const ticksPerTimeout, portLater = 20, 2181 // the port is chosen when it is bound; a file must name one
	text := fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n"+
		"4lw.commands.whitelist=mntr,srvr\ntickTime=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\n",
		filepath.ToSlash(filepath.Join(dir, "data")), portLater, max(c.SessionTimeout/ticksPerTimeout, time.Millisecond).Milliseconds(),
		c.SessionTimeout.Milliseconds(), c.SessionTimeout.Milliseconds())
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cfg, err := conf.Load(file, nil)
	if err != nil {
		return nil, err
	}
	cfg.ClientPort = 0
	return server.New(cfg, server.Options{Version: "lab"})
}

// end stops the server and removes its folder.
func (s *labServer) end() error {
	return errors.Join(s.Close(), served(<-s.served), os.RemoveAll(s.dir))
}
