package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"zabra/wire"
)

// side is one of two subtrees that are compared.
type side struct {
	sess *session
	root string
	// nodes are by their path below root, without ephemeral nodes.
	nodes      map[string]*node
	ephemerals int
}

// diff compares two subtrees: which nodes there are, their data and their access control lists. Differences are the exit
// code 1, as with the diff of files.
func diff(c *call) error {
	a := &side{sess: c.sess, root: c.args[0]}
	b := &side{sess: c.sess, root: a.root}
	if len(c.args) > 1 {
		b.root = c.args[1]
	}
	if other, ok := c.flags.value("other"); ok {
		sess, err := c.otherSession(other)
		if err != nil {
			return err
		}
		defer sess.close(false)
		b.sess = sess
	} else if len(c.args) < 2 {
		return errUsage
	}
	for _, s := range []*side{a, b} {
		if err := c.loadSide(s); err != nil {
			return err
		}
	}
	found, err := c.compare(a, b)
	if err != nil {
		return err
	}
	if n := a.ephemerals + b.ephemerals; n > 0 {
		fmt.Fprintf(c.err, "%d ephemeral nodes were not compared\n", n)
	}
	if found > 0 {
		fmt.Fprintf(c.err, "%d differences\n", found)
		return errTold
	}
	return nil
}

// otherSession connects to other servers, with the identities and the TLS of this session.
func (c *call) otherSession(text string) (*session, error) {
	servers, err := parseServers(text)
	if err != nil {
		return nil, err
	}
	cfg := c.sess.cfg
	cfg.servers, cfg.notify, cfg.changed = servers, func(notice) {}, nil
	s := openSession(cfg)
	c.sess.mu.Lock()
	auths := slices.Clone(c.sess.auths)
	c.sess.mu.Unlock()
	_, err = s.connection(c.ctx, false)
	for i := 0; i < len(auths) && err == nil; i++ {
		err = s.addAuth(c.ctx, auths[i].scheme, auths[i].auth)
	}
	if err != nil {
		s.close(false)
		return nil, &opError{err: err}
	}
	return s, nil
}

func (c *call) loadSide(s *side) error {
	skip := func(path string) bool { return s.sess.inside(path) == "/zookeeper" }
	top, err := c.subtree(s.sess, s.root, walkOptions{skip: skip})
	if err != nil {
		return err
	}
	var kept []*node
	kept, s.ephemerals = withoutEphemerals(top.flatten())
	s.nodes = make(map[string]*node, len(kept))
	for _, n := range kept {
		s.nodes[relative(s.root, n.path)] = n
	}
	return nil
}

// compare prints the differences, sorted by path, and counts them.
func (c *call) compare(a, b *side) (found int, err error) {
	var both []string
	lines := map[string]string{}
	for path := range a.nodes {
		if b.nodes[path] == nil {
			lines[path] = "-"
		} else {
			both = append(both, path)
		}
	}
	for path := range b.nodes {
		if a.nodes[path] == nil {
			lines[path] = "+"
		}
	}
	slices.Sort(both)
	bar := c.bar("nodes compared", len(both))
	for chunk := range slices.Chunk(both, diffChunkNodes) {
		if err := c.compareChunk(a, b, chunk, lines); err != nil {
			return 0, err
		}
		bar.add(len(chunk))
	}
	bar.end()
	for _, path := range slices.Sorted(maps.Keys(lines)) {
		c.printDifference(lines[path], cmp.Or(path, "/"))
	}
	return len(lines), nil
}

// content is what is compared of a node.
type content struct {
	data []byte
	acl  []wire.ACL
}

func (c *call) compareChunk(a, b *side, paths []string, lines map[string]string) error {
	first, err := c.readSide(a, paths)
	if err != nil {
		return err
	}
	second, err := c.readSide(b, paths)
	if err != nil {
		return err
	}
	for _, path := range paths {
		x, y := first[path], second[path]
		switch {
		case x == nil && y == nil: // both removed meanwhile
		case x == nil:
			lines[path] = "+"
		case y == nil:
			lines[path] = "-"
		default:
			if what := x.differs(y); what != "" {
				lines[path] = what
			}
		}
	}
	return nil
}

func (c *call) readSide(s *side, paths []string) (map[string]*content, error) {
	nodes := make([]*node, len(paths))
	for i, path := range paths {
		nodes[i] = s.nodes[path]
	}
	out := make(map[string]*content, len(paths))
	err := c.contents(s.sess, nodes, func(n *node, data []byte, acl []wire.ACL) error {
		out[relative(s.root, n.path)] = &content{data, acl}
		return nil
	})
	if err != nil && s.sess != c.sess {
		err = errors.Join(fmt.Errorf("at %s:", s.sess.cfg.servers.text), err)
	}
	return out, err
}

// differs tells in what two nodes differ, "" if in nothing.
func (x *content) differs(y *content) string {
	var parts []string
	if !bytes.Equal(x.data, y.data) || (x.data == nil) != (y.data == nil) {
		parts = append(parts, fmt.Sprintf("data %s, %s", size(x.data), size(y.data)))
	}
	if !slices.Equal(x.acl, y.acl) {
		parts = append(parts, fmt.Sprintf("acl %s, %s", aclTexts(x.acl), aclTexts(y.acl)))
	}
	return strings.Join(parts, "; ")
}

func size(data []byte) string {
	if data == nil {
		return "null"
	}
	return fmt.Sprintf("%d bytes", len(data))
}

func aclTexts(acl []wire.ACL) string {
	texts := make([]string, len(acl))
	for i := range acl {
		texts[i] = aclText(&acl[i])
	}
	return strings.Join(texts, ",")
}

// printDifference prints a line: + and - for nodes that only the second or the first side has, ~ for those that differ.
func (c *call) printDifference(what, path string) {
	line, col := c.shown("~ "+path+"  "+what), colourWarning
	switch what {
	case "+":
		line, col = c.shown("+ "+path), colourAdded
	case "-":
		line, col = c.shown("- "+path), colourRemoved
	}
	if c.opt.Color {
		line = colour(col, line)
	}
	fmt.Fprintln(c.out, line)
}
