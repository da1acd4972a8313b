package server

import (
	"crypto/rand"
	"strings"

	"zabra/conf"
	"zabra/server/replica"
	"zabra/znode"
)

// saslSuperUser is the user whose password may come from the configuration, and not from the JAAS file.
const saslSuperUser = "super"

// random fills b. It cannot fail: the process ends if the system has no randomness.
func random(b []byte) { _, _ = rand.Read(b) }

// authProviders are the auth schemes that the configuration names, besides those that are always there.
func authProviders(cfg *conf.Config) (list []znode.Provider) {
	if cfg.HasAuthScheme("sasl") {
		list = append(list, znode.SASLProvider(cfg.Security.SASL.AnyReader))
	}
	if cfg.HasAuthScheme("ensemble") {
		var names []string
		for name := range strings.SplitSeq(cfg.Security.EnsembleNames, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
		list = append(list, znode.EnsembleProvider(names))
	}
	if cfg.X509Auth() {
		list = append(list, znode.X509Provider{SuperUser: cfg.Security.X509SuperUser})
	}
	return list
}

// clientLogins is what the replica has to know of logins. The users are those of the configuration as it is at the moment of
// the login.
func (s *Server) clientLogins() *replica.SASL {
	return &replica.SASL{
		Offered: func() (offered bool, off string) {
			cfg := s.live.Load()
			return cfg.Security.SASL.Users != nil, cfg.NoSASL()
		},
		Password: func(user string) (string, bool) {
			sasl := &s.live.Load().Security.SASL
			if user == saslSuperUser && sasl.SuperPassword != "" {
				return sasl.SuperPassword, true
			}
			return sasl.Users.Password(user)
		},
		Super:      func(user string) bool { return isSuperUser(s.cfg, user) },
		Random:     random,
		KeepFailed: s.cfg.Security.SASL.KeepFailedClients,
	}
}

// isSuperUser tells whether superUser or one of superUser.x names a SASL user.
func isSuperUser(cfg *conf.Config, user string) bool {
	if user == "" {
		return false
	}
	is := cfg.Security.SuperUser == user
	for _, one := range cfg.Security.SuperUsers {
		is = is || one == user
	}
	return is
}
