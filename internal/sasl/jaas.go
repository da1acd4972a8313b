package sasl

import (
	"fmt"
	"strings"
)

// JAAS is a login configuration as Java's ConfigFile reads it:
//
//	Server {
//	    org.apache.zookeeper.server.auth.DigestLoginModule required
//	    user_super="secret"
//	    user_bob="of bob";
//	};
//
// Comments are those of Java. In values ${name} stands for a system property.
type JAAS struct {
	sections map[string]*Section
}

// Section is one named part of a JAAS file.
type Section struct {
	Name string
	// Line is where it begins, from 1.
	Line    int
	Modules []Module
}

// Module is one login module of a section.
type Module struct {
	Class string
	// Flag is required, requisite, sufficient or optional.
	Flag    string
	Options map[string]string
	// Line is where it begins, from 1.
	Line int
}

// FileError says what is wrong with a JAAS file. It shows no value.
type FileError struct {
	// Line is where, from 1.
	Line int
	Text string
}

// Error names the line.
func (e *FileError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// ParseJAAS reads the text of a JAAS file. property knows the system properties that values may name; nil knows none. The
// error is a *FileError.
func ParseJAAS(text []byte, property func(name string) (string, bool)) (*JAAS, error) {
	p := jaasParser{scan: jaasScanner{text: string(text), line: 1}, property: property}
	file := &JAAS{sections: map[string]*Section{}}
	if err := p.next(); err != nil {
		return nil, err
	}
	for p.token.kind != jaasEnd {
		s, err := p.section()
		if err != nil {
			return nil, err
		}
		if first := file.sections[s.Name]; first != nil {
			return nil, &FileError{s.Line, fmt.Sprintf("the section %s is there twice, first on line %d", shown(s.Name), first.Line)}
		}
		if len(file.sections) == jaasEntriesMax {
			return nil, &FileError{s.Line, fmt.Sprintf("more than %d sections", jaasEntriesMax)}
		}
		file.sections[s.Name] = s
	}
	return file, nil
}

// Section returns the section of that name, nil if there is none.
func (j *JAAS) Section(name string) *Section { return j.sections[name] }

// jaasParser reads what a JAAS file says.
type jaasParser struct {
	scan     jaasScanner
	token    jaasToken
	property func(string) (string, bool)
}

func (p *jaasParser) next() (err error) {
	p.token, err = p.scan.next()
	return err
}

// expected complains of the token. Its text is not shown: it may be a password.
func (p *jaasParser) expected(what string) error {
	return &FileError{p.token.line, fmt.Sprintf("%s is expected, and not %s", what, p.token)}
}

// word takes a name or a quoted text.
func (p *jaasParser) word(what string) (string, error) {
	if p.token.kind != jaasWord && p.token.kind != jaasQuoted {
		return "", p.expected(what)
	}
	text := p.token.text
	return text, p.next()
}

// symbol takes one of {, }, = and ;.
func (p *jaasParser) symbol(c byte, where string) error {
	if !p.token.is(c) {
		return p.expected(fmt.Sprintf("%q %s", c, where))
	}
	return p.next()
}

func (p *jaasParser) section() (*Section, error) {
	s := &Section{Line: p.token.line}
	var err error
	if s.Name, err = p.word("the name of a section"); err != nil {
		return nil, err
	}
	if err := p.symbol('{', "behind the name of a section"); err != nil {
		return nil, err
	}
	for !p.token.is('}') {
		m, err := p.module()
		if err != nil {
			return nil, err
		}
		if s.Modules = append(s.Modules, m); len(s.Modules) > jaasEntriesMax {
			return nil, &FileError{m.Line, fmt.Sprintf("more than %d login modules", jaasEntriesMax)}
		}
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	return s, p.symbol(';', "behind the } of a section")
}

func (p *jaasParser) module() (m Module, err error) {
	m = Module{Line: p.token.line, Options: map[string]string{}}
	if m.Class, err = p.word("the class of a login module, or }"); err != nil {
		return m, err
	}
	flagLine := p.token.line
	if m.Flag, err = p.word("required, requisite, sufficient or optional"); err != nil {
		return m, err
	}
	switch m.Flag = strings.ToLower(m.Flag); m.Flag {
	case "required", "requisite", "sufficient", "optional":
	default:
		return m, &FileError{flagLine, "required, requisite, sufficient or optional has to stand behind the class of a login module"}
	}
	for !p.token.is(';') {
		if err := p.option(m.Options); err != nil {
			return m, err
		}
	}
	return m, p.next()
}

// option takes name=value. The last one of several counts, as in Java.
func (p *jaasParser) option(options map[string]string) error {
	line := p.token.line
	name, err := p.word("an option, or ; behind the last one")
	if err != nil {
		return err
	}
	if err := p.symbol('=', "behind the name of an option"); err != nil {
		return err
	}
	raw, err := p.word("the value of an option, in double quotes")
	if err != nil {
		return err
	}
	value, err := p.expand(raw, line)
	if err != nil {
		return err
	}
	if options[name] = value; len(options) > jaasEntriesMax {
		return &FileError{line, fmt.Sprintf("more than %d options", jaasEntriesMax)}
	}
	return nil
}

// expand puts in the system properties that a value names.
func (p *jaasParser) expand(raw string, line int) (string, error) {
	var b strings.Builder
	for rest := raw; ; {
		before, behind, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			break
		}
		name, behind, closed := strings.Cut(behind, "}")
		value, known := "/", name == "/" // which stands for what separates folders
		if !known && p.property != nil {
			value, known = p.property(name)
		}
		if !closed || !known {
			return "", &FileError{line, "the value names a property by ${...} that is not set; set it with -D"}
		}
		b.WriteString(value)
		rest = behind
	}
	if b.Len() > jaasWordBytesMax {
		return "", &FileError{line, fmt.Sprintf("a value of more than %d bytes", jaasWordBytesMax)}
	}
	return b.String(), nil
}
