package server

import (
	"net"

	"zabra/internal/sasl"
	"zabra/wire/peer"
)

// chain lets several authenticators have a say, one after the other: each gets the connection that the one before has made
// of it.
type chain []peer.Authenticator

// Client is called on the side that dialled.
func (c chain) Client(nc net.Conn) (net.Conn, error) {
	for _, a := range c {
		var err error
		if nc, err = a.Client(nc); err != nil {
			return nil, err
		}
	}
	return nc, nil
}

// Server is called on the side that accepted.
func (c chain) Server(nc net.Conn) (net.Conn, error) {
	for _, a := range c {
		var err error
		if nc, err = a.Server(nc); err != nil {
			return nil, err
		}
	}
	return nc, nil
}

// peerAuth is how this server and the other members of its ensemble prove to each other who they are. Without anything that
// asks for a proof, everybody in the network is trusted.
func peerAuth(s *Server) peer.Authenticator {
	var c chain
	if s.cfg.Security.SASL.Quorum {
		c = append(c, peerLogins(s))
	}
	return c
}

// peerLogins has the other servers log in. The users are those of the configuration as it is at the moment of the login.
func peerLogins(s *Server) *peer.SASL {
	cfg := &s.cfg.Security
	return &peer.SASL{
		LogsIn: cfg.SASL.QuorumLearnerRequired, Requires: cfg.SASL.QuorumServerRequired, Random: random,
		Login: func() sasl.Login { return s.live.Load().Security.SASL.QuorumLogin },
		Password: func(user string) (string, bool) {
			return s.live.Load().Security.SASL.QuorumUsers.Password(user)
		},
		Off: cfg.FIPSMode,
	}
}
