package admin

const (
	// notServing is what most words answer while the server does not serve. Status scripts match it.
	notServing = "This ZooKeeper instance is not currently serving requests"
	// notListed follows the word in the answer to one that is not enabled. Agents match it.
	notListed = " is not executed because it is not in the whitelist.\n"
)

// TelnetBreak is the command with which telnet sends an interrupt: the bytes FF F4 FF FD. It is closed without an answer
// where all words are enabled, and refused by its name where they are not.
const TelnetBreak = "\xff\xf4\xff\xfd"

// telnetBreakName is what ZooKeeper calls it.
const telnetBreakName = "telnet close"

// Reply appends the answer to a four-letter word to b; enabled says whether 4lw.commands.whitelist allows the word. The
// connection is closed after the answer, also when that is empty.
func Reply(b []byte, word string, enabled bool, src Source, in Input) []byte {
	if word == TelnetBreak {
		if !enabled {
			b = append(append(b, telnetBreakName...), notListed...)
		}
		return b
	}
	cmd := byWord[word]
	if cmd == nil || !enabled {
		b = append(b, word...)
		return append(b, notListed...)
	}
	if cmd.Down != Work && !src.Serving() {
		b = append(b, notServing...)
		if cmd.Down == Refuse {
			b = append(b, '\n')
		}
		return b
	}
	return cmd.Run(src, in).AppendText(b)
}
