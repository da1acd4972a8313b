package lint

import (
	"fmt"
	"go/importer"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parsed makes a source of a file at the given path.
func parsed(t *testing.T, name, text string) *source {
	t.Helper()
	s, err := parseSource(token.NewFileSet(), name, []byte(text))
	require.NoError(t, err)
	return s
}

// at renders findings as "line rule".
func at(findings []Finding) []string {
	list := []string{}
	for _, f := range findings {
		list = append(list, fmt.Sprintf("%d %s", f.Line, f.Rule))
	}
	return list
}

func TestImportRule(t *testing.T) {
	tests := []struct {
		name, file, path string
		bad              bool
	}{
		{"down", "wire/a.go", "zabra/jute", false},
		{"up", "jute/a.go", "zabra/wire", true},
		{"tree knows no storage", "znode/a.go", "zabra/internal/storage", true},
		{"standard library", "jute/a.go", "encoding/binary", false},
		{"own package from a test", "jute/a_test.go", "zabra/jute", false},
		{"own package from code", "jute/a.go", "zabra/jute", true},
		{"helper in a test", "server/client/a_test.go", "zabra/server/servertest", false},
		{"helper in code", "server/client/a.go", "zabra/server/servertest", true},
		{"no place yet", "newpkg/a.go", "fmt", true},
		{"integration has none of ours", "integration/interop/a_test.go", "zabra/wire", true},
		{"integration may use recipes", "integration/a_test.go", "zabra/recipes", false},
		{"msgpack in its place", "wire/peer/a.go", "github.com/hashicorp/go-msgpack/v2/codec", false},
		{"msgpack elsewhere", "wire/a.go", "github.com/hashicorp/go-msgpack/v2/codec", true},
		{"msgpack in a test elsewhere", "wire/a_test.go", "github.com/hashicorp/go-msgpack/v2/codec", true},
		{"zap in a library", "znode/a.go", "go.uber.org/zap", true},
		{"zap in the server", "server/a.go", "go.uber.org/zap/zapcore", false},
		{"testify in a test", "jute/a_test.go", "github.com/stretchr/testify/require", false},
		{"testify in code", "jute/a.go", "github.com/stretchr/testify/require", true},
		{"unknown module", "server/a.go", "example.com/left/pad", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := parsed(t, tt.file, "package p\n\nimport _ \""+tt.path+"\"\n")
			require.Equal(t, tt.bad, len(checkImports(s)) > 0, "%v", checkImports(s))
		})
	}
}

func TestPurityRule(t *testing.T) {
	text := `package p

import (
	"math/rand"
	"net"
	"net/netip"
	"time"
)

var _ = time.Millisecond
var _ netip.Addr
var _ net.Addr
var _ = rand.New(rand.NewSource(1))

func f(c chan int, r *rand.Rand) {
	go f(c, r)
	select {
	case <-c:
	}
	_ = time.Now()
	time.Sleep(1)
	rand.Intn(3)
	r.Intn(3)
	//lint:allow pure this one is only measured
	_ = time.Since(time.Time{})
	//lint:allow pure
	_ = time.Since(time.Time{})
}

func g(time interface{ Now() int }, c chan int) {
	time.Now()
	select { // a signal
	case c <- 1:
	default:
	}
	select {
	case <-c:
	default:
	}
	select {
	case c <- 1:
	case c <- 2:
	}
}
`
	want := []string{"5 pure", "16 pure", "17 pure", "20 pure", "21 pure", "22 pure", "27 pure", "36 pure", "40 pure"}
	for _, file := range []string{"zab/a.go", "zab/ensemble/a.go", "znode/a.go", "session/a.go", "server/replica/a.go"} {
		require.Equal(t, want, at(checkPurity(parsed(t, file, text))), file)
	}
	for _, file := range []string{"server/a.go", "zab/a_test.go", "internal/storage/a.go"} {
		require.Empty(t, checkPurity(parsed(t, file, text)), file)
	}
}

