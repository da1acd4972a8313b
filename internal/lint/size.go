package lint

import (
	"bufio"
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

const (
	// functionLinesMax is the length of a function that still can be read as one thought. Tests are exempt: a table of
	// cases is data.
	functionLinesMax = 70
	// fileLinesMax is for every Go file, tests included.
	fileLinesMax = 800
)

// checkFileLength reports files that are too long.
func checkFileLength(s *source) []Finding {
	if s.lines <= fileLinesMax {
		return nil
	}
	return []Finding{{s.file, 0, "file", fmt.Sprintf("%d lines, at most %d", s.lines, fileLinesMax)}}
}

// longFunctions returns the functions of more than functionLinesMax lines, by package and name.
func longFunctions(sources []*source) map[string]Finding {
	long := map[string]Finding{}
	for _, s := range sources {
		if s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			start, end := s.fset.Position(f.Pos()).Line, s.fset.Position(f.End()).Line
			if n := end - start + 1; n > functionLinesMax {
				name := s.pkg + "." + receiver(f) + f.Name.Name
				long[name] = Finding{s.file, start, "function", strconv.Itoa(n)}
			}
		}
	}
	return long
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return "?."
}

// checkFunctions compares the long functions with the list of exceptions, one "package.Type.Func lines" a line. The list
// is a ratchet: an entry may not grow, and one that has become shorter or is gone has to be lowered or removed.
func checkFunctions(sources []*source, exceptions string) (findings []Finding) {
	long := longFunctions(sources)
	listed := map[string]bool{}
	const list = "internal/lint/long-functions.txt"
	scanner := bufio.NewScanner(strings.NewReader(exceptions))
	for line := 1; scanner.Scan(); line++ {
		fields := strings.Fields(scanner.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		name, bound := fields[0], 0
		if len(fields) > 1 {
			bound, _ = strconv.Atoi(fields[1])
		}
		if listed[name] || bound <= functionLinesMax {
			findings = append(findings, Finding{list, line, "function", "malformed or repeated entry " + name})
		}
		listed[name] = true
		f, exists := long[name]
		n, _ := strconv.Atoi(f.Text)
		switch {
		case !exists:
			findings = append(findings, Finding{list, line, "function", name + " is short enough or gone: remove the entry"})
		case n > bound:
			findings = append(findings, Finding{f.File, f.Line, "function", fmt.Sprintf("%s has grown from %d to %d lines", name, bound, n)})
		case n < bound:
			findings = append(findings, Finding{list, line, "function", fmt.Sprintf("%s is down to %d lines: lower the entry", name, n)})
		}
	}
	names := make([]string, 0, len(long))
	for name := range long {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if f := long[name]; !listed[name] {
			findings = append(findings, Finding{f.File, f.Line, "function", fmt.Sprintf("%s has %s lines, at most %d", name, f.Text, functionLinesMax)})
		}
	}
	return findings
}
