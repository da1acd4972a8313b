package schema

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Allowance says whether something can be, must be, or cannot be.
type Allowance int

const (
	// Can is either way, and the zero value.
	Can Allowance = iota
	// Must is required.
	Must
	// Cannot is forbidden.
	Cannot
)

// String returns the word.
func (a Allowance) String() string {
	if a < Can || a > Cannot {
		return fmt.Sprintf("Allowance(%d)", int(a))
	}
	return [...]string{"can", "must", "cannot"}[a]
}

// breach returns the error if what is does not agree with the allowance.
func (a Allowance) breach(is bool, err error) error {
	if is && a == Cannot || !is && a == Must {
		return fmt.Errorf("%w: it %v be", err, a)
	}
	return nil
}

// Rule is what holds for the nodes of a pattern. What is not said is allowed.
type Rule struct {
	// Name tells the rule from others. It is required.
	Name string
	// Path is the path of a node below the client's namespace, or a pattern. In a pattern each element may have the signs of
	// path.Match, so "*" is any element and "task-*" one that begins so; "**" as the last element is one element or more.
	// The sequence number that the server appends is not yet part of the path when such a node is created, and is when it is
	// written later: "task-*" is both. The prefix of a protected node ("_c_<guid>-") does not count.
	Path string
	// Doc tells people what the nodes are for.
	Doc string
	// Data tells why data are not allowed. Without it all are. It is asked for each create and set.
	Data func(path string, data []byte) error
	// Ephemeral and Sequential are about creating, Watched is about reading: a node that must be watched cannot be read
	// without a watch.
	Ephemeral, Sequential, Watched Allowance
	// Keep forbids to delete the nodes.
	Keep bool
	// Metadata is anything else that somebody wants to know of the nodes. It is not looked at here.
	Metadata map[string]string
}

// exact tells that the path is no pattern.
func (r *Rule) exact() bool { return !strings.ContainsAny(r.Path, `*?[\`) }

// check tells why a rule cannot be one.
func (r *Rule) check() error {
	if r.Name == "" {
		return errors.New("it has no name")
	}
	if !strings.HasPrefix(r.Path, "/") || path.Clean(r.Path) != r.Path {
		return fmt.Errorf("the path %q has to be absolute, without empty elements, dots or a slash at the end", r.Path)
	}
	elements := split(r.Path)
	if i := slices.Index(elements, "**"); i >= 0 && i != len(elements)-1 {
		return fmt.Errorf("the pattern %q has ** before its last element", r.Path)
	}
	for _, e := range elements {
		if _, err := path.Match(e, ""); err != nil {
			return fmt.Errorf("the pattern %q: %w", r.Path, err)
		}
	}
	for _, a := range []Allowance{r.Ephemeral, r.Sequential, r.Watched} {
		if a < Can || a > Cannot {
			return fmt.Errorf("%v is no allowance", a)
		}
	}
	return nil
}

// matches tells whether the rule is for a path, given as its elements.
func (r *Rule) matches(elements []string) bool {
	pattern := split(r.Path)
	if last := len(pattern) - 1; last >= 0 && pattern[last] == "**" {
		if len(elements) <= last {
			return false
		}
		pattern, elements = pattern[:last], elements[:last]
	}
	return slices.EqualFunc(pattern, elements, func(p, e string) bool {
		ok, _ := path.Match(p, e) // which check has found to be well formed
		return ok
	})
}

func split(p string) []string {
	if p == "/" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(p, "/"), "/")
}

// create tells why a node cannot be created.
func (r *Rule) create(p string, data []byte, flags int32) error {
	ephemeral := flags == zk.FlagEphemeral || flags == zk.FlagEphemeralSequential
	sequential := flags == zk.FlagSequence || flags == zk.FlagEphemeralSequential || flags == zk.FlagPersistentSequentialWithTTL
	if err := r.Ephemeral.breach(ephemeral, ErrEphemeral); err != nil {
		return err
	}
	if err := r.Sequential.breach(sequential, ErrSequential); err != nil {
		return err
	}
	return r.set(p, data)
}

// set tells why data cannot be written.
func (r *Rule) set(p string, data []byte) error {
	if r.Data == nil {
		return nil
	}
	if err := r.Data(p, data); err != nil {
		return fmt.Errorf("%w: %w", ErrData, err)
	}
	return nil
}

func (r *Rule) read(watched bool) error { return r.Watched.breach(watched, ErrWatched) }

func (r *Rule) delete() error {
	if r.Keep {
		return ErrKept
	}
	return nil
}

// String documents the rule, a fact a line.
func (r *Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  path: %s\n", r.Name, r.Path)
	if r.Doc != "" {
		fmt.Fprintf(&b, "  doc: %s\n", r.Doc)
	}
	checked := ""
	if r.Data != nil {
		checked = ", data are checked"
	}
	fmt.Fprintf(&b, "  ephemeral: %v, sequential: %v, watched: %v, deleted: %v%s\n", r.Ephemeral, r.Sequential, r.Watched, deletable(r.Keep), checked)
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		fmt.Fprintf(&b, "  %s: %s\n", key, r.Metadata[key])
	}
	return b.String()
}

func deletable(keep bool) Allowance {
	if keep {
		return Cannot
	}
	return Can
}
