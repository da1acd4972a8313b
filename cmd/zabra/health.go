package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"zabra/conf"
)

const (
	// answerBytesMax bounds the answer to a four-letter word; ruok and srvr have a few hundred bytes.
	answerBytesMax = 64 << 10
	// statusTimeout bounds the wait of the verb status.
	statusTimeout = 5 * time.Second
	// noClientPort is said of a configuration without a port that could be asked, in the words of zkServer.sh.
	noClientPort = "Unable to find either secure or unsecure client port in any configs. Terminating."
)

// askWord sends a four-letter word to a server and returns the whole answer.
func askWord(addr, word string, timeout time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(conn, answerBytesMax))
	if err != nil {
		return "", fmt.Errorf("no answer to %s: %w", word, err)
	}
	return string(text), nil
}

// serverMode finds the line that tells the role of a server in its answer to srvr.
func serverMode(answer string) (string, bool) {
	for line := range strings.SplitSeq(answer, "\n") {
		if strings.HasPrefix(line, "Mode: ") {
			return line, true
		}
	}
	return "", false
}

// probeAlive asks whether the process answers, with or without a quorum. A server that may not answer ruok says so, and is alive.
func probeAlive(addr string, timeout time.Duration) (string, error) {
	answer, err := askWord(addr, "ruok", timeout)
	switch {
	case err != nil:
		return "", err
	case answer == "imok":
		return answer, nil
	case strings.HasPrefix(answer, "ruok is not executed"):
		return "alive (ruok is not in 4lw.commands.whitelist)", nil
	}
	return "", fmt.Errorf("unexpected answer to ruok: %q", firstLine(answer))
}

// probeReady asks whether the server serves clients.
func probeReady(addr string, timeout time.Duration) (string, error) {
	answer, err := askWord(addr, "srvr", timeout)
	if err != nil {
		return "", err
	}
	if line, ok := serverMode(answer); ok {
		return line, nil
	}
	return "", fmt.Errorf("not serving: %s", firstLine(answer))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 200)]
}

// clientAddress is where a program on the same machine reaches the server of a configuration.
func clientAddress(c *conf.Config) (host, port string) {
	host = c.ClientPortAddress
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return host, strconv.Itoa(c.ClientPort)
}

// missingClientPort says why a server without a plain client port cannot be asked.
func missingClientPort(c *conf.Config) string {
	if c.Security.SecureClientPort != conf.Unset {
		return "The server has a secure client port only, and this command does not speak TLS; ask for /livez and /readyz on its admin server."
	}
	return noClientPort
}

func newHealth() *cobra.Command {
	var (
		server, config string
		isReady        bool
		timeout        time.Duration
		defines        []string
	)
	cmd := &cobra.Command{
		Use:   "health [--ready] [--server HOST:PORT | --config FILE]",
		Short: "Tell whether a server is alive, or ready, for probes of containers",
		Long: `Asks a server by a four-letter word and exits with 0 or 1: whether it is alive (ruok; true without a quorum too), or with
--ready whether it serves clients (srvr, which every server answers).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if config != "" {
				c, err := conf.Load(config, properties(defines))
				if err != nil {
					return &exit{code: exitConfig, stderr: err.Error()}
				}
				if c.ClientPort == conf.Unset {
					return &exit{code: exitFailure, stderr: missingClientPort(c)}
				}
				server = net.JoinHostPort(clientAddress(c))
			}
			probe := probeAlive
			if isReady {
				probe = probeReady
			}
			answer, err := probe(server, timeout)
			if err != nil {
				return &exit{code: exitFailure, stderr: err.Error()}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), answer)
			return err
		},
	}
	addDefines(cmd, &defines)
	cmd.Flags().StringVar(&server, "server", "127.0.0.1:2181", "the client port of the server")
	cmd.Flags().StringVar(&config, "config", "", "the zoo.cfg of the server, to find its client port")
	cmd.MarkFlagsMutuallyExclusive("server", "config")
	cmd.Flags().BoolVar(&isReady, "ready", false, "ask whether it serves clients")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Second, "how long to wait for the answer")
	return cmd
}

func newStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status FILE",
		Short: "Say what the server of a configuration is doing, as zkServer.sh status does",
		Long: `Finds the client port in FILE, asks the server there and prints its role, in the words of zkServer.sh status. Exits with
1 if it does not serve, or cannot be reached.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := conf.Load(args[0], properties(nil))
			if err != nil {
				return &exit{code: exitFailure, stderr: err.Error()}
			}
			if c.ClientPort == conf.Unset {
				return &exit{code: exitFailure, stderr: missingClientPort(c)}
			}
			host, port := clientAddress(c)
			out := cmd.OutOrStdout()
			_, err = fmt.Fprintf(out, "Client port found: %s. Client address: %s. Client SSL: false.\n", port, host)
			line, failure := probeReady(net.JoinHostPort(host, port), statusTimeout)
			if failure != nil {
				_, e := fmt.Fprintln(out, "Error contacting service. It is probably not running.")
				return errors.Join(err, e, &exit{code: exitFailure, stderr: failure.Error()})
			}
			_, e := fmt.Fprintln(out, line)
			return errors.Join(err, e)
		},
	}
}
