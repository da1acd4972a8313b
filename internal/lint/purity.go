package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// isPure tells whether a package must depend on its inputs alone: no goroutine, clock, file, socket or global
// randomness, and no result that hangs on the order of a map. The simulator repeats runs from a seed.
func isPure(pkg string) bool {
	switch pkg {
	case "zab", "znode", "session", "server/replica", "internal/sasl":
		return true
	}
	return strings.HasPrefix(pkg, "zab/") && pkg != "zab/zabtest"
}

// mustRepeat tells whether no result of a package may hang on the order of a map: the pure ones, and those that make a
// world out of a seed.
func mustRepeat(pkg string) bool { return isPure(pkg) || pkg == "internal/sim" || pkg == "zab/zabtest" }

// impureImports lead out of the process or to the machine.
var impureImports = []string{"os", "os/exec", "os/signal", "net", "net/http", "syscall", "io/ioutil", "crypto/rand", "golang.org/x/sys/unix", "runtime/debug", "log", "log/slog"}

// clockFunctions of package time read or await the clock.
var clockFunctions = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// seedlessFunctions of math/rand draw nothing from the global generator.
var seedlessFunctions = []string{"New", "NewSource", "NewZipf", "NewPCG", "NewChaCha8"}

// checkPurity looks at the syntax of a pure package's code. Its tests may do what they like.
func checkPurity(s *source) (findings []Finding) {
	if !isPure(s.pkg) || s.test {
		return nil
	}
	for _, spec := range s.ast.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); slices.Contains(impureImports, path) {
			findings = append(findings, s.finding(spec.Pos(), "pure", "a pure package must not import %s", path)...)
		}
	}
	names := importNames(s.ast)
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			findings = append(findings, s.finding(n.Pos(), "pure", "a pure package must not start goroutines")...)
		case *ast.SelectStmt:
			if isSignal(n) {
				return true
			}
			findings = append(findings, s.finding(n.Pos(), "pure", "a pure package must not select")...)
		case *ast.SelectorExpr:
			switch pkg, name := selected(names, n); {
			case pkg == "time" && slices.Contains(clockFunctions, name):
				findings = append(findings, s.finding(n.Pos(), "pure", "a pure package must not call time.%s: time is an input", name)...)
			case (pkg == "math/rand" || pkg == "math/rand/v2") && ast.IsExported(name) && isRandFunction(name):
				findings = append(findings, s.finding(n.Pos(), "pure", "a pure package must not use the global generator (rand.%s)", name)...)
			}
		}
		return true
	})
	return findings
}

// isSignal tells a send that does not wait: one send and a default. It wakes somebody up and leaves nothing to chance.
func isSignal(n *ast.SelectStmt) bool {
	sends, defaults := 0, 0
	for _, clause := range n.Body.List {
		switch clause.(*ast.CommClause).Comm.(type) {
		case nil:
			defaults++
		case *ast.SendStmt:
			sends++
		}
	}
	return len(n.Body.List) == 2 && sends == 1 && defaults == 1
}

// isRandFunction tells functions that draw from types and constructors.
func isRandFunction(name string) bool {
	switch name {
	case "Rand", "Source", "Source64", "Zipf", "PCG", "ChaCha8":
		return false
	}
	return !slices.Contains(seedlessFunctions, name)
}

// importNames maps the names by which a file knows its imports to their paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if path == "math/rand/v2" {
			name = "rand"
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}

// selected resolves pkg.Name to the import path and the name; "" if it is something else.
func selected(names map[string]string, n *ast.SelectorExpr) (pkg, name string) {
	id, ok := n.X.(*ast.Ident)
	if !ok || id.Obj != nil { //nolint:staticcheck // a local variable that hides the package; no types are needed to see that
		return "", ""
	}
	return names[id.Name], n.Sel.Name
}

