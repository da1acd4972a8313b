package conf

import (
	"fmt"
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

// Reload compares the configuration of a running server with a new one. changes may be taken while it runs: Take makes
// the configuration that has them. needRestart are those that count when the server is started the next time. Settings
// that have no effect in this version are in neither. Both lists are in the order of String.
func Reload(old, new *Config) (changes, needRestart []Change) {
	for _, k := range keys {
		from, _ := k.show(old)
		to, _ := k.show(new)
		if from == to || !new.inForce(k) && !old.inForce(k) {
			continue
		}
		c := Change{Key: k.name, From: from, To: to}
		if k.secret {
			c = Change{Key: k.name, From: hide(from), To: hide(to)}
		}
		if k.live {
			changes = append(changes, c)
		} else {
			needRestart = append(needRestart, c)
		}
	}
	return changes, append(needRestart, memberChanges(old, new)...)
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

// Take returns the configuration of the running server with what Reload allows to change taken from the new one. It
// changes neither of the two.
func Take(running, new *Config) *Config {
	changes, _ := Reload(running, new)
	taken := *running
	taken.sources = make(map[string]source, len(running.sources))
	for name, s := range running.sources {
		taken.sources[name] = s
	}
	for _, c := range changes {
		k, _ := lookup(c.Key)
		value, _ := k.show(new)
		if _, err := k.set(&taken, value); err != nil {
			panic("conf: a valid value of " + k.name + " cannot be set: " + err.Error())
		}
		delete(taken.sources, c.Key)
		if s, given := new.sources[c.Key]; given {
			taken.sources[c.Key] = s
		}
	}
	return &taken
}
