package znode

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// The reasons why a path is refused. All of them answer CodeBadArguments on the wire, except ErrPathNull for requests
// where a null path cannot even be looked at (those answer CodeMarshalling). They are values without context, so that a
// flood of bad paths costs no memory; the caller knows the path.
var (
	ErrPathNull      = errors.New("path is null")
	ErrPathEmpty     = errors.New("path is empty")
	ErrPathRelative  = errors.New("path does not begin with '/'")
	ErrPathTrailing  = errors.New("path ends with '/'")
	ErrPathEmptyName = errors.New("path has an empty name ('//')")
	ErrPathDots      = errors.New("path has a name '.' or '..'")
	ErrPathNUL       = errors.New("path contains U+0000")
	ErrPathChar      = errors.New("path contains a character that is not allowed")
	ErrPathNoSlash   = errors.New("path contains no '/'")
)

// The paths of the built-in tree, which every server has and no client can delete.
const (
	RootPath      = "/"
	ZookeeperPath = "/zookeeper"
	QuotaPath     = "/zookeeper/quota"
	ConfigPath    = "/zookeeper/config"
)

// runeRange is a range of code points, both ends included.
type runeRange struct{ lo, hi rune }

// refusedRunes are the code points that no name may contain, besides U+0000, in ascending order. The surrogates and
// everything above them up to the private use area form one range in ZooKeeper; characters beyond U+FFFF are made of
// surrogates there and are refused with them. U+FFFD is what malformed UTF-8 decodes to, so that is refused too.
var refusedRunes = [...]runeRange{
	{0x0001, 0x001f},
	{0x007f, 0x009f},
	{0xd800, 0xf8ff},
	{0xfff0, 0x10ffff},
}

// ValidatePath applies the full rules for a path that is written to: the final path of a create, and the paths of
// setData, setACL and check. It does not allocate. There is no limit on the length but that of the request.
func ValidatePath(path []byte) error {
	switch {
	case path == nil:
		return ErrPathNull
	case len(path) == 0:
		return ErrPathEmpty
	case path[0] != '/':
		return ErrPathRelative
	case len(path) == 1:
		return nil
	case path[len(path)-1] == '/':
		return ErrPathTrailing
	}
	name := 1 // where the current name begins
	for i := 1; i < len(path); {
		c := path[i]
		if c == '/' {
			if err := validateName(path[name:i]); err != nil {
				return err
			}
			i++
			name = i
			continue
		}
		if c >= 0x20 && c < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRune(path[i:])
		if r == 0 {
			return ErrPathNUL
		}
		if runeRefused(r) {
			return ErrPathChar
		}
		i += size
	}
	return validateName(path[name:])
}

// validateName refuses the names that would make a path ambiguous.
func validateName(name []byte) error {
	switch {
	case len(name) == 0:
		return ErrPathEmptyName
	case name[0] != '.':
		return nil
	case len(name) == 1, len(name) == 2 && name[1] == '.':
		return ErrPathDots
	}
	return nil
}

func runeRefused(r rune) bool {
	for _, rg := range refusedRunes {
		if r <= rg.hi {
			return r >= rg.lo
		}
	}
	return true
}

// WeakPath applies the rules that create and delete check first, before permissions: the path has a '/' somewhere and
// no U+0000. A null path is ErrPathNull.
func WeakPath(path []byte) error {
	switch {
	case path == nil:
		return ErrPathNull
	case bytes.IndexByte(path, '/') < 0:
		return ErrPathNoSlash
	case bytes.IndexByte(path, 0) >= 0:
		return ErrPathNUL
	}
	return nil
}

// ReservedPath reports whether path is a node of the built-in tree. Those always exist and cannot be deleted, not even
// by the superuser.
func ReservedPath(path []byte) bool {
	switch string(path) {
	case RootPath, ZookeeperPath, QuotaPath, ConfigPath:
		return true
	}
	return false
}

// SplitPath cuts path at its last '/': parent is the text before it, name the text behind it. The parent of a top-level
// path is "/". Both alias path. A path without '/' has a nil parent.
func SplitPath(path []byte) (parent, name []byte) {
	i := bytes.LastIndexByte(path, '/')
	switch {
	case i < 0:
		return nil, path
	case i == 0:
		return path[:1], path[1:]
	}
	return path[:i], path[i+1:]
}
