package conf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

type integer interface{ ~int | ~int32 | ~int64 }

// strictInt is a key that ZooKeeper reads with Integer.parseInt: 32 bits, decimal, and fatal if it is not.
func strictInt[T integer](name string, field func(*Config) *T) key {
	set := func(c *Config, v string) (string, error) {
		n, err := parseInt32(v)
		if err == nil {
			*field(c) = T(n)
		}
		return "", err
	}
	return key{name: name, reach: direct, set: set, show: showInt(field)}
}

// propInt is a key that ZooKeeper reads with Integer.getInteger or Long.getLong, which fall back to the default without
// a word. Here the word is spoken.
func propInt[T integer](name string, r reach, low, high int64, field func(*Config) *T) key {
	set := func(c *Config, v string) (string, error) {
		n, err := decodeInt(v)
		if err != nil {
			return fmt.Sprintf("%q is not a number, the default %d is used, as ZooKeeper does", shown(v), *field(c)), nil
		}
		if n < low || n > high {
			return fmt.Sprintf("%d is outside %d to %d, the default %d is used", n, low, high, *field(c)), nil
		}
		*field(c) = T(n)
		return "", nil
	}
	return key{name: name, reach: r, set: set, show: showInt(field)}
}

// propFloat is a key that ZooKeeper reads with Double.parseDouble, and which falls back to the default with a line in the
// log.
func propFloat(name string, field func(*Config) *float64) key {
	set := func(c *Config, v string) (string, error) {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Sprintf("%q is not a number, the default %v is used, as ZooKeeper does", shown(v), *field(c)), nil
		}
		*field(c) = f
		return "", nil
	}
	return key{name: name, reach: property, set: set, show: showFloat(field)}
}

// strictFloat is a key that ZooKeeper reads with Double.parseDouble, and does not start without a number.
func strictFloat(name string, field func(*Config) *float64) key {
	set := func(c *Config, v string) (string, error) {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return "", fmt.Errorf("For input string: %q", shown(v))
		}
		*field(c) = f
		return "", nil
	}
	return key{name: name, reach: property, set: set, show: showFloat(field)}
}

func showFloat(field func(*Config) *float64) func(*Config) (string, bool) {
	return func(c *Config) (string, bool) { return strconv.FormatFloat(*field(c), 'g', -1, 64), true }
}

func showInt[T integer](field func(*Config) *T) func(*Config) (string, bool) {
	return func(c *Config) (string, bool) { return strconv.FormatInt(int64(*field(c)), 10), true }
}

// parseInt32 is Java's Integer.parseInt, with the message of its exception.
func parseInt32(v string) (int, error) {
	n, err := strconv.ParseInt(v, 10, 32)
	if err == nil {
		return int(n), nil
	}
	if i := strings.IndexAny(v, " \t#!"); i > 0 {
		return 0, fmt.Errorf("For input string: %q (a comment needs a line of its own)", shown(v))
	}
	return 0, fmt.Errorf("For input string: %q", shown(v))
}

