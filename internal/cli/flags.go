package cli

import (
	"errors"
	"fmt"
	"strings"
)

// flag is one option of a command.
type flag struct {
	// name is written with one hyphen, those of several letters with one or two.
	name string
	// value is what the option's value is called, "" if it has none.
	value string
	// help is what the long usage says.
	help string
	// group names options of which only one may be given; "" for the others.
	group string
}

// flagSet holds the options of a command line.
type flagSet map[string][]string

func (f flagSet) has(name string) bool { return f[name] != nil }

// value returns the last value of an option.
func (f flagSet) value(name string) (string, bool) {
	v := f[name]
	if len(v) == 0 {
		return "", false
	}
	return v[len(v)-1], true
}

// parseFlags separates options from arguments. Options may stand anywhere, those of one letter may share a hyphen, and
// nothing after "--" is an option. A value may look like a number below zero, but not like an option.
func parseFlags(defs []flag, words []string) (flagSet, []string, error) {
	set, chosen := flagSet{}, map[string]string{}
	var args []string
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "--" {
			return set, append(args, words...), nil
		}
		if len(word) < 2 || word[0] != '-' {
			args = append(args, word)
			continue
		}
		found, rest, err := lookup(defs, word)
		if err != nil {
			return nil, nil, err
		}
		for i, f := range found {
			if err := f.choose(chosen); err != nil {
				return nil, nil, err
			}
			value := ""
			switch last := i == len(found)-1; {
			case f.value == "":
			case last && rest != "":
				value = rest
			case last && len(words) > 0 && !isFlag(defs, words[0]):
				value, words = words[0], words[1:]
			default:
				return nil, nil, errors.New("Missing argument for option: " + f.name)
			}
			set[f.name] = append(set[f.name], value)
		}
	}
	return set, args, nil
}

// choose enters an option that excludes others of its group.
func (f *flag) choose(chosen map[string]string) error {
	if other := chosen[f.group]; f.group != "" && other != "" && other != f.name {
		return fmt.Errorf("The option '%s' was specified but an option from this group has already been selected: '%s'", f.name, other)
	}
	chosen[f.group] = f.name
	return nil
}

// lookup finds the option that a word names, or the options of one letter that it consists of. Rest is the value if it
// is part of the word.
func lookup(defs []flag, word string) (found []flag, rest string, err error) {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
	name, rest, _ = strings.Cut(name, "=")
	if f := find(defs, name); f != nil && (rest == "" || f.value != "") {
		return []flag{*f}, rest, nil
	}
	letters := word[1:]
	for i := range letters {
		f := find(defs, letters[i:i+1])
		if f == nil {
			return nil, "", errors.New("Unrecognized option: " + word)
		}
		found = append(found, *f)
		if f.value != "" {
			return found, letters[i+1:], nil
		}
	}
	return found, "", nil
}

func find(defs []flag, name string) *flag {
	for i := range defs {
		if defs[i].name == name {
			return &defs[i]
		}
	}
	return nil
}

func isFlag(defs []flag, word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	found, _, err := lookup(defs, word)
	return err == nil && len(found) > 0
}
