package cli

import "time"

const (
	// timeoutDefault is the session timeout that is asked for, as zkCli does.
	timeoutDefault = 30 * time.Second
	// dialMax bounds one attempt to connect to one server.
	dialMax = 5 * time.Second
	// closeMax bounds the farewell to the server.
	closeMax = 2 * time.Second
	// finishMax bounds how long an import waits for a server to go on with the access control lists that it owes its nodes.
	finishMax = time.Minute
	// reconnectPauseMin and Max bound the pause after all servers of the list were tried in vain; it doubles.
	reconnectPauseMin = 50 * time.Millisecond
	reconnectPauseMax = 2 * time.Second

	// editorEndTime is how long a line editor that was closed gets to notice that.
	editorEndTime = 500 * time.Millisecond

	// historyShown is how many lines the command history shows.
	historyShown = 11
	// historyLinesMax is how many lines redo can go back.
	historyLinesMax = 10_000
	// historyFileLinesMax bounds the history file when a session begins, and historyFileBytesMax what is read of it.
	historyFileLinesMax = 1000
	historyFileBytesMax = 4 << 20
	// lineBytesMax bounds a line of a script.
	lineBytesMax = 16 << 20
	// completionNamesMax bounds the names that a completion offers.
	completionNamesMax = 200
	// completionMax bounds how long a completion asks the server.
	completionMax = 2 * time.Second

	// deleteBatchDefault is how many nodes deleteall removes with one request.
	deleteBatchDefault = 1000
	// inFlightMax is how many requests walk, export and import have under way at a time.
	inFlightMax = 128
	// finishLists is how many access control lists an import sets before it looks whether it gets on.
	finishLists = 1000
	// diffChunkNodes is how many nodes diff holds in memory at a time, of each side.
	diffChunkNodes = 1000
	// treeNodesMax bounds the nodes of a subtree that is held in memory.
	treeNodesMax = 10_000_000
	// ttlMsMax is the longest life of a TTL node, in milliseconds.
	ttlMsMax = 1<<40 - 1
	// configFileBytesMax bounds a client configuration, a reconfiguration file, and one with certificates or a key.
	configFileBytesMax = 1 << 20

	// barCells is the width of a bar, barPause the time between two drawings, and barDelay how long work has to take before
	// a bar is worth showing.
	barCells = 30
	barPause = 100 * time.Millisecond
	barDelay = 300 * time.Millisecond
)
