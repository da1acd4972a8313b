package conf

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

var (
	// toldElsewhere are keys without effect, of which remarks or check tell what there is to tell.
	toldElsewhere = names(`electionAlg peerType`)
	// ensembleOnly are those that a standalone server makes no use of.
	ensembleOnly = names(`initLimit syncLimit connectToLearnerMasterLimit cnxTimeout electionPortBindRetry quorumListenOnAllIPs
		commitLogCount snapshotSizeFactor sslQuorum portUnification quorum.auth.enableSasl quorum.auth.serverRequireSasl
		quorum.auth.learnerRequireSasl quorum.auth.server.saslLoginContext quorum.auth.learner.saslLoginContext`)
)

// inForce tells whether the key changes anything in a server with this configuration.
func (c *Config) inForce(k key) bool {
	return !k.idle && !toldElsewhere[k.name] && (c.Ensemble != nil || !ensembleOnly[k.name])
}

// String renders the effective configuration as a file that parses to the same configuration: first what was set, then
// the defaults, then what has no effect, each under a comment that says so. Keys without a value and keys without effect
// that were not given are comments. Secrets are left out.
func (c *Config) String() string {
	var set, unset, idle, missing strings.Builder
	usual := defaults()
	for _, k := range c.allKeys() {
		value, ok := k.show(c)
		usually, hasDefault := k.show(usual)
		_, given := c.sources[k.name]
		line := escapeKey(k.name) + "=" + escape(value) + "\n"
		switch {
		case k.secret && ok:
			fmt.Fprintf(&missing, "# %s is set, and not shown\n", k.name)
		case !ok && !hasDefault:
			fmt.Fprintf(&missing, "# %s is not set\n", k.name)
		case !c.inForce(k) && value == usually:
			idle.WriteString("# " + line)
		case !c.inForce(k):
			idle.WriteString(line)
		case given:
			set.WriteString(line)
		default:
			unset.WriteString(line)
		}
	}
	for _, name := range c.WithoutEffect {
		if _, ok := lookup(name); !ok {
			fmt.Fprintf(&idle, "# %s is given, its value makes no difference\n", escapeKey(name))
		}
	}
	for _, line := range c.memberLines() {
		if c.DynamicConfigFile != "" {
			line = "# " + line
		}
		set.WriteString(line + "\n")
	}
	return c.headed(set.String(), unset.String(), idle.String(), missing.String())
}

// headed puts the comments over the parts.
func (c *Config) headed(set, unset, idle, missing string) string {
	origin := c.Path
	switch {
	case c.Embedded:
		origin = "the built-in configuration or -D"
	case origin == "":
		origin = "the command line"
	}
	kind := "on a standalone server of"
	if c.Ensemble != nil {
		kind = "in"
	}
	return fmt.Sprintf("# set by %s\n%s\n# defaults\n%s\n# accepted, without effect %s this version\n%s\n# without a value\n%s",
		escape(origin), set, unset, kind, idle, missing)
}

// Value renders one setting, by the name of its key in the file; ok is false if it has none, or if it is a secret.
func (c *Config) Value(name string) (value string, ok bool) {
	k, known := lookup(name)
	if !known || k.secret {
		return "", false
	}
	return k.show(c)
}

// memberLines renders the server lines, and those of groups and weights, without the version.
func (c *Config) memberLines() (lines []string) {
	if c.Ensemble != nil {
		lines = strings.Split(c.Ensemble.Text(), "\n")
		lines = lines[:len(lines)-1]
	} else {
		for _, m := range c.Servers {
			lines = append(lines, fmt.Sprintf("%s=%s", memberKey(m.ID), m.Text()))
		}
	}
	for i, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		lines[i] = key + "=" + escape(value)
	}
	return lines
}

// escapeKey writes a key so that scan reads it back.
func escapeKey(s string) string { return keyEscapes.Replace(escape(s)) }

var keyEscapes = strings.NewReplacer(" ", `\ `, "=", `\=`, ":", `\:`)

// escape writes a value so that scan reads it back.
func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == ' ' && i == 0:
			b.WriteString(`\ `)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < ' ' || r > '~' && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
