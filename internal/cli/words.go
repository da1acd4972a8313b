package cli

import (
	"strings"
	"unicode"
)

// splitWords takes a command line apart as zkCli does: words stand between blanks, single or double quotes around a word
// keep blanks in it and are taken off, and there are no escapes. A quote inside a word is an ordinary character, and one
// that is never closed is left out.
func splitWords(line string) (words []string) {
	for {
		line = strings.TrimLeftFunc(line, unicode.IsSpace)
		if line == "" {
			return words
		}
		if quote := line[0]; quote == '"' || quote == '\'' {
			if end := strings.IndexByte(line[1:], quote); end >= 0 {
				words = append(words, line[1:end+1])
				line = line[end+2:]
			} else {
				line = line[1:]
			}
			continue
		}
		end := strings.IndexFunc(line, unicode.IsSpace)
		if end < 0 {
			end = len(line)
		}
		words = append(words, line[:end])
		line = line[end:]
	}
}