func TestMapOrderRule(t *testing.T) {
	s := parsed(t, "znode/a.go", `package p

import (
	"maps"
	"slices"
)

type named map[int]int

func f(m map[string]int, n named, s []int) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	for range n {
	}
	for range s {
	}
	// order: the sum of all is the same in any
	for range m {
	}
	for range m { // order: whatever
	}
	keys = slices.Sorted(maps.Keys(m))
	for k := range maps.Keys(m) {
		keys = append(keys, k)
	}
	return keys
}

func g(m map[string]int) (keys, other []string) {
	for k, v := range m {
		if v > 0 {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for k := range m {
		other = append(other, k)
	}
	for k := range m {
		keys = append(keys, k)
		other = append(other, k)
	}
	slices.SortFunc(other, func(a, b string) int { return len(a) - len(b) })
	return keys, other
}
`)
	findings, err := checkMapOrder([]*source{s}, importer.ForCompiler(s.fset, "source", nil))
	require.NoError(t, err)
	require.Equal(t, []string{"11 maporder", "14 maporder", "21 maporder", "24 maporder", "40 maporder"}, at(sorted(findings)))
}

func TestCallRules(t *testing.T) {
	text := `package p

import (
	"fmt"
	"log"
	"os"
	"testing"
	"time"
)

func f(t *testing.T) {
	fmt.Println("x")
	fmt.Fprintln(os.Stderr, "x")
	println("x")
	log.Print("x")
	os.Exit(1)
	time.Sleep(1)
	// The clock has to move on by itself here.
	time.Sleep(1)
	t.Skip()
	t.SkipNow()
	t.Skip("")
	t.Skip("needs a second machine")
	fmt.Printf("x") //lint:allow print the user asked for it
	for i := 0; i < 3; time.Sleep(1) {
		i++
	}

	for {
		time.Sleep(1)
	}
}
`
	require.Equal(t, []string{"5 log", "12 print", "14 print", "17 sleep", "20 skip", "21 skip", "22 skip", "30 sleep"},
		at(sorted(checkCalls(parsed(t, "server/a_test.go", text)))))
	require.Equal(t, []string{"5 log", "12 print", "14 print", "16 exit"}, at(sorted(checkCalls(parsed(t, "server/a.go", text)))))
	require.Equal(t, []string{"5 log", "14 print"}, at(sorted(checkCalls(parsed(t, "cmd/zabra/a.go", text)))))
	require.Equal(t, []string{"14 print", "17 sleep", "20 skip", "21 skip", "22 skip", "30 sleep"},
		at(sorted(checkCalls(parsed(t, "recipes/lock/example_test.go", text)))), "an example prints")
}

func TestSizeRules(t *testing.T) {
	long := "package p\n\ntype T struct{}\n\nfunc (t *T) f() {\n" + strings.Repeat("\t_ = 1\n", 79) + "}\n"
	s := parsed(t, "server/a.go", long)
	require.Empty(t, checkFileLength(s))
	require.Len(t, checkFileLength(parsed(t, "server/a.go", "package p\n"+strings.Repeat("\n", fileLinesMax))), 1)

	tests := []struct{ name, exceptions, want string }{
		{"not listed", "", "server/a.go:5: function: server.T.f has 81 lines, at most 70"},
		{"listed", "# why\nserver.T.f 81", ""},
		{"grown", "server.T.f 80", "server/a.go:5: function: server.T.f has grown from 80 to 81 lines"},
		{"shrunk", "server.T.f 90", "internal/lint/long-functions.txt:1: function: server.T.f is down to 81 lines: lower the entry"},
		{"gone", "server.T.f 81\nserver.g 90", "internal/lint/long-functions.txt:2: function: server.g is short enough or gone: remove the entry"},
	}
	for _, tt := range tests {
		findings := checkFunctions([]*source{s}, tt.exceptions)
		if tt.want == "" {
			require.Empty(t, findings, tt.name)
			continue
		}
		require.Len(t, findings, 1, tt.name)
		require.Equal(t, tt.want, findings[0].String(), tt.name)
	}
	require.NotEmpty(t, checkFunctions([]*source{s}, "server.T.f 81\nserver.T.f 81"))
	require.NotEmpty(t, checkFunctions([]*source{s}, "server.T.f"))
	require.Empty(t, checkFunctions([]*source{parsed(t, "server/a_test.go", long)}, ""))
}

func TestLinkRule(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "docs", "a.md"), nil, 0o600))
	text := "[a](a.md) [b](b.md)\n[web](https://example.com/x) [here](#part)\n[a](../docs/a.md#part) [up](../c.go)\n"
	require.Equal(t, []string{"1 link", "3 link"}, at(checkLinks(root, "docs/x.md", text)))
}

func TestReachableRule(t *testing.T) {
	require.Empty(t, checkReachable([]string{"fmt", "zabra/server", "zabra/testingground"}))
	require.Len(t, checkReachable([]string{"testing", "testing/fstest", "github.com/stretchr/testify/require", "zabra/server/servertest"}), 4)
}
