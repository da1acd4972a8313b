package cli

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"zabra/server/client"
)

// completer offers what can stand at the cursor: commands, options, paths and the few fixed words.
type completer struct{ sh *shell }

// Do implements readline.AutoCompleter: it returns what can be appended, and how much of it is there already.
func (c *completer) Do(line []rune, pos int) (rest [][]rune, length int) {
	before, prefix := splitForCompletion(string(line[:pos]))
	for _, word := range c.candidates(before, prefix) {
		rest = append(rest, []rune(word[len(prefix):]))
	}
	return rest, len([]rune(prefix))
}

// splitForCompletion separates the words that are complete from the one at the cursor, with its quote.
func splitForCompletion(text string) (before []string, prefix string) {
	start := len(text)
	for i, quote := 0, byte(0); i < len(text); i++ {
		switch ch := text[i]; {
		case quote != 0:
			if ch == quote {
				quote = 0
			}
		case i == 0 || unicode.IsSpace(rune(text[i-1])):
			if !unicode.IsSpace(rune(ch)) {
				start = i
			}
			if ch == '"' || ch == '\'' {
				quote = ch
			}
		}
		if unicode.IsSpace(rune(text[i])) && quote == 0 {
			start = i + 1
		}
	}
	return splitWords(text[:start]), text[start:]
}

// candidates are the whole words that the prefix can become, sorted.
func (c *completer) candidates(before []string, prefix string) []string {
	if len(before) == 0 {
		return matching(commandNames(), prefix, " ")
	}
	cmd := lookupCommand(before[0])
	if cmd == nil {
		return nil
	}
	if strings.HasPrefix(prefix, "-") {
		var names []string
		for _, f := range cmd.flags {
			names = append(names, "-"+f.name)
		}
		return matching(names, prefix, " ")
	}
	if words := fixedWords(cmd, before); words != nil {
		return matching(words, prefix, " ")
	}
	_, args, err := parseFlags(cmd.flags, before[1:])
	if err != nil || !cmd.takesPath(len(args)) {
		return nil
	}
	return c.paths(prefix)
}

func commandNames() (names []string) {
	for _, cmd := range commands() {
		names = append(names, cmd.name)
	}
	return names
}

// fixedWords are the values of an argument that has only a few.
func fixedWords(cmd *command, before []string) []string {
	switch last := before[len(before)-1]; {
	case cmd.name == "printwatches":
		return []string{"off", "on"}
	case cmd.name == "help" && len(before) == 1:
		return commandNames()
	case cmd.name == "addWatch" && last == "-m":
		return []string{"PERSISTENT", "PERSISTENT_RECURSIVE"}
	}
	return nil
}

// matching returns what begins with the prefix. The tail is appended if there is just one.
func matching(words []string, prefix, tail string) (out []string) {
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	if len(out) == 1 {
		out[0] += tail
	}
	return out
}

// paths asks the server for the children that a path can go on with. A quote before the path is kept.
func (c *completer) paths(prefix string) []string {
	quote := ""
	if prefix != "" && (prefix[0] == '"' || prefix[0] == '\'') {
		quote = prefix[:1]
	}
	path := prefix[len(quote):]
	if path == "" {
		return []string{quote + "/"}
	}
	slash := strings.LastIndexByte(path, '/')
	if path[0] != '/' || slash < 0 {
		return nil
	}
	parent := path[:max(slash, 1)]
	var found []string
	for _, name := range c.children(parent) {
		if full := join(parent, name); strings.HasPrefix(full, path) && (quote != "" || !strings.ContainsFunc(name, unicode.IsSpace)) {
			found = append(found, quote+full)
		}
	}
	slices.Sort(found)
	if len(found) == 1 {
		tail := quote + " "
		if len(c.children(found[0][len(quote):])) > 0 {
			tail = "/"
		}
		found[0] += tail
	}
	return found[:min(len(found), completionNamesMax)]
}

// children returns the names below a path; none if the server does not tell in time.
func (c *completer) children(path string) (names []string) {
	if !c.sh.alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionMax)
	defer cancel()
	err := c.sh.sess.do(ctx, path, func(zk *client.Client, inside string) (err error) {
		names, err = zk.GetChildren(ctx, inside, false)
		return err
	})
	if err != nil {
		return nil
	}
	return names
}