// decodeInt is Java's Long.decode: decimal, hexadecimal after 0x or #, octal after a leading 0.
func decodeInt(v string) (int64, error) {
	digits, negative := strings.CutPrefix(v, "-")
	if !negative {
		digits = strings.TrimPrefix(v, "+")
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		digits, base = digits[2:], 16
	case strings.HasPrefix(digits, "#"):
		digits, base = digits[1:], 16
	case strings.HasPrefix(digits, "0") && len(digits) > 1:
		digits, base = digits[1:], 8
	}
	if digits == "" || digits[0] == '-' || digits[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	if negative {
		digits = "-" + digits
	}
	return strconv.ParseInt(digits, base, 64)
}

// strictBool is a key that ZooKeeper accepts as true or false only.
func strictBool(name string, field func(*Config) *bool) key {
	return key{name: name, reach: direct, set: setStrictBool(name, field), show: showBool(field)}
}

func setStrictBool(name string, field func(*Config) *bool) func(*Config, string) (string, error) {
	return func(c *Config, v string) (string, error) {
		b, err := parseBool(name, v)
		if err == nil {
			*field(c) = b
		}
		return "", err
	}
}

func parseBool(name, v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("Invalid option %s for %s. Choose 'true' or 'false.'", shown(v), name)
}

// eitherBool is strictBool for a key that ZooKeeper also takes as -D.
func eitherBool(name string, field func(*Config) *bool) key {
	k := strictBool(name, field)
	k.reach = either
	return k
}

// eitherInt is strictInt for a key that ZooKeeper also takes as -D.
func eitherInt(name string, field func(*Config) *int) key {
	k := strictInt(name, field)
	k.reach = either
	return k
}

// propBool is a key that is true when it reads true, and false whatever else it reads.
func propBool(name string, field func(*Config) *bool) key {
	return key{name: name, reach: property, set: setPropBool(field), show: showBool(field)}
}

func setPropBool(field func(*Config) *bool) func(*Config, string) (string, error) {
	return func(c *Config, v string) (string, error) {
		*field(c) = strings.EqualFold(v, "true")
		if !*field(c) && !strings.EqualFold(v, "false") {
			return fmt.Sprintf("%q counts as false, as in ZooKeeper; only true is true", shown(v)), nil
		}
		return "", nil
	}
}

func showBool(field func(*Config) *bool) func(*Config) (string, bool) {
	return func(c *Config) (string, bool) { return strconv.FormatBool(*field(c)), true }
}

// word is a switch that only one literal word throws. ZooKeeper takes no other spelling, true and false included.
func word(name, trigger string, thrown bool, field func(*Config) *bool) key {
	other := map[string]string{"no": "yes", "yes": "no"}[trigger]
	set := func(c *Config, v string) (string, error) {
		*field(c) = !thrown
		if v == trigger {
			*field(c) = thrown
			return "", nil
		}
		if v != other {
			return fmt.Sprintf("%q counts as %s, as in ZooKeeper; only %s means %s", shown(v), other, trigger, trigger), nil
		}
		return "", nil
	}
	show := func(c *Config) (string, bool) {
		if *field(c) == thrown {
			return trigger, true
		}
		return other, true
	}
	return key{name: name, reach: property, set: set, show: show}
}

func text(name string, r reach, field func(*Config) *string) key {
	return key{name: name, reach: r, set: setText(field), show: showText(field)}
}

func setText(field func(*Config) *string) func(*Config, string) (string, error) {
	return func(c *Config, v string) (string, error) {
		*field(c) = v
		return "", nil
	}
}

func showText(field func(*Config) *string) func(*Config) (string, bool) {
	return func(c *Config) (string, bool) { return *field(c), *field(c) != "" }
}

// list is a property with names between commas.
func list(name string, field func(*Config) *[]string) key {
	set := func(c *Config, v string) (string, error) {
		*field(c) = nil
		for item := range strings.SplitSeq(v, ",") {
			if item = trim(item); item != "" {
				*field(c) = append(*field(c), item)
			}
		}
		return "", nil
	}
	show := func(c *Config) (string, bool) { return strings.Join(*field(c), ","), len(*field(c)) > 0 }
	return key{name: name, reach: property, set: set, show: show}
}

// oneOf is a property that takes one of a few words, in upper or lower case.
func oneOf(name string, field func(*Config) *string, words ...string) key {
	set := func(c *Config, v string) (string, error) {
		for _, w := range words {
			if strings.EqualFold(v, w) {
				*field(c) = w
				return "", nil
			}
		}
		return fmt.Sprintf("%q is not one of %s", shown(v), strings.Join(words, ", ")), nil
	}
	return key{name: name, reach: property, set: set, show: showText(field)}
}

func port(name string, field func(*Config) *int) key {
	return key{name: name, reach: direct, set: setPort(field), show: showPort(field)}
}

// setPort parses a port of a direct key. 0 is the same as no port at all.
func setPort(field func(*Config) *int) func(*Config, string) (string, error) {
	return func(c *Config, v string) (string, error) {
		n, err := parseInt32(v)
		if err != nil {
			return "", err
		}
		if n < 0 || n > math.MaxUint16 {
			return "", fmt.Errorf("port out of range:%d", n)
		}
		*field(c) = n
		if n == 0 {
			*field(c) = Unset
		}
		return "", nil
	}
}

func showPort(field func(*Config) *int) func(*Config) (string, bool) {
	return func(c *Config) (string, bool) { return strconv.Itoa(*field(c)), *field(c) > 0 }
}

func setCompression(c *Config, v string) (string, error) {
	switch v {
	case "gz", "snappy", "":
		c.SnapshotCompression = v
		return "", nil
	}
	c.SnapshotCompression = ""
	return fmt.Sprintf("%q is not gz or snappy, snapshots are not compressed, as ZooKeeper does", shown(v)), nil
}

func setPeerType(c *Config, v string) (string, error) {
	switch lower := strings.ToLower(v); lower {
	case "observer", "participant":
		c.PeerType = lower
		return "", nil
	}
	return "", fmt.Errorf("Unrecognised peertype: %s", shown(v))
}

// fourLetterWords are the words that ZooKeeper knows. Unknown entries of the list are ignored there.
var fourLetterWords = []string{
	"conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr", "ruok", "srst", "srvr", "stat", "stmk",
	"wchc", "wchp", "wchs",
}

func setWords(c *Config, v string) (remark string, err error) {
	c.FourLetterWords = nil
	var unknown []string
	for w := range strings.SplitSeq(v, ",") {
		w = trim(w)
		if w == "" {
			continue
		}
		if w != "*" && !slices.Contains(fourLetterWords, w) {
			unknown = append(unknown, shown(w))
			continue
		}
		if !slices.Contains(c.FourLetterWords, w) {
			c.FourLetterWords = append(c.FourLetterWords, w)
		}
	}
	if unknown != nil {
		remark = "not a four-letter word, ignored: " + shown(strings.Join(unknown, ", "))
	}
	return remark, nil
}

func showWords(c *Config) (string, bool) {
	return strings.Join(c.FourLetterWords, ", "), len(c.FourLetterWords) > 0
}
