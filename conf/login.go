package conf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"zabra/internal/sasl"
)

const (
	jaasFileKey      = "java.security.auth.login.config"
	quorumSASLKey    = "quorum.auth.enableSasl"
	learnerLogsInKey = "quorum.auth.learnerRequireSasl"
	authClasses      = "org.apache.zookeeper.server.auth."
	saslProvider     = authClasses + "SASLAuthenticationProvider"
	schemeSASL       = "sasl"
)

// providerSchemes are the auth plugins that there are, with their schemes.
var providerSchemes = map[string]string{
	authClasses + "DigestAuthenticationProvider":   "digest",
	authClasses + "IPAuthenticationProvider":       "ip",
	authClasses + "EnsembleAuthenticationProvider": "ensemble",
	X509Provider: "x509",
	saslProvider: schemeSASL,
}

func providerRemark(class string) string {
	if providerSchemes[class] == "" {
		return "no effect: this auth scheme is not supported by this version, clients that use it are refused"
	}
	return ""
}

// HasAuthScheme tells whether the server knows an auth scheme: ip, digest unless it is switched off, and those of the
// providers that are named.
func (c *Config) HasAuthScheme(scheme string) bool {
	switch scheme {
	case "ip":
		return true
	case "digest":
		return c.DigestAuthEnabled
	case "x509":
		return c.X509Auth()
	}
	return c.providerOf(scheme) != ""
}

// providerOf returns the key that names the provider of a scheme, "" if there is none.
func (c *Config) providerOf(scheme string) string {
	for _, name := range sortedKeys(c.Security.Providers) {
		if providerSchemes[c.Security.Providers[name]] == scheme {
			return "authProvider." + name
		}
	}
	return ""
}

// EnforcedSchemes are the auth schemes of which a client needs one before it is served. Nil if nothing is asked for.
func (c *Config) EnforcedSchemes() []string {
	switch s := &c.Security; {
	case s.RequireClientSASL:
		return []string{schemeSASL}
	case s.EnforceAuth:
		return s.EnforceSchemes
	}
	return nil
}

// NoSASL says why no client can log in by SASL; "" if users can.
func (c *Config) NoSASL() string {
	switch s := &c.Security; {
	case s.SASL.Users == nil && s.SASL.JAASFile == "":
		return "no file with a section " + s.SASL.ServerSection + " is named by " + jaasFileKey
	case s.SASL.Users == nil:
		return "there is no section " + s.SASL.ServerSection + " in " + shown(s.SASL.JAASFile)
	case s.FIPSMode:
		return excludedByFIPS
	}
	return ""
}

const excludedByFIPS = "fips-mode is true, its default, and excludes DIGEST-MD5; set fips-mode=false (-Dzookeeper.fips-mode=false)"

// logins reads the JAAS file, if one is named, and takes from it what this server needs.
func (l *loader) logins() {
	s := &l.cfg.Security.SASL
	if s.JAASFile != "" {
		path := jaasPath(s.JAASFile)
		if err := l.readLogins(path, s); err != nil {
			l.loginFault(path, err)
			// What could not be read is not missed as well.
			s.Users, s.QuorumUsers, s.QuorumLogin = sasl.Users{}, sasl.Users{}, sasl.Login{User: "unread"}
			return
		}
	}
	l.loginRemarks()
}

func (l *loader) readLogins(path string, s *SASL) error {
	text, err := l.readFile(path, fileBytesMax)
	if err != nil {
		return err
	}
	file, err := sasl.ParseJAAS(text, func(name string) (string, bool) { value, ok := l.defines[name]; return value, ok })
	if err != nil {
		return err
	}
	if s.Users, err = usersOf(file, s.ServerSection); err != nil || !s.Quorum || l.cfg.Ensemble == nil {
		return err
	}
	if s.QuorumUsers, err = usersOf(file, s.QuorumServerSection); err != nil {
		return err
	}
	if learner := file.Section(s.QuorumLearnerSection); learner != nil {
		s.QuorumLogin, err = learner.Login()
	}
	return err
}

// usersOf returns the users of a section, nil if it is not there.
func usersOf(file *sasl.JAAS, name string) (sasl.Users, error) {
	section := file.Section(name)
	if section == nil {
		return nil, nil
	}
	return section.Users()
}

// jaasPath is the file that a value of the property names: Java takes a URL as well, and = in front means: no other file.
func jaasPath(value string) string {
	path := strings.TrimPrefix(value, "=")
	if rest, ok := strings.CutPrefix(path, "file:"); ok {
		path = "/" + strings.TrimLeft(rest, "/")
	}
	return path
}

func (l *loader) loginFault(path string, err error) {
	var at *sasl.FileError
	if errors.As(err, &at) {
		l.fault(source{path, at.Line}, "", "%s", at.Text)
		return
	}
	l.fault(l.cfg.sources[jaasFileKey], jaasFileKey, "%v", err)
}

