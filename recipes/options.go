package recipes

import (
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// Options are those of a client. The zero value works.
type Options struct {
	// SessionTimeout is what is asked of the server, 10 s if it is 0. The server decides, usually within 2 to 20 of its ticks.
	SessionTimeout time.Duration
	// Namespace is a node below which all paths of this client lie, such as "/app". Connect makes it if it is missing, to stay.
	Namespace string
	// Retry is how reads are repeated after a lost connection, and how background work is. Without one it is
	// Exponential(50 ms, 2 s).
	Retry RetryPolicy
	// ACL is that of every node made here. Without one everybody may do everything.
	ACL []zk.ACL
	// Auth is who this client is; Connect and Wrap tell it to the server.
	Auth []Auth
	// Dial makes connections, for TLS for example. Without one it is net.DialTimeout.
	Dial zk.Dialer
	// Logger receives what package zk has to say. Without one it is silent.
	Logger zk.Logger
}

// Auth is one identity, as in addauth: the scheme "digest" with the credentials "user:password".
type Auth struct {
	Scheme      string
	Credentials []byte
}

const (
	sessionTimeoutDefault = 10 * time.Second
	retryFirstDefault     = 50 * time.Millisecond
	retryMostDefault      = 2 * time.Second
	// sessionTimeoutMax is what fits into the milliseconds of the protocol, with some room.
	sessionTimeoutMax = 24 * time.Hour
)

// withDefaults returns checked options without gaps.
func (o Options) withDefaults() (Options, error) {
	if o.SessionTimeout == 0 {
		o.SessionTimeout = sessionTimeoutDefault
	}
	if o.SessionTimeout < time.Millisecond || o.SessionTimeout > sessionTimeoutMax {
		return o, fmt.Errorf("recipes: a session timeout of %v is not between 1ms and %v", o.SessionTimeout, sessionTimeoutMax)
	}
	if o.Namespace == "/" {
		o.Namespace = ""
	}
	if o.Namespace != "" {
		if err := checkPath(o.Namespace); err != nil {
			return o, fmt.Errorf("namespace: %w", err)
		}
	}
	if o.Retry == nil {
		o.Retry = Exponential(retryFirstDefault, retryMostDefault)
	}
	if o.ACL == nil {
		o.ACL = zk.WorldACL(zk.PermAll)
	}
	if o.Dial == nil {
		o.Dial = net.DialTimeout
	}
	if o.Logger == nil {
		o.Logger = silence{}
	}
	return o, nil
}

type silence struct{}

func (silence) Printf(string, ...any) {}
