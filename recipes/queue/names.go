package queue

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"zabra/recipes"
)

// layout is how a kind of queue names its entries, and what their data looks like.
type layout struct {
	// parse takes the name of an entry apart, as far as it is not its number. ok is false for nodes that are no entries.
	parse func(name string) (k key, ok bool)
	// framed is set if the data is that of Curator's DistributedQueue.
	framed bool
	// ranked is set if new entries may come before old ones.
	ranked bool
}

// key is what entries are ordered by before their number.
type key struct {
	priority int32
	dueMs    int64 // 0 for an entry that is due from the beginning
}

// candidate is an entry of the list.
type candidate struct {
	key
	name   string
	number int64
}

func (c candidate) due() time.Time { return time.UnixMilli(c.dueMs) }

// compare is the order in which entries are handed out.
func (c candidate) compare(d candidate) int {
	return cmp.Or(cmp.Compare(c.priority, d.priority), cmp.Compare(c.dueMs, d.dueMs),
		cmp.Compare(c.number, d.number), cmp.Compare(c.name, d.name))
}

// candidate makes one of a name.
func (l layout) candidate(name string) (candidate, bool) {
	k, ok := l.parse(name)
	number := recipes.Sequence(name)
	return candidate{k, name, number}, ok && number >= 0
}

const (
	simplePrefix  = "qn-"    // SimpleDistributedQueue
	curatorPrefix = "queue-" // DistributedQueue and what is made of it
	kazooPrefix   = "entry-"
	// priorityDigits is the sign and eight hexadecimal digits.
	priorityDigits = 9
	kazooDigits    = 3
	dueSeparator   = "|"
)

var (
	simpleLayout   = layout{parse: func(name string) (key, bool) { return key{}, strings.HasPrefix(name, simplePrefix) }}
	priorityLayout = layout{parse: parsePriority, framed: true, ranked: true}
	delayLayout    = layout{parse: parseDelay, framed: true, ranked: true}
	kazooLayout    = layout{parse: parseKazoo, ranked: true}
)

// priorityName is what the server appends the number to: names have to sort as text, so the negative numbers get a 0 before
// their two's complement and the others a 1.
func priorityName(priority int32) string {
	sign := "1"
	if priority < 0 {
		sign = "0"
	}
	return fmt.Sprintf("%s%s%08X", curatorPrefix, sign, uint32(priority))
}

func parsePriority(name string) (key, bool) {
	rest, ok := strings.CutPrefix(name, curatorPrefix)
	if !ok || len(rest) < priorityDigits {
		return key{}, false
	}
	bits, err := strconv.ParseUint(rest[1:priorityDigits], 16, 32)
	k := key{priority: int32(bits)}
	// A number behind is left: the name of an entry without a priority ends here.
	return k, err == nil && len(rest) > priorityDigits+1 && priorityName(k.priority) == name[:len(curatorPrefix)+priorityDigits]
}

func delayName(due time.Time) string {
	return fmt.Sprintf("%s%s%08X%s", curatorPrefix, dueSeparator, due.UnixMilli(), dueSeparator)
}

func parseDelay(name string) (key, bool) {
	rest, ok := strings.CutPrefix(name, curatorPrefix+dueSeparator)
	text, _, closed := strings.Cut(rest, dueSeparator)
	ms, err := strconv.ParseInt(text, 16, 64)
	return key{dueMs: ms}, ok && closed && err == nil && ms > 0 && ms <= dueMaxMs
}

func kazooName(priority int) string { return fmt.Sprintf("%s%03d-", kazooPrefix, priority) }

func parseKazoo(name string) (key, bool) {
	rest, ok := strings.CutPrefix(name, kazooPrefix)
	text, _, dashed := strings.Cut(rest, "-")
	priority, err := strconv.ParseUint(text, 10, 16)
	return key{priority: int32(priority)}, ok && dashed && err == nil && len(text) == kazooDigits
}
