package lint

import (
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// moduleRoot is the folder of go.mod, seen from this package.
const moduleRoot = "../.."

// TestModule applies every rule to the module.
func TestModule(t *testing.T) {
	sources, err := load(moduleRoot)
	require.NoError(t, err)
	require.NotEmpty(t, sources)

	var findings []Finding
	for _, s := range sources {
		findings = append(findings, checkImports(s)...)
		findings = append(findings, checkPurity(s)...)
		findings = append(findings, checkCalls(s)...)
		findings = append(findings, checkFileLength(s)...)
	}
	exceptions, err := os.ReadFile("long-functions.txt")
	require.NoError(t, err)
	findings = append(findings, checkFunctions(sources, string(exceptions))...)

	for _, f := range sorted(findings) {
		t.Error(f)
	}
}

// TestMapOrder needs types, hence the go command, which compiles what is imported.
func TestMapOrder(t *testing.T) {
	sources, err := load(moduleRoot)
	require.NoError(t, err)
	packages := map[string][]*source{}
	for _, s := range sources {
		if mustRepeat(s.pkg) && !s.test {
			packages[s.pkg] = append(packages[s.pkg], s)
		}
	}
	for _, pkg := range []string{"zab", "zab/zabtest", "internal/sim"} {
		require.Contains(t, packages, pkg)
	}
	var paths []string
	for pkg := range packages {
		paths = append(paths, modulePath+"/"+pkg)
	}
	imp := exportImporter(t, paths)
	for pkg, files := range packages {
		findings, err := checkMapOrder(files, imp)
		require.NoError(t, err, pkg)
		for _, f := range sorted(findings) {
			t.Error(f)
		}
	}
}

// exportImporter reads the export data of everything that the packages import.
func exportImporter(t *testing.T, paths []string) types.Importer {
	t.Helper()
	exports := map[string]string{}
	out := goList(t, append([]string{"-export", "-deps", "-json=ImportPath,Export"}, paths...)...)
	for dec := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		exports[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = moduleRoot
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

// TestReachable keeps test code out of the binary.
func TestReachable(t *testing.T) {
	require.Empty(t, checkReachable(strings.Fields(goList(t, "-deps", "./cmd/..."))))
}

// TestLinks follows the links of all documents.
func TestLinks(t *testing.T) {
	err := filepath.WalkDir(moduleRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != moduleRoot && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(moduleRoot, path)
		for _, f := range checkLinks(moduleRoot, name, string(text)) {
			t.Error(f)
		}
		return err
	})
	require.NoError(t, err)
}

// TestImportTableHasNoCycle: the table itself must point in one direction.
func TestImportTableHasNoCycle(t *testing.T) {
	var visit func(pkg string, path []string)
	visit = func(pkg string, path []string) {
		require.NotContains(t, path, pkg)
		own, known := table[pkg]
		require.True(t, known, "%s stands in the table but has no row", pkg)
		for _, next := range strings.Fields(own.code) {
			visit(next, append(slices.Clone(path), pkg))
		}
	}
	for pkg := range table {
		visit(pkg, nil)
	}
}