// loginRemarks warns of logins that come to nothing.
func (l *loader) loginRemarks() {
	c := l.cfg
	s := &c.Security
	provider, why := c.providerOf(schemeSASL), c.NoSASL()
	switch {
	case s.SASL.Users != nil && s.FIPSMode:
		l.warn(c.sources[jaasFileKey], jaasFileKey, "no client can log in by SASL: %s", why)
	case s.SASL.Users == nil && provider != "":
		l.warn(c.sources[provider], provider, "no client can log in by SASL: %s", why)
	case s.SASL.Users != nil && provider == "":
		l.warn(c.sources[jaasFileKey], jaasFileKey, "clients can log in by SASL, but access control lists with the scheme sasl are refused; "+
			"add authProvider.1=%s", saslProvider)
	}
	for _, key := range append([]string{"superUser"}, prefixed("superUser.", s.SuperUsers)...) {
		if s.SASL.Users == nil && c.Set(key) {
			l.warn(c.sources[key], key, "no effect: nobody gets these rights, because %s", why)
		}
	}
	if s.SASL.Quorum && !s.SASL.QuorumLearnerRequired && s.FIPSMode && c.Ensemble != nil {
		l.warn(c.sources[quorumSASLKey], quorumSASLKey, "other servers cannot log in to this one: %s", excludedByFIPS)
	}
}

func prefixed(prefix string, m map[string]string) (list []string) {
	for _, suffix := range sortedKeys(m) {
		list = append(list, prefix+suffix)
	}
	return list
}

// checkEnforced finds demands on clients that none of them could meet.
func (c *Config) checkEnforced() (faults []Fault) {
	schemes, key := c.EnforcedSchemes(), "enforce.auth.schemes"
	if c.Security.RequireClientSASL {
		key = "sessionRequireClientSASLAuth"
	}
	if c.Security.EnforceAuth && len(schemes) == 0 {
		faults = append(faults, Fault{Key: "enforce.auth.enabled", Text: "enforce.auth.enabled is true, enforce.auth.schemes must be configured"})
	}
	for _, scheme := range schemes {
		if c.HasAuthScheme(scheme) {
			continue
		}
		text := "Authentication scheme " + shown(scheme) + " is not available."
		if scheme == schemeSASL {
			text += " Add authProvider.1=" + saslProvider
		}
		faults = append(faults, Fault{Key: key, Text: text})
	}
	if why := c.NoSASL(); faults == nil && len(schemes) == 1 && schemes[0] == schemeSASL && why != "" {
		faults = append(faults, Fault{Key: key, Text: "only clients that log in by SASL are to be served, and none can: " + why})
	}
	return faults
}

// checkQuorumLogin finds what keeps the servers of an ensemble from logging in to one another.
func (c *Config) checkQuorumLogin() (faults []Fault) {
	s := &c.Security.SASL
	if c.Ensemble == nil || !s.Quorum {
		return nil
	}
	missing := func(section, what string) {
		where := " in " + shown(s.JAASFile)
		if s.JAASFile == "" {
			where = "; name its file by " + jaasFileKey
		}
		faults = append(faults, Fault{Key: quorumSASLKey, Text: fmt.Sprintf("there is no section %s with %s%s", section, what, where)})
	}
	if s.QuorumUsers == nil {
		missing(s.QuorumServerSection, "the users that are let in as other servers")
	}
	if s.QuorumLogin.User == "" {
		missing(s.QuorumLearnerSection, "the user that this server logs in as to others")
	}
	if c.Security.FIPSMode && s.QuorumLearnerRequired {
		faults = append(faults, Fault{Key: learnerLogsInKey, Text: "servers cannot log in to one another: " + excludedByFIPS})
	}
	return faults
}

// takeUsers takes the users of the JAAS file as it is now. Users that have logged in stay.
func takeUsers(to, from *Config) {
	t, f := &to.Security.SASL, &from.Security.SASL
	t.JAASFile, t.Users, t.QuorumUsers, t.QuorumLogin = f.JAASFile, f.Users, f.QuorumUsers, f.QuorumLogin
}

// userChanges tells that the users have changed in a file that has not changed its name.
func userChanges(old, new *Config) []Change {
	o, n := &old.Security.SASL, &new.Security.SASL
	if o.JAASFile != n.JAASFile || maps.Equal(o.Users, n.Users) && maps.Equal(o.QuorumUsers, n.QuorumUsers) && o.QuorumLogin == n.QuorumLogin {
		return nil
	}
	return []Change{{Key: jaasFileKey, From: notShown, To: notShown}}
}

// keysOfBoth are the keys of the table and those that either of the two has of the families.
func keysOfBoth(old, new *Config) []key {
	all := old.allKeys()
	for _, k := range new.allKeys() {
		if !slices.ContainsFunc(all, func(a key) bool { return a.name == k.name }) {
			all = append(all, k)
		}
	}
	return all
}
