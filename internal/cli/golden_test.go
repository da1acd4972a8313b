package cli

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
)

// The golden file holds what zkCli 3.9.5 printed for a list of commands. It was recorded by testdata/Record.java against a
// fresh server with extendedTypesEnabled=true:
//
//	javac -cp "$JARS" Record.java && java -cp "$JARS:." Record HOST:PORT zkcli.golden > new.golden
const goldenFile = "testdata/zkcli.golden"

// recorded is one command, or one script, of the golden file.
type recorded struct {
	line     int
	title    string
	words    []string // nil for a script
	script   string
	out, err string
	code     string
}

func readGolden(t *testing.T) (all []*recorded) {
	t.Helper()
	data, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	lines := strings.Split(string(data), "\n")
	var now *recorded
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "$ "):
			now = &recorded{line: i + 1, title: line[2:], words: splitWords(line[2:])}
			all = append(all, now)
		case line == "script":
			now = &recorded{line: i + 1, title: "script"}
			for i++; lines[i] != "end"; i++ {
				now.script += lines[i] + "\n"
			}
			all = append(all, now)
		case strings.HasPrefix(line, "1|"):
			now.out += line[2:] + "\n"
		case strings.HasPrefix(line, "2|"):
			now.err += line[2:] + "\n"
		case strings.HasPrefix(line, "exit "):
			now.code = line[5:]
		}
	}
	return all
}

// result is what a command of ours did.
type result struct {
	code     int
	out, err string
}

// runWords runs a command as a process of its own would.
func runWords(t testing.TB, addr, stdin string, words ...string) result {
	t.Helper()
	return runOptions(t, []string{"-server", addr, "-timeout", "9000", "-waitforconnection"}, stdin, words...)
}

func runOptions(t testing.TB, options []string, stdin string, words ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	opt, err := ParseOptions(append(options, words...), func(string) string { return "" }, &errs)
	require.NoError(t, err)
	opt.Stdin, opt.StdinTerminal = strings.NewReader(stdin), false
	opt.Stdout, opt.Stderr, opt.StdoutTerminal, opt.StderrTerminal, opt.Color = &out, &errs, false, false, false
	opt.Version = "3.9.5-test"
	code := Run(context.Background(), opt)
	return result{code, out.String(), errs.String()}
}

var (
	timeField    = regexp.MustCompile(`time = .*`)
	timeFormat   = regexp.MustCompile(`time = (Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \S+ \d{4}`)
	zxidField    = regexp.MustCompile(`Zxid = 0x[1-9a-f][0-9a-f]*`)
	eventZxid    = regexp.MustCompile(`zxid: \d+`)
	javaName     = regexp.MustCompile(`(?m)^org\.apache\.commons\.cli\.\w+: `)
	eventBlock   = regexp.MustCompile(`\nWATCHER::\n\nWatchedEvent (.*)\n`)
	connectEvent = "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null zxid: -1\n"
)

// clean replaces what differs from run to run, as the recorder does.
func clean(t *testing.T, text, addr string) string {
	t.Helper()
	text, ok := strings.CutPrefix(text, "Connecting to "+addr+"\n"+connectEvent)
	require.True(t, ok, "every command begins like this: %s", text)
	for _, field := range timeField.FindAllString(text, -1) {
		require.Regexp(t, timeFormat, field)
	}
	text = timeField.ReplaceAllString(text, "time = TIME")
	text = zxidField.ReplaceAllString(text, "Zxid = 0xZXID")
	return eventZxid.ReplaceAllString(text, "zxid: ZXID")
}

// withoutEvents takes the events out, which Java prints on a thread of their own, so that their place is not fixed.
func withoutEvents(text string) (rest string, events []string) {
	for _, m := range eventBlock.FindAllStringSubmatch(text, -1) {
		events = append(events, m[1])
	}
	return eventBlock.ReplaceAllString(text, ""), events
}

// deviations are the recorded commands where we do something else on purpose; docs/cli.md gives the reasons.
var deviations = map[string]result{
	"delete /d 9": {1, "", "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.\n" +
		"version No is not valid : /d\n"},
	"delete /d 0": {0, "", "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.\n"},
}

// TestGolden runs the recorded commands in the same order against a fresh server and compares every line and exit code.
func TestGolden(t *testing.T) {
	s := servertest.Start(t, servertest.WithConfig("extendedTypesEnabled", "true"))
	for _, want := range readGolden(t) {
		if other, ok := deviations[want.title]; ok {
			want.out, want.err, want.code = other.out, other.err, strconv.Itoa(other.code)
		}
		got := runWords(t, s.Addr(), want.script, want.words...)
		out, events := withoutEvents(clean(t, got.out, s.Addr()))
		wantOut, wantEvents := withoutEvents(want.out)
		name := want.title
		switch want.title {
		case "version":
			require.Equal(t, "ZooKeeper CLI version: 3.9.5-test\n", out)
			continue
		case "script":
			wantEvents = slices.Sorted(slices.Values(wantEvents))
			events = slices.Sorted(slices.Values(events))
			name += "\n" + want.script
		}
		require.Equal(t, wantOut, out, "line %d: stdout of %s", want.line, name)
		require.Equal(t, wantEvents, events, "line %d: events of %s", want.line, name)
		compareErr(t, want, got.err)
		require.Equal(t, want.code, strconv.Itoa(got.code), "line %d: exit code of %s", want.line, name)
	}
}

// compareErr compares standard error. Java's class names are not expected, and the list of commands may be longer.
func compareErr(t *testing.T, want *recorded, got string) {
	t.Helper()
	wantErr := javaName.ReplaceAllString(want.err, "")
	if !strings.Contains(wantErr, "Command not found") {
		require.Equal(t, wantErr, got, "line %d: stderr of %s", want.line, want.title)
		return
	}
	for _, line := range strings.SplitAfter(wantErr, "\n") {
		require.Contains(t, got, line, "line %d: stderr of %s", want.line, want.title)
	}
}
