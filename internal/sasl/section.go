package sasl

import (
	"fmt"
	"strings"
)

const (
	// digestModule is how the class of the login module for DIGEST-MD5 ends, krb5Module those for Kerberos.
	digestModule = "DigestLoginModule"
	krb5Module   = "Krb5LoginModule"
	userPrefix   = "user_"
)

// Users returns the users that a server's section names, by options like user_bob="password". It is not nil. The error is a
// *FileError: a login module that cannot be had here, such as Kerberos, or a user without a name.
func (s *Section) Users() (Users, error) {
	users := Users{}
	for _, m := range s.Modules {
		if err := m.check(s); err != nil {
			return nil, err
		}
		for name, password := range m.Options { // order: the names of one module differ
			user, ok := strings.CutPrefix(name, userPrefix)
			if ok && user == "" {
				return nil, &FileError{m.Line, fmt.Sprintf("section %s: an option user_ without the name of a user", shown(s.Name))}
			}
			if ok {
				users[user] = password
			}
		}
	}
	return users, nil
}

// Login returns what a client's section says, by the options username and password. The error is a *FileError.
func (s *Section) Login() (Login, error) {
	for _, m := range s.Modules {
		if err := m.check(s); err != nil {
			return Login{}, err
		}
		if user := m.Options["username"]; user != "" {
			return Login{user, m.Options["password"]}, nil
		}
	}
	return Login{}, &FileError{s.Line, fmt.Sprintf(`section %s: no user to log in as; write username="..." password="..." behind the login module`, shown(s.Name))}
}

// check refuses a login module that is not that of DIGEST-MD5.
func (m *Module) check(s *Section) error {
	switch {
	case strings.HasSuffix(m.Class, digestModule):
		return nil
	case strings.HasSuffix(m.Class, krb5Module):
		return &FileError{m.Line, fmt.Sprintf("section %s: Kerberos is not supported by this version; "+
			"use org.apache.zookeeper.server.auth.DigestLoginModule, or TLS with certificates", shown(s.Name))}
	}
	return &FileError{m.Line, fmt.Sprintf("section %s: the login module %s is not known; "+
		"the one that there is is called org.apache.zookeeper.server.auth.DigestLoginModule", shown(s.Name), shown(m.Class))}
}
