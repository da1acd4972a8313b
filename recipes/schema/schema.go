package schema

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	// ErrNoRule is a path that no rule of a strict schema is for.
	ErrNoRule = errors.New("schema: no rule is for this path")
	// ErrData is data that a rule's check does not allow.
	ErrData = errors.New("schema: the data are not allowed")
	// ErrEphemeral is a node that is ephemeral and cannot be, or is not and must be; ErrSequential and ErrWatched
	// are the same for nodes with a sequence number and for reads with a watch.
	ErrEphemeral  = errors.New("schema: an ephemeral node")
	ErrSequential = errors.New("schema: a sequential node")
	ErrWatched    = errors.New("schema: a read with a watch")
	// ErrKept is a node that cannot be deleted.
	ErrKept = errors.New("schema: the node cannot be deleted")
)

// Violation is a request that a schema forbids. errors.Is finds which of the errors of this package it is, and what the
// check of the data has said.
type Violation struct {
	Rule string // its name, "" if there is none for the path
	Op   string // what was tried: create, set, delete or read
	Path string
	Err  error
}

// Error tells what was tried and which rule forbids it.
func (v *Violation) Error() string {
	if v.Rule == "" {
		return fmt.Sprintf("%s %s: %v", v.Op, v.Path, v.Err)
	}
	return fmt.Sprintf("%s %s: rule %q: %v", v.Op, v.Path, v.Rule, v.Err)
}

// Unwrap returns the reason.
func (v *Violation) Unwrap() error { return v.Err }

// Schema is a set of rules. It does not change.
type Schema struct {
	rules  []*Rule
	exact  map[string]*Rule
	strict bool
}

// New makes a schema. A rule for exactly one path goes before patterns, and of the patterns the first counts that is for
// the path. If strict is true, a path without a rule is a violation; otherwise everything is allowed there.
func New(strict bool, rules ...Rule) (*Schema, error) {
	s := &Schema{exact: map[string]*Rule{}, strict: strict}
	names := map[string]bool{}
	for _, r := range rules {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("schema: rule %q: %w", r.Name, err)
		}
		if names[r.Name] {
			return nil, fmt.Errorf("schema: there are two rules %q", r.Name)
		}
		if s.exact[r.Path] != nil {
			return nil, fmt.Errorf("schema: the rules %q and %q are for the same path", s.exact[r.Path].Name, r.Name)
		}
		names[r.Name] = true
		s.rules = append(s.rules, &r)
		if r.exact() {
			s.exact[r.Path] = &r
		}
	}
	return s, nil
}

// Rule returns the rule for a path.
func (s *Schema) Rule(p string) (Rule, bool) {
	r := s.find(p)
	if r == nil {
		return Rule{}, false
	}
	return *r, true
}

// protected is what CreateProtected puts before the last element of a path.
var protected = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`)

func (s *Schema) find(p string) *Rule {
	dir, name := path.Split(p)
	p = dir + protected.ReplaceAllString(name, "")
	if r := s.exact[p]; r != nil {
		return r
	}
	elements := split(p)
	for _, r := range s.rules {
		if !r.exact() && r.matches(elements) {
			return r
		}
	}
	return nil
}

// check asks the rule for a path, and returns a Violation or nothing.
func (s *Schema) check(op, p string, allowed func(*Rule) error) error {
	r := s.find(p)
	if r == nil {
		if s.strict {
			return &Violation{Op: op, Path: p, Err: ErrNoRule}
		}
		return nil
	}
	if err := allowed(r); err != nil {
		return &Violation{Rule: r.Name, Op: op, Path: p, Err: err}
	}
	return nil
}

// CheckCreate tells whether a node with these data and flags (those of package zk) may be created. It returns a Violation or
// nothing, as the other checks do. The client of Wrap makes these checks by itself.
func (s *Schema) CheckCreate(path string, data []byte, flags int32) error {
	return s.check("create", path, func(r *Rule) error { return r.create(path, data, flags) })
}

// CheckSet tells whether data may be written.
func (s *Schema) CheckSet(path string, data []byte) error {
	return s.check("set", path, func(r *Rule) error { return r.set(path, data) })
}

// CheckDelete tells whether a node may be deleted.
func (s *Schema) CheckDelete(path string) error {
	return s.check("delete", path, func(r *Rule) error { return r.delete() })
}

// CheckRead tells whether a node may be read, with a watch or without one.
func (s *Schema) CheckRead(path string, watched bool) error {
	return s.check("read", path, func(r *Rule) error { return r.read(watched) })
}

// String documents all rules, in the order in which they were given.
func (s *Schema) String() string {
	var b strings.Builder
	for i, r := range s.rules {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(r.String())
	}
	return b.String()
}
