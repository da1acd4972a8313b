package server_test

import (
	"os"
	"slices"
	"testing"

	"zabra/server/servertest"
)

// compatAddrVariable names an environment variable. If it is set, the compatibility tests that need no special
// configuration run against the server at that address instead of starting their own, which is how they were checked
// against Apache ZooKeeper. That server needs tickTime=500, maxClientCnxns=0, extendedTypesEnabled=true,
// 4lw.commands.whitelist=* and a container check interval of 500 ms, and must be used by nobody else.
const compatAddrVariable = "ZABRA_COMPAT_ADDR"

// compatOptions are the configuration that the compatibility tests count on, beside servertest's own.
var compatOptions = []servertest.Option{
	servertest.WithConfig("extendedTypesEnabled", "true"),
	servertest.WithConfig("znode.container.checkIntervalMs", "500"),
}

// compat is the server that a compatibility test talks to.
type compat struct {
	t    *testing.T
	addr string
	own  *servertest.Server // nil if it is somebody else's
}

// startCompat starts a server, or finds the one that the environment names. Tests with options always get their own.
func startCompat(t *testing.T, opts ...servertest.Option) *compat {
	if addr := os.Getenv(compatAddrVariable); addr != "" && len(opts) == 0 {
		return &compat{t: t, addr: addr}
	}
	own := servertest.Start(t, append(slices.Clone(compatOptions), opts...)...)
	return &compat{t: t, addr: own.Addr(), own: own}
}

// restart shuts the server down and starts it again, if it is ours.
func (s *compat) restart() {
	if s.own != nil {
		s.own.Restart()
	}
}
