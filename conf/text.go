package conf

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

var (
	// withoutEffect are the keys with a field that this version makes no use of.
	withoutEffect = names(`admin.enableServer admin.serverAddress admin.serverPort admin.commandURL admin.idleTimeout
		flushDelay maxBatchSize electionAlg peerType`)
	// ensembleOnly are those that a standalone server makes no use of.
	ensembleOnly = names(`initLimit syncLimit connectToLearnerMasterLimit cnxTimeout electionPortBindRetry quorumListenOnAllIPs
		commitLogCount snapshotSizeFactor`)
)

// String renders the effective configuration as a file that parses to the same configuration: first what was set, then
// the defaults, then what has no effect, each under a comment that says so. Keys without a value are comments. The one
// secret, superDigest, is left out.
func (c *Config) String() string {
	var set, unset, idle, missing strings.Builder
	for _, k := range keys {
		value, ok := k.show(c)
		_, given := c.sources[k.name]
		switch {
		case k.name == superDigestKey && ok:
			fmt.Fprintf(&missing, "# %s is set, and not shown\n", k.name)
		case !ok:
			fmt.Fprintf(&missing, "# %s is not set\n", k.name)
		case withoutEffect[k.name], ensembleOnly[k.name] && c.Ensemble == nil:
			fmt.Fprintf(&idle, "%s=%s\n", k.name, escape(value))
		case given:
			fmt.Fprintf(&set, "%s=%s\n", k.name, escape(value))
		default:
			fmt.Fprintf(&unset, "%s=%s\n", k.name, escape(value))
		}
	}
	for _, line := range c.memberLines() {
		if c.DynamicConfigFile != "" {
			line = "# " + line
		}
		set.WriteString(line + "\n")
	}
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
		escape(origin), set.String(), unset.String(), kind, idle.String(), missing.String())
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
