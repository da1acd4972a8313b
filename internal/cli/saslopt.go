package cli

import (
	"fmt"
	"strings"

	"zabra/internal/sasl"
)

// The keys of ZooKeeper's client configuration that say how to log in.
const (
	keyJAAS        = "java.security.auth.login.config"
	keySASL        = "sasl.client"
	keySASLSection = "sasl.clientconfig"
	keyFIPS        = "fips-mode"

	saslSectionDefault = "Client"
)

// login returns the user to log in as, nil if there is none: the one in the section Client of the JAAS file that is named. A
// file that has no such section belongs to somebody else, unless the section is named, too.
func (cc clientConfig) login() (*sasl.Login, error) {
	file := cc[keyJAAS]
	if file.value == "" || strings.EqualFold(cc[keySASL].value, "false") {
		return nil, nil
	}
	data, err := readSmall(file.value)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", file.where, keyJAAS, err)
	}
	property := func(name string) (string, bool) {
		s, ok := cc[settingName(name)]
		return s.value, ok
	}
	jaas, err := sasl.ParseJAAS(data, property)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.value, err)
	}
	name := saslSectionDefault
	if named := cc[keySASLSection].value; named != "" {
		name = named
	}
	section := jaas.Section(name)
	switch {
	case section == nil && cc[keySASLSection].value == "":
		return nil, nil
	case section == nil:
		return nil, fmt.Errorf("%s: there is no section %s, which %s names", file.value, name, keySASLSection)
	}
	login, err := section.Login()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.value, err)
	}
	if fips := cc[keyFIPS]; strings.EqualFold(fips.value, "true") {
		return nil, fmt.Errorf("%s: %s=true excludes DIGEST-MD5, and the section %s of %s logs in by it: leave one of the two out", fips.where, keyFIPS, name, file.value)
	}
	return &login, nil
}