// checkMapOrder finds loops over maps in the code of one package that mustRepeat. The order of such a loop differs from run
// to run, so it must not show in any result. A loop that does nothing but collect what the same function sorts afterwards
// is fine; of any other, a comment on its line or the line above says why the order does not matter:
//
//	for _, n := range counts { // order: a sum is the same in any
func checkMapOrder(sources []*source, imp types.Importer) (findings []Finding, err error) {
	var files []*ast.File
	var fset *token.FileSet
	for _, s := range sources {
		files = append(files, s.ast)
		fset = s.fset
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: imp}
	if _, err := config.Check(sources[0].pkg, fset, files, info); err != nil {
		return nil, err
	}
	const text = "nothing in this package must depend on the order of a map"
	for _, s := range sources {
		sorts := sortedNames(s)
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.RangeStmt:
				if t := info.Types[n.X].Type; t != nil && isMap(t) && !s.orderExplained(n) && !sorts.after(n.End(), collected(n)) {
					findings = append(findings, s.finding(n.Pos(), "maporder", text)...)
				}
			case *ast.CallExpr:
				if ranges(s, n) && !s.orderExplained(n) {
					findings = append(findings, s.finding(n.Pos(), "maporder", text)...)
				}
			}
			return true
		})
	}
	return findings, nil
}

// orderExplained tells whether a comment says why the order does not matter.
func (s *source) orderExplained(n ast.Node) bool {
	line := s.fset.Position(n.Pos()).Line
	for _, at := range []int{line, line - 1} {
		if reason, ok := strings.CutPrefix(s.comments[at], "// order: "); ok && len(strings.Fields(reason)) > 1 {
			return true
		}
	}
	return false
}

// collected returns the variable to which a loop appends, if it does nothing else.
func collected(loop *ast.RangeStmt) *ast.Object { //nolint:staticcheck // resolved by the parser, within one function
	body := loop.Body.List
	for len(body) == 1 {
		switch stmt := body[0].(type) {
		case *ast.IfStmt:
			if stmt.Else != nil {
				return nil
			}
			body = stmt.Body.List
			continue
		case *ast.AssignStmt:
			if len(stmt.Lhs) != 1 || len(stmt.Rhs) != 1 {
				return nil
			}
			to, ok := stmt.Lhs[0].(*ast.Ident)
			call, isCall := stmt.Rhs[0].(*ast.CallExpr)
			if !ok || !isCall {
				return nil
			}
			if fun, ok := call.Fun.(*ast.Ident); ok && fun.Name == "append" {
				return to.Obj
			}
		}
		return nil
	}
	return nil
}

// sortings are the variables that are sorted, and where.
type sortings map[*ast.Object][]token.Pos //nolint:staticcheck // as in collected

// after tells whether the variable is sorted behind a position.
func (s sortings) after(pos token.Pos, variable *ast.Object) bool { //nolint:staticcheck // as in collected
	return variable != nil && slices.ContainsFunc(s[variable], func(p token.Pos) bool { return p > pos })
}

// sortedNames finds the calls slices.Sort(x), slices.SortFunc(x, ...) and the like.
func sortedNames(s *source) sortings {
	list := sortings{}
	names := importNames(s.ast)
	ast.Inspect(s.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		arg, isName := call.Args[0].(*ast.Ident)
		if !ok || !isName || arg.Obj == nil {
			return true
		}
		if pkg, name := selected(names, fun); pkg == "slices" && strings.HasPrefix(name, "Sort") {
			list[arg.Obj] = append(list[arg.Obj], call.Pos())
		}
		return true
	})
	return list
}

func isMap(t types.Type) bool {
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// ranges tells calls of package maps that visit a map, unless slices.Sorted or a like stands around them on the line.
func ranges(s *source, call *ast.CallExpr) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, name := selected(importNames(s.ast), fun)
	return pkg == "maps" && (name == "Keys" || name == "Values" || name == "All") && !insideSorted(s, call)
}

func insideSorted(s *source, inner *ast.CallExpr) bool {
	found := false
	names := importNames(s.ast)
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 && call.Args[0] == ast.Expr(inner) {
			if fun, ok := call.Fun.(*ast.SelectorExpr); ok {
				pkg, name := selected(names, fun)
				found = found || pkg == "slices" && strings.HasPrefix(name, "Sorted")
			}
		}
		return !found
	})
	return found
}
