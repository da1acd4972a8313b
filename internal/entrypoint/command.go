package entrypoint

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// StandIns are the programs of ZooKeeper that a command line may name.
var StandIns = []string{"zkServer.sh", "zkCli.sh", "zkCleanup.sh"}

// Program is what Command has to know of the program.
type Program struct {
	// IsVerb knows the verbs.
	IsVerb func(name string) bool
	// Positional picks the arguments of a server that are neither flags nor values of flags. An error is for the server to
	// tell.
	Positional func(serverArgs []string) ([]string, error)
	// Dirs finds dataLogDir and dataDir in a configuration file.
	Dirs func(config string) (logDir, dataDir string, err error)
}

// Command turns the command line of a container into one of this program: the names of ZooKeeper's scripts, a verb, flags
// of a server, or nothing at all, which is a server.
func (s *Settings) Command(args []string, p Program) ([]string, error) {
	if len(args) > 0 && args[0] == "zabra" {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		return s.server(nil, p), nil
	case filepath.Base(args[0]) == "zkServer.sh":
		return s.zkServer(args[1:])
	case filepath.Base(args[0]) == "zkCli.sh":
		return slices.Concat([]string{"cli"}, args[1:]), nil
	case filepath.Base(args[0]) == "zkCleanup.sh":
		logDir, dataDir, err := p.Dirs(s.ConfigPath())
		return slices.Concat([]string{"purge", logDir, dataDir}, args[1:]), err
	case strings.HasPrefix(args[0], "-") && args[0] != "-h" && args[0] != "--help":
		return s.server(args, p), nil
	case args[0] == "server":
		return s.server(args[1:], p), nil
	case strings.HasPrefix(args[0], "-"), p.IsVerb(args[0]):
		return args, nil
	}
	return nil, fmt.Errorf("%q is not in this image, which has no shell and no other programs: name %s, or a verb of zabra",
		args[0], strings.Join(StandIns, ", "))
}

// server is a server with the arguments, on zoo.cfg if they name nothing else.
func (s *Settings) server(args []string, p Program) []string {
	line := slices.Concat([]string{"server"}, args)
	if positional, err := p.Positional(args); err != nil || len(positional) > 0 {
		return line
	}
	return append(line, s.ConfigPath())
}

// zkServer understands the command line of zkServer.sh.
func (s *Settings) zkServer(args []string) ([]string, error) {
	dir := s.ConfDir
	if len(args) >= 2 && args[0] == "--config" {
		dir, args = args[1], args[2:]
	}
	file := filepath.Join(dir, "zoo.cfg")
	if len(args) >= 2 {
		file = args[1]
		if !strings.Contains(file, "/") {
			file = filepath.Join(dir, file)
		}
	}
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	switch verb {
	case "start", "start-foreground":
		return []string{"server", file}, nil
	case "status":
		return []string{"status", file}, nil
	case "version":
		return []string{"version", "--zookeeper"}, nil
	case "stop", "restart":
		return nil, fmt.Errorf("zkServer.sh %s: the server is this container's only process: stop or restart the container", verb)
	}
	return nil, fmt.Errorf("Usage: zkServer.sh [--config <conf-dir>] {start-foreground|start|status|version} [config file]")
}
