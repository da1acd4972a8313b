package certs

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"zabra/conf"
)

// rules are what a set of keys says about connections, whatever the stores hold.
type rules struct {
	minVersion, maxVersion uint16
	suites                 []uint16 // of TLS 1.2 and before; nil: the library's choice
	clientAuth             tls.ClientAuthType
	checkServer            bool
	checkClient            bool
}

// versions are the protocol versions by the names that Java has for them.
var versions = map[string]uint16{
	"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13,
}

// newRules reads the rules. names are the versions that are allowed if neither enabledProtocols nor protocol says. remarks are
// about what is in the settings and has no effect.
func newRules(prefix string, t *conf.TLS, names []string) (r rules, remarks []string, err error) {
	switch strings.ToLower(t.ClientAuth) {
	case "", "need":
		r.clientAuth = tls.RequireAndVerifyClientCert
	case "want":
		r.clientAuth = tls.VerifyClientCertIfGiven
	case "none":
		r.clientAuth = tls.NoClientCert
	default:
		return r, nil, fmt.Errorf("%sclientAuth: %.32q is not none, want or need", prefix, t.ClientAuth)
	}
	r.checkServer = t.HostnameVerification
	r.checkClient = t.HostnameVerification && t.ClientHostnameVerification
	if err = r.setVersions(prefix, t, names); err != nil {
		return r, nil, err
	}
	remarks, err = r.setSuites(prefix, t.CipherSuites)
	return r, remarks, err
}

// setVersions finds the lowest and the highest version.
func (r *rules) setVersions(prefix string, t *conf.TLS, names []string) error {
	key := prefix + "enabledProtocols"
	switch {
	case len(t.EnabledProtocols) > 0:
		names = t.EnabledProtocols
	case t.Protocol == "TLSv1.3", t.Protocol == "TLS":
		names = []string{"TLSv1.3", "TLSv1.2"}
	case t.Protocol != "":
		key, names = prefix+"protocol", []string{t.Protocol}
	}
	for _, name := range names {
		v, ok := versions[strings.TrimSpace(name)]
		if !ok {
			return fmt.Errorf("%s: %.32q is not one of TLSv1.3, TLSv1.2, TLSv1.1, TLSv1", key, name)
		}
		if r.minVersion == 0 || v < r.minVersion {
			r.minVersion = v
		}
		r.maxVersion = max(r.maxVersion, v)
	}
	return nil
}

// setSuites narrows the cipher suites. Those of TLS 1.3 cannot be chosen among; a list without them excludes that version, as in
// Java, and a list of nothing else excludes the others.
func (r *rules) setSuites(prefix string, names []string) (remarks []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	r.suites = []uint16{}
	var unknown []string
	with13 := false
	for _, name := range names {
		name = strings.TrimSpace(name)
		switch s := suite(name); {
		case s == nil:
			unknown = append(unknown, name)
		case slices.Contains(s.SupportedVersions, tls.VersionTLS13):
			with13 = true
		default:
			r.suites = append(r.suites, s.ID)
		}
	}
	if len(unknown) > 0 {
		remarks = append(remarks, fmt.Sprintf("%sciphersuites: not known here and left out: %.500s", prefix, strings.Join(unknown, ", ")))
	}
	if !with13 {
		r.maxVersion = min(r.maxVersion, tls.VersionTLS12)
	}
	if len(r.suites) == 0 {
		r.minVersion = max(r.minVersion, tls.VersionTLS13)
	}
	if r.minVersion > r.maxVersion {
		return remarks, fmt.Errorf("%sciphersuites: none of them is left for the protocol versions that are allowed", prefix)
	}
	return remarks, nil
}

// suite returns a cipher suite by its name, nil if the library has none of that name.
func suite(name string) *tls.CipherSuite {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if s.Name == name {
			return s
		}
	}
	return nil
}
