package conf

import (
	"strings"
	"unicode/utf8"
)

// withoutSecrets is the text of a configuration file for others to read: the values of what may be a secret are left out,
// and comments that speak of one.
func withoutSecrets(text []byte) string {
	names := map[int]string{}
	entries, _ := scan(text)
	for _, e := range entries {
		names[e.line] = trim(e.key)
	}
	if !utf8.Valid(text) {
		text = []byte(latin1(text))
	}
	var b strings.Builder
	hidden := false // the line before is a secret that may go on
	for i, line := range strings.Split(lineBreaks.Replace(string(text)), "\n") {
		name, isEntry := names[i+1]
		if i > 0 && !(hidden && !isEntry) {
			b.WriteByte('\n')
		}
		switch {
		case hidden && !isEntry:
			hidden = strings.HasSuffix(line, `\`)
			continue
		case isEntry && mayBeSecret(name):
			b.WriteString(escapeKey(name) + "=" + notShown)
			hidden = strings.HasSuffix(line, `\`)
			continue
		case !isEntry && mayBeSecret(line):
			b.WriteString("# " + notShown)
		default:
			b.WriteString(line)
		}
		hidden = false
	}
	return b.String()
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// mayBeSecret goes by the words in a name.
func mayBeSecret(name string) bool {
	if k, ok := lookup(name); ok && k.secret {
		return true
	}
	name = strings.ToLower(name)
	for _, word := range []string{"password", "passwd", "secret", "superdigest", "token"} {
		if strings.Contains(name, word) && !strings.HasPrefix(name, "connection_throttle_") {
			return true
		}
	}
	return false
}

// Properties are the system properties that a ZooKeeper server would have of this configuration, by their full names: what
// was given of the keys that it reads as such. Secrets are not shown.
func (c *Config) Properties() map[string]string {
	all := map[string]string{}
	for _, k := range c.allKeys() {
		value, ok := k.show(c)
		if _, given := c.sources[k.name]; !given || !ok || k.reach == direct {
			continue
		}
		if k.secret {
			value = notShown
		}
		if k.reach == bare {
			all[k.name] = value
		} else {
			all["zookeeper."+k.name] = value
		}
	}
	return all
}
