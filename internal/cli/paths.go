package cli

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// pathError says why a path cannot be sent, in zkCli's words.
type pathError string

func (e pathError) Error() string { return string(e) }

// checkPath applies the rules that clients check before they send a path. Positions count UTF-16 code units, as Java's do.
func checkPath(path string) error {
	switch {
	case path == "":
		return pathError("Path length must be > 0")
	case path[0] != '/':
		return pathError("Path must start with / character")
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return pathError("Path must not end with / character")
	}
	units := utf16.Encode([]rune(path))
	for i, u := range units[1:] {
		if reason := badUnit(units, i+1, u); reason != "" {
			return pathError(fmt.Sprintf("Invalid path string \"%s\" caused by %s @%d", path, reason, i+1))
		}
	}
	return nil
}

// badUnit judges the character at i, which may end a name that is not allowed.
func badUnit(units []uint16, i int, u uint16) string {
	ends := func(at int) bool { return at == len(units) || units[at] == '/' }
	switch {
	case u == 0:
		return "null character not allowed"
	case u == '/' && units[i-1] == '/':
		return "empty node name specified"
	case u == '.' && ends(i+1) && (units[i-1] == '/' || units[i-1] == '.' && units[i-2] == '/'):
		return "relative paths not allowed"
	case u > 0 && u <= 0x1f, u >= 0x7f && u <= 0x9f, u >= 0xd800 && u <= 0xf8ff && !surrogate(u), u >= 0xfff0:
		return "invalid character"
	}
	return ""
}

// surrogate reports a half of a character beyond the basic plane, which servers take.
func surrogate(u uint16) bool { return u >= 0xd800 && u <= 0xdfff }

// join appends a child's name to a path.
func join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

// parentOf cuts the last name off.
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}
