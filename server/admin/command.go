// Package admin holds the commands with which operators and monitoring agents question a running server.
//
// There are two forms of them. [Commands] is the table of the four-letter words of the client port: a command turns a
// [Source], the running server, into a plain value, its [Answer], which [Reply] renders. [Handler] is what the admin server
// answers by HTTP: an [HTTPCommand] turns the same Source into the fields of a JSON object.
//
// The texts are read by programs (Telegraf, Datadog, Zabbix, status scripts, Curator's and kazoo's version probes), so
// that every space, line break and missing final line break in them is part of the interface.
package admin

// Answer is the result of one command: a plain value that knows its text form. Values hold no reference into the
// server, so that a slow reader of an answer holds up nothing.
type Answer interface {
	// AppendText appends the answer as the four-letter word gives it, exactly.
	AppendText(b []byte) []byte
}

// WhileDown says what a command answers while the server does not serve: before its data is loaded, or without a
// quorum.
type WhileDown uint8

const (
	// Refuse answers with the sentence "This ZooKeeper instance is not currently serving requests" and a line break.
	Refuse WhileDown = iota
	// RefuseBare answers with the same sentence without the line break. Only the word hash does.
	RefuseBare
	// Work runs the command as ever: it asks only about the process.
	Work
)

// Command is one entry of the table.
type Command struct {
	Word     string   // the four-letter word
	Name     string   // primary name of the HTTP form
	Aliases  []string // further names of the HTTP form
	Down     WhileDown
	Run      func(src Source, in Input) Answer
	Purpose  string // one phrase for help texts
	Modifies bool   // changes something in the server
}

// Input is what may come with a command.
type Input struct {
	Tail []byte // what arrived together with a four-letter word; only stmk reads it
}

// Commands is the table, by word. It is never changed after initialisation.
var Commands = []Command{
	{Word: "conf", Name: "configuration", Aliases: []string{"conf", "config"}, Run: runConf, Purpose: "effective configuration"},
	{Word: "cons", Name: "connections", Aliases: []string{"cons"}, Run: runCons, Purpose: "client connections in full"},
	{Word: "crst", Name: "connection_stat_reset", Aliases: []string{"crst"}, Run: runCrst, Purpose: "reset the counters of all connections", Modifies: true},
	{Word: "dirs", Name: "dirs", Run: runDirs, Purpose: "bytes of snapshots and transaction logs"},
	{Word: "dump", Name: "dump", Run: runDump, Purpose: "sessions, their expiry and their ephemeral nodes"},
	{Word: "envi", Name: "environment", Aliases: []string{"env", "envi"}, Down: Work, Run: runEnvi, Purpose: "version, host and process"},
	{Word: "gtmk", Name: "get_trace_mask", Aliases: []string{"gtmk"}, Down: Work, Run: runGtmk, Purpose: "trace mask"},
	{Word: "hash", Name: "hash", Down: RefuseBare, Run: runHash, Purpose: "recent digests of the tree"},
	{Word: "isro", Name: "is_read_only", Aliases: []string{"isro"}, Down: Work, Run: runIsro, Purpose: "read-only or read-write"},
	{Word: "mntr", Name: "monitor", Aliases: []string{"mntr"}, Run: runMntr, Purpose: "all metrics"},
	{Word: "ruok", Name: "ruok", Down: Work, Run: runRuok, Purpose: "is the process alive"},
	{Word: "srst", Name: "stat_reset", Aliases: []string{"srst"}, Run: runSrst, Purpose: "reset the server's counters", Modifies: true},
	{Word: "srvr", Name: "server_stats", Aliases: []string{"srvr"}, Run: runSrvr, Purpose: "counters of the server"},
	{Word: "stat", Name: "stats", Aliases: []string{"stat"}, Run: runStat, Purpose: "counters of the server and its connections"},
	{Word: "stmk", Name: "set_trace_mask", Aliases: []string{"stmk"}, Down: Work, Run: runStmk, Purpose: "set the trace mask", Modifies: true},
	{Word: "wchc", Name: "watches", Aliases: []string{"wchc"}, Run: runWchc, Purpose: "watches by session; slow with many"},
	{Word: "wchp", Name: "watches_by_path", Aliases: []string{"wchp"}, Run: runWchp, Purpose: "watches by path; slow with many"},
	{Word: "wchs", Name: "watch_summary", Aliases: []string{"wchs"}, Run: runWchs, Purpose: "number of watches"},
}

// byWord finds a command by its four-letter word.
var byWord = func() map[string]*Command {
	m := make(map[string]*Command, len(Commands))
	for i := range Commands {
		m[Commands[i].Word] = &Commands[i]
	}
	return m
}()

// ByWord returns the command behind a four-letter word, or nil.
func ByWord(word string) *Command { return byWord[word] }
