package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"zabra/internal/sasl"
)

// Options say how a command line runs. ParseOptions makes them.
type Options struct {
	// Servers is the connect string: HOST:PORT,HOST:PORT/ROOT.
	Servers string
	// Timeout is the session timeout to ask for.
	Timeout time.Duration
	// ReadOnly accepts a server that is cut off from its ensemble.
	ReadOnly bool
	// Wait waits for the connection before the first command, for one session timeout at most.
	Wait bool
	// Quiet leaves out the greeting and the events about the session itself.
	Quiet bool
	// Color is whether output is coloured.
	Color bool
	// TLS is how to speak TLS; nil for plain connections.
	TLS *tls.Config
	// Login is who to log in as by SASL; nil for nobody.
	Login *sasl.Login
	// HistoryFile keeps the lines of interactive sessions; "" for none.
	HistoryFile string
	// Version is what the command version shows.
	Version string
	// Words are the one command to run; none for a terminal or a script.
	Words []string

	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// The terminals among the three.
	StdinTerminal, StdoutTerminal, StderrTerminal bool
}

// ErrHelp is returned by ParseOptions if the user asked for help.
var ErrHelp = errors.New("help")

// Synopsis is the usage of the command line itself.
const Synopsis = `Usage: zabra cli [options] [command [arguments]]

Without a command it reads commands from the terminal or a pipe. "zabra cli help" lists the commands.

Options, with one hyphen or two:
  -server HOST:PORT,HOST:PORT/ROOT  the servers, and the node that all paths begin below (localhost:2181)
  -timeout MS                       the session timeout in milliseconds (30000)
  -r                                accept a server that is cut off from its ensemble
  -waitforconnection                wait for the connection, one session timeout at most, before the first command
  -client-configuration FILE        ZooKeeper's client configuration, for TLS with stores in PEM, JKS or PKCS12
  -DNAME=VALUE                      a property as for java, also taken from CLIENT_JVMFLAGS and JVMFLAGS:
                                    -Djava.security.auth.login.config=FILE logs in by SASL, as the section Client says
  -q, --quiet                       no greeting and no events about the session itself
  --tls                             speak TLS, checking servers against the system's certificates
  --tls-ca FILE                     speak TLS, checking servers against these certificates (PEM)
  --tls-cert FILE, --tls-key FILE   the client's own certificate and key (PEM)
  --tls-server-name NAME            the name that the certificates of servers have to be for
  --tls-any-name                    accept any name in the certificates of servers
  --color auto|always|never         colours; auto is on a terminal, unless NO_COLOR is set
  --history FILE                    the history of interactive sessions (~/.zabra_history); "" for none
  -h, --help                        this text

Exit codes: 0 done, 1 the command failed, 2 the options cannot be used, 127 no such command, 130 interrupted.
`

// optionsParse is the state of ParseOptions.
type optionsParse struct {
	opt    *Options
	tls    TLSFiles // those of options, which count for more than config
	config clientConfig
	useTLS bool
	color  string
	stderr io.Writer
}

// ParseOptions reads a command line and the environment. The three standard streams are those of the process unless they
// are replaced afterwards. Its errors are for users; for what zkCli ignores, too, there is only a line on stderr.
func ParseOptions(args []string, getenv func(string) string, stderr io.Writer) (*Options, error) {
	p := &optionsParse{stderr: stderr, color: "auto", config: clientConfig{}, opt: &Options{
		Servers: serversDefault, Timeout: timeoutDefault, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTerminal: isTerminal(os.Stdin), StdoutTerminal: isTerminal(os.Stdout), StderrTerminal: isTerminal(os.Stderr),
	}}
	if home := getenv("HOME"); home != "" {
		p.opt.HistoryFile = filepath.Join(home, ".zabra_history")
	}
	for _, name := range []string{"CLIENT_JVMFLAGS", "JVMFLAGS"} {
		if err := p.environment(name, getenv(name)); err != nil {
			return nil, err
		}
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		n, err := p.option(args)
		if err != nil {
			return nil, err
		}
		args = args[n:]
	}
	p.opt.Words = args
	switch p.color {
	case "auto":
		p.opt.Color = p.opt.StdoutTerminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	case "always", "never":
		p.opt.Color = p.color == "always"
	default:
		return nil, fmt.Errorf("--color %s: it must be auto, always or never", p.color)
	}
	files, secure := p.config.complete(p.tls)
	var err error
	if p.useTLS || secure {
		if p.opt.TLS, err = files.Load(); err != nil {
			return nil, err
		}
	}
	if p.opt.Login, err = p.config.login(); err != nil {
		return nil, err
	}
	return p.opt, nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// environment takes the -D options that zkCli's script passes on to Java.
func (p *optionsParse) environment(name, flags string) error {
	for word := range strings.FieldsSeq(flags) {
		if err := p.define(word, name); err != nil {
			return err
		}
	}
	return nil
}

// define takes a -D option, if it is one for a client of ZooKeeper.
func (p *optionsParse) define(word, where string) error {
	definition, ok := strings.CutPrefix(word, "-D")
	if !ok || !strings.Contains(definition, "=") {
		return nil
	}
	return p.config.read([]string{definition}, where)
}

// option takes the first option and returns how many words it was.
func (p *optionsParse) option(args []string) (int, error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[0], "-"), "-"), "=")
	used := 1
	text := func() (string, error) {
		if hasValue {
			return value, nil
		}
		if len(args) < 2 {
			return "", fmt.Errorf("option %s needs a value", args[0])
		}
		used = 2
		return args[1], nil
	}
	if strings.HasPrefix(args[0], "-D") {
		return used, p.define(args[0], "the option -D")
	}
	var err error
	switch name {
	case "server":
		p.opt.Servers, err = text()
	case "timeout":
		if value, err = text(); err == nil {
			p.opt.Timeout, err = parseTimeout(value)
		}
	case "client-configuration":
		if value, err = text(); err == nil {
			err = p.clientFile(value)
		}
	case "tls-ca":
		p.tls.CA, err = text()
		p.useTLS = true
	case "tls-cert":
		p.tls.Cert, err = text()
		p.useTLS = true
	case "tls-key":
		p.tls.Key, err = text()
		p.useTLS = true
	case "tls-server-name":
		p.tls.ServerName, err = text()
		p.useTLS = true
	case "color":
		p.color, err = text()
	case "history":
		p.opt.HistoryFile, err = text()
	default:
		err = p.toggle(name, args[0])
	}
	return used, err
}

// toggle takes an option without a value.
func (p *optionsParse) toggle(name, word string) error {
	switch name {
	case "r", "readonly":
		p.opt.ReadOnly = true
	case "waitforconnection":
		p.opt.Wait = true
	case "q", "quiet":
		p.opt.Quiet = true
	case "tls":
		p.useTLS = true
	case "tls-any-name":
		p.useTLS, p.tls.NoHostname = true, true
	case "h", "help":
		return ErrHelp
	default:
		if strings.HasPrefix(word, "--") {
			return fmt.Errorf("unknown option %s, zabra cli --help lists all", word)
		}
		fmt.Fprintf(p.stderr, "unknown option %s is ignored, zabra cli --help lists all\n", word)
	}
	return nil
}

func parseTimeout(text string) (time.Duration, error) {
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil || ms <= 0 {
		return 0, fmt.Errorf("-timeout %s: it must be a number of milliseconds above 0", text)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func (p *optionsParse) clientFile(path string) error {
	data, err := readSmall(path)
	if err != nil {
		return fmt.Errorf("client configuration: %w", err)
	}
	return p.config.read(strings.Split(string(data), "\n"), path)
}
