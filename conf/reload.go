package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one setting that differs between two configurations.
type Change struct {
	// Key is the name of the key in the file, server.N for a server line.
	Key string
	// From and To are the values as check-conf prints them, "" for none. Secrets are not shown.
	From, To string
}

// String renders the change for a line in the log.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s -> %s", c.Key, orNothing(c.From), orNothing(c.To))
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return shown(value)
}

// notShown stands for a secret in a Change.
const notShown = "(not shown)"

// Reload compares the configuration of a running server with a new one. changes are taken while it runs: Take makes the
// configuration that has them. needRestart are those that count when the server is started the next time. Settings that
// have no effect in this version are in neither. Both lists are in the order of String.
func Reload(old, new *Config) (changes, needRestart []Change) {
	for _, k := range keysOfBoth(old, new) {
		from, _ := k.show(old)
		to, _ := k.show(new)
		if from == to || !new.inForce(k) && !old.inForce(k) {
			continue
		}
		c := Change{Key: k.name, From: from, To: to}
		if k.secret {
			c = Change{Key: k.name, From: hide(from), To: hide(to)}
		}
		if k.take != nil {
			changes = append(changes, c)
		} else {
			needRestart = append(needRestart, c)
		}
	}
	return append(changes, userChanges(old, new)...), append(needRestart, memberChanges(old, new)...)
}

func hide(secret string) string {
	if secret == "" {
		return ""
	}
	return notShown
}

// memberChanges compares the server lines, and those of groups and weights.
func memberChanges(old, new *Config) (list []Change) {
	before, after := membersByKey(old), membersByKey(new)
	names := append(sortedKeys(before), sortedKeys(after)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if before[name] != after[name] {
			list = append(list, Change{Key: name, From: before[name], To: after[name]})
		}
	}
	if old.MyID != new.MyID {
		list = append(list, Change{Key: "myid", From: fmt.Sprint(old.MyID), To: fmt.Sprint(new.MyID)})
	}
	return list
}

func membersByKey(c *Config) map[string]string {
	m := map[string]string{}
	for _, line := range c.memberLines() {
		key, value, _ := strings.Cut(line, "=")
		m[key] = value
	}
	return m
}

// Take returns the configuration of the running server with every setting that can change while it runs taken from the
// new one. It changes neither of the two.
func Take(running, new *Config) *Config {
	taken := *running
	taken.sources = map[string]source{}
	maps.Copy(taken.sources, running.sources)
	for _, k := range keys {
		if k.take == nil {
			continue
		}
		k.take(&taken, new)
		delete(taken.sources, k.name)
		if s, given := new.sources[k.name]; given {
			taken.sources[k.name] = s
		}
	}
	return &taken
}
