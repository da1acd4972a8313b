package lint

import (
	"go/ast"
	"path"
	"strconv"
	"strings"
)

// checkCalls finds calls that have a better replacement here.
func checkCalls(s *source) (findings []Finding) {
	names := importNames(s.ast)
	// An example prints, and reads like a program.
	example := s.test && path.Base(s.file) == "example_test.go"
	for _, spec := range s.ast.Imports {
		if name, _ := strconv.Unquote(spec.Path.Value); (name == "log" || name == "log/slog") && !example {
			findings = append(findings, s.finding(spec.Pos(), "log", "return an error, or take a *zap.Logger")...)
		}
	}
	// Examples print what is compared with their Output.
	program := strings.HasPrefix(s.pkg, "cmd/") || s.ast.Name.Name == "main" || example || strings.HasSuffix(s.file, "example_test.go")
	polls := map[ast.Node]bool{}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if loop, ok := n.(*ast.ForStmt); ok && loop.Cond != nil {
			if post, ok := loop.Post.(*ast.ExprStmt); ok {
				polls[post.X] = true // for ...; !condition(); time.Sleep(step): this is how one waits for a condition
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if id, ok := call.Fun.(*ast.Ident); ok && id.Obj == nil && (id.Name == "print" || id.Name == "println") { //nolint:staticcheck // as in selected
			findings = append(findings, s.finding(call.Pos(), "print", "the builtin %s writes to stderr behind everybody's back", id.Name)...)
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch pkg, name := selected(names, fun); {
		case pkg == "fmt" && strings.HasPrefix(name, "Print") && !program:
			findings = append(findings, s.finding(call.Pos(), "print", "fmt.%s belongs to commands; libraries return, tests log", name)...)
		case pkg == "os" && name == "Exit" && !program && !s.test:
			findings = append(findings, s.finding(call.Pos(), "exit", "only a command may end the process")...)
		case pkg == "time" && name == "Sleep" && s.test && !polls[call] && !s.explained(call):
			findings = append(findings, s.finding(call.Pos(), "sleep", "wait for a condition, or say in a comment why time has to pass")...)
		case s.test && isTestHandle(fun.X) && strings.HasPrefix(fun.Sel.Name, "Skip") && !skipReason(fun.Sel.Name, call):
			findings = append(findings, s.finding(call.Pos(), "skip", "a skipped test has to give its reason")...)
		}
		return true
	})
	return findings
}

// explained tells whether a comment stands on the line of the call or on one of the three above, where the statement
// around it may begin.
func (s *source) explained(call *ast.CallExpr) bool {
	line := s.fset.Position(call.Pos()).Line
	for at := line; at >= line-3; at-- {
		if s.comments[at] != "" {
			return true
		}
	}
	return false
}

func isTestHandle(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && (id.Name == "t" || id.Name == "b" || id.Name == "f" || id.Name == "tb")
}

// skipReason tells whether the call says why, in a literal of at least a few letters.
func skipReason(name string, call *ast.CallExpr) bool {
	if name == "Skipped" {
		return true // a question, not an act
	}
	if name == "SkipNow" || len(call.Args) == 0 {
		return false
	}
	text, ok := call.Args[0].(*ast.BasicLit)
	return ok && len(text.Value) > len(`"short"`)
}
