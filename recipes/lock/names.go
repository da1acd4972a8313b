package lock

import (
	"cmp"
	"slices"
	"strings"

	"zabra/recipes"
)

// Names says how the nodes of contenders are called, and so who else may stand in the line; see the package's text.
type Names int

const (
	// Curator is for lines with Curator, and with go-zookeeper/zk's own Lock.
	Curator Names = iota
	// Kazoo is for lines with kazoo.
	Kazoo
	// CuratorLatch is for lines with Curator's LeaderLatch, which is a lock, too. It is for a Mutex only.
	CuratorLatch
)

// What stands before the sequence number, and is the same for all who share a lock.
const (
	curatorLock  = "lock-"
	curatorRead  = "__READ__"
	curatorWrite = "__WRIT__"
	kazooLock    = "__lock__" // also kazoo's writers
	kazooRead    = "__rlock__"
	curatorLatch = "latch-"
)

func (n Names) mutex() string {
	switch n {
	case Kazoo:
		return kazooLock
	case CuratorLatch:
		return curatorLatch
	}
	return curatorLock
}

func (n Names) read() string {
	if n == Kazoo {
		return kazooRead
	}
	return curatorRead
}

func (n Names) write() string {
	if n == Kazoo {
		return kazooLock
	}
	return curatorWrite
}

// contender is a node in a line.
type contender struct {
	name string
	// sequence is the place in the line. A reader that was let in by its own writer has that writer's.
	sequence int64
	reader   bool
}

// parse reads the name of a node. It returns false for a stranger.
func parse(name string) (contender, bool) {
	c := contender{name: name, sequence: recipes.Sequence(name), reader: isReader(name)}
	return c, c.sequence >= 0
}

func isReader(name string) bool {
	return strings.Contains(name, curatorRead) || strings.Contains(name, kazooRead)
}

// order returns the contenders among the children of a lock's node, first come first.
func order(children []string) (line []contender) {
	for _, name := range children {
		if c, ok := parse(name); ok {
			line = append(line, c)
		}
	}
	slices.SortFunc(line, func(a, b contender) int {
		return cmp.Or(cmp.Compare(a.sequence, b.sequence), strings.Compare(a.name, b.name))
	})
	return line
}

// before returns the last contender in an ordered line that has to leave before c may have the lock. A reader does not wait
// for readers. Equal numbers are a writer and its own reader, which do not wait for each other.
func before(line []contender, c contender) (contender, bool) {
	for _, other := range slices.Backward(line) {
		if other.sequence < c.sequence && !(c.reader && other.reader) {
			return other, true
		}
	}
	return contender{}, false
}
