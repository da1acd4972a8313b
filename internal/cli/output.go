package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"zabra/wire"
)

// lockedWriter lets events be written between the lines of commands.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

// timeLayout is how Java prints a time.
const timeLayout = "Mon Jan 02 15:04:05 MST 2006"

func printStat(w io.Writer, s *wire.Stat) {
	fmt.Fprintf(w, "cZxid = 0x%x\nctime = %s\nmZxid = 0x%x\nmtime = %s\npZxid = 0x%x\ncversion = %d\ndataVersion = %d\n"+
		"aclVersion = %d\nephemeralOwner = 0x%x\ndataLength = %d\nnumChildren = %d\n",
		uint64(s.Czxid), time.UnixMilli(s.Ctime).Format(timeLayout), uint64(s.Mzxid), time.UnixMilli(s.Mtime).Format(timeLayout),
		uint64(s.Pzxid), s.CVersion, s.Version, s.AVersion, uint64(s.EphemeralOwner), s.DataLength, s.NumChildren)
}

// list writes names as Java writes a list.
func list(names []string) string {
	return "[" + strings.Join(slices.Sorted(slices.Values(names)), ", ") + "]"
}

const (
	hexRowBytes = 16
	hexHead     = "         +-------------------------------------------------+\n" +
		"         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n"
	hexRule = "+--------+-------------------------------------------------+----------------+"
)

// hexDump draws data in the frame that zkCli draws.
func hexDump(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(hexHead + hexRule)
	at := 0
	for row := range slices.Chunk(data, hexRowBytes) {
		fmt.Fprintf(&b, "\n|%08x|%-49s|", at, fmt.Sprintf(" % x", row))
		for i := range hexRowBytes {
			switch {
			case i >= len(row):
				b.WriteByte(' ')
			case row[i] <= 0x1f || row[i] >= 0x7f:
				b.WriteByte('.')
			default:
				b.WriteByte(row[i])
			}
		}
		b.WriteByte('|')
		at += hexRowBytes
	}
	b.WriteString("\n" + hexRule)
	return b.String()
}

type permLetter struct {
	letter byte
	bit    int32
}

// permLetters are the permissions in the order in which zkCli writes them.
var permLetters = []permLetter{{'c', wire.PermCreate}, {'d', wire.PermDelete}, {'r', wire.PermRead}, {'w', wire.PermWrite}, {'a', wire.PermAdmin}}

func permText(perms int32) string {
	var out []byte
	for _, p := range permLetters {
		if perms&p.bit != 0 {
			out = append(out, p.letter)
		}
	}
	return string(out)
}

// parseACL reads "scheme:id:perms,scheme:id:perms".
func parseACL(text string) ([]wire.ACL, error) {
	var out []wire.ACL
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		first, last := strings.IndexByte(entry, ':'), strings.LastIndexByte(entry, ':')
		if first < 0 || first == last {
			return nil, &aclError{fmt.Sprintf("%s does not have the form scheme:id:perm", entry)}
		}
		perms, err := parsePerms(entry[last+1:])
		if err != nil {
			return nil, err
		}
		out = append(out, wire.ACL{Perms: perms, Scheme: entry[:first], ID: entry[first+1 : last]})
	}
	return out, nil
}

func parsePerms(letters string) (perms int32, err error) {
	for i := range len(letters) {
		at := slices.IndexFunc(permLetters, func(p permLetter) bool { return p.letter == letters[i] })
		if at < 0 {
			return 0, &aclError{fmt.Sprintf("Unknown perm type: %c", letters[i])}
		}
		perms |= permLetters[at].bit
	}
	return perms, nil
}

// aclError is an access control list that cannot be sent.
type aclError struct{ reason string }

func (e *aclError) Error() string { return e.reason + "\nAcl is not valid : null" }

// aclText writes an entry as parseACL reads it.
func aclText(a *wire.ACL) string { return a.Scheme + ":" + a.ID + ":" + permText(a.Perms) }
