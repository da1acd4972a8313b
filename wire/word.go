package wire

// WordTelnetBreak is the "word" that telnet sends when it is interrupted. A server answers nothing and closes.
const WordTelnetBreak = "\xff\xf4\xff\xfd"

// FourLetterWord returns the administrative command that head is, if it is one. Commands stand where the first frame of
// a connection has its length, and must be looked for before that is judged: each of them is also a number, most of them
// far above any bound. Later on a connection there are no commands.
func FourLetterWord(head [FrameHeadBytes]byte) (word string, ok bool) {
	for _, w := range words {
		if string(head[:]) == w {
			return w, true
		}
	}
	return "", false
}

var words = [...]string{
	"conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr", "ruok", "srst", "srvr", "stat", "stmk",
	"wchc", "wchp", "wchs", WordTelnetBreak,
}

// FrameSuspect guesses what the first bytes of a connection are that make no valid length: another protocol, a setting
// of the client's that differs, a command that does not exist. It returns a phrase for a log message, "" for no idea.
func FrameSuspect(head [FrameHeadBytes]byte) string {
	switch s := string(head[:]); {
	case s == "GET ", s == "HEAD", s == "POST", s == "PUT ", s == "OPTI", s == "CONN", s == "PRI ":
		return "an HTTP request"
	case s == "SSH-":
		return "an SSH client"
	case head[0] == 0x16 && head[1] == 3:
		return "a TLS handshake on a port without TLS"
	case isPrintable(s):
		return "an unknown four-letter word"
	}
	return ""
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
