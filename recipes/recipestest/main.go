package recipestest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"zabra/server/servertest"
)

// Main runs the tests of a package, gives its examples a server (see Servers), and fails if a goroutine is left:
//
//	func TestMain(m *testing.M) { recipestest.Main(m) }
func Main(m *testing.M) { goleak.VerifyTestMain(runner{m}) }

// Servers are the addresses of a server for examples, which have no testing.TB to start one with. It is started when it is
// asked for first, and lasts as long as Main does. It is always one of this process.
func Servers() []string { return forExamples() }

var (
	examples    process
	forExamples = sync.OnceValue(func() []string { return []string{servertest.Start(&examples).Addr()} })
)

// runner ends the examples' server when all tests have run, before leaks are looked for.
type runner struct{ m *testing.M }

func (r runner) Run() int {
	code := r.m.Run()
	examples.end()
	return code
}

// process stands for the whole test binary where a testing.TB is asked for.
type process struct {
	testing.TB
	cleanups []func()
}

func (p *process) Name() string { return "examples" }

func (p *process) Helper() {}

func (p *process) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (p *process) Log(args ...any) { fmt.Fprintln(os.Stderr, args...) }

func (p *process) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (p *process) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (p *process) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (p *process) FailNow() { panic("the server of the examples has failed") }

func (p *process) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *process) TempDir() string {
	dir, err := os.MkdirTemp("", "zabra-examples")
	if err != nil {
		panic(err)
	}
	p.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (p *process) end() {
	for len(p.cleanups) > 0 {
		last := len(p.cleanups) - 1
		f := p.cleanups[last]
		p.cleanups = p.cleanups[:last]
		f()
	}
}
