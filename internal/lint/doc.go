// Package lint keeps the house rules of this module as tests: who may import whom, what a pure package must not do, how
// long a function or file may be, which calls are banned, and that the documents point at files that exist.
//
// Every rule is a function from sources to findings and is itself tested on small bad inputs; TestModule runs all of
// them on the module. A finding that is right in its place is allowed by a comment on its line or the line above:
//
//	//lint:allow pure the time is measured for the log only
//
// with the rule's name and a reason. Loops over maps have a form of their own, see checkMapOrder. Run the package with -count=1: the list of dependencies comes from the go command,
// which the test cache does not see.
package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modulePath is the path of this module.
const modulePath = "zabra"

// Finding is a breach of one rule.
type Finding struct {
	File string // relative to the module's root
	Line int    // from 1, 0 for the whole file
	Rule string
	Text string
}

// String renders the finding as file:line: rule: text.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Text) }

// source is one parsed Go file.
type source struct {
	file  string // relative to the module's root, with slashes
	pkg   string // the directory: the import path within the module; "" is the root
	test  bool
	lines int
	ast   *ast.File
	fset  *token.FileSet
	// allowed holds the lint:allow comments by line.
	allowed map[int]allowance
	// comments holds the text of the last comment that ends on a line.
	comments map[int]string
}

type allowance struct{ rule, reason string }

const allowPrefix = "//lint:allow "

// parseSource reads one file. name is relative to the module's root.
func parseSource(fset *token.FileSet, name string, text []byte) (*source, error) {
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	name = filepath.ToSlash(name)
	dir := ""
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir = name[:i]
	}
	s := &source{
		file: name, pkg: dir, test: strings.HasSuffix(name, "_test.go"), lines: strings.Count(string(text), "\n"),
		ast: f, fset: fset, allowed: map[int]allowance{}, comments: map[int]string{},
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			line := fset.Position(c.Pos()).Line
			s.comments[fset.Position(c.End()).Line] = c.Text
			if rest, ok := strings.CutPrefix(c.Text, allowPrefix); ok {
				rule, reason, _ := strings.Cut(rest, " ")
				s.allowed[line] = allowance{rule, strings.TrimSpace(reason)}
			}
		}
	}
	return s, nil
}

// finding makes a Finding at a position, or nothing if a comment allows it.
func (s *source) finding(pos token.Pos, rule, format string, args ...any) []Finding {
	line := s.fset.Position(pos).Line
	for _, at := range []int{line, line - 1} {
		if a := s.allowed[at]; a.rule == rule && a.reason != "" {
			return nil
		}
	}
	return []Finding{{s.file, line, rule, fmt.Sprintf(format, args...)}}
}

// load parses every Go file of the module at root. Folders that the go command skips are skipped.
func load(root string) ([]*source, error) {
	var sources []*source
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && (d.Name() == "testdata" || d.Name() == "vendor" || d.Name()[0] == '.' || d.Name()[0] == '_') {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root { // another module
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s, err := parseSource(fset, name, text)
		if err == nil {
			sources = append(sources, s)
		}
		return err
	})
	return sources, err
}

func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return findings
}
