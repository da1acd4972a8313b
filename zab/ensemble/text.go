package ensemble

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"zabra/zab/zxid"
)

// Line is one line of a configuration: the key, such as server.1, and the value.
type Line struct{ Key, Value string }

// LineError says which line is wrong.
type LineError struct {
	Key string
	Err error
}

// Error names the line and what is wrong.
func (e *LineError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *LineError) Unwrap() error { return e.Err }

// Belongs reports whether a key is one of a membership: server.N, or one that begins with group or weight.
func Belongs(key string) bool {
	return strings.HasPrefix(key, "server.") || strings.HasPrefix(key, "group") || strings.HasPrefix(key, "weight")
}

// FromLines makes a configuration of lines for which Belongs is true, no key twice. Any line of a group or weight makes
// it hierarchical. The error is a *LineError where one line is to blame.
func FromLines(lines []Line, version int64) (*Config, error) {
	var members []Member
	var groups []Group
	var weights []Weight
	hierarchical := false
	for _, l := range lines {
		var err error
		switch {
		case strings.HasPrefix(l.Key, "server."):
			members, err = addMember(members, l)
		case strings.HasPrefix(l.Key, "group"):
			hierarchical = true
			groups, err = addGroup(groups, l)
		case strings.HasPrefix(l.Key, "weight"):
			hierarchical = true
			weights, err = addWeight(weights, l)
		default:
			err = fmt.Errorf("Unrecognised parameter: %s", shown(l.Key))
		}
		if err != nil {
			return nil, &LineError{shown(l.Key), err}
		}
	}
	if !hierarchical {
		return New(members, version)
	}
	return NewHierarchical(members, version, groups, weights)
}

func addMember(members []Member, l Line) ([]Member, error) {
	id, err := parseID(strings.TrimPrefix(l.Key, "server."))
	if err != nil {
		return members, err
	}
	m, err := ParseMember(zxid.ServerID(id), l.Value)
	return append(members, m), err
}

func addGroup(groups []Group, l Line) ([]Group, error) {
	id, err := parseID(secondPart(l.Key))
	if err != nil {
		return groups, err
	}
	g := Group{ID: id}
	for part := range strings.SplitSeq(l.Value, ":") {
		server, err := parseID(trim(part))
		if err != nil {
			return groups, err
		}
		g.Servers = append(g.Servers, zxid.ServerID(server))
	}
	return append(groups, g), nil
}

func addWeight(weights []Weight, l Line) ([]Weight, error) {
	id, err := parseID(secondPart(l.Key))
	if err != nil {
		return weights, err
	}
	w, err := parseID(trim(l.Value))
	return append(weights, Weight{zxid.ServerID(id), w}), err
}

// secondPart is what stands between the first and the second dot of a key.
func secondPart(key string) string {
	parts := strings.SplitN(key, ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// parseID is Java's Long.parseLong, with the words of its exception.
func parseID(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("For input string: %q", shown(text))
	}
	return n, nil
}

// Text renders the configuration as servers hand it to each other and as it stands in /zookeeper/config: the server
// lines by id, the lines of groups and weights if there are any, each with a newline, and version=<hex> without one.
func (c *Config) Text() string {
	var b strings.Builder
	for _, m := range c.members {
		fmt.Fprintf(&b, "server.%d=%s\n", m.ID, m.Text())
	}
	if h, ok := c.quorums.(*hierarchy); ok {
		h.text(&b)
	}
	fmt.Fprintf(&b, "version=%x", uint64(c.version))
	return b.String()
}

func (h *hierarchy) text(b *strings.Builder) {
	for _, g := range h.groups {
		ids := make([]string, len(g.Servers))
		for i, id := range g.Servers {
			ids[i] = strconv.FormatInt(int64(id), 10)
		}
		fmt.Fprintf(b, "group.%d=%s\n", g.ID, strings.Join(ids, ":"))
	}
	for _, w := range h.weights {
		fmt.Fprintf(b, "weight.%d=%d\n", w.Server, w.Weight)
	}
}

// Parse reads what Text writes. The lines may come in any order, blanks around keys and values do not matter; a key that
// is not known or comes twice is an error, and so is a text of more than a mebibyte. Without a version line it is 0.
func Parse(text string) (*Config, error) {
	if len(text) > textBytesMax {
		return nil, fmt.Errorf("ensemble: a configuration of %d bytes is longer than %d", len(text), textBytesMax)
	}
	var lines []Line
	var keys []string
	version := int64(0)
	for line := range strings.SplitSeq(text, "\n") {
		line = trim(line)
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("ensemble: line %q has no value", shown(line))
		}
		l := Line{trim(key), trim(value)}
		keys = append(keys, l.Key)
		if l.Key != "version" {
			lines = append(lines, l)
			continue
		}
		n, err := strconv.ParseInt(l.Value, 16, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("ensemble: version %q is not a hexadecimal number from 0", shown(l.Value))
		}
		version = n
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i-1] == keys[i] {
			return nil, fmt.Errorf("ensemble: %s comes twice", shown(keys[i]))
		}
	}
	return FromLines(lines, version)
}
