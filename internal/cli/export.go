package cli

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"zabra/server/client"
	"zabra/wire"
)

// The first line of an export.
const (
	exportFormat  = "zabra-export"
	exportVersion = 1
)

// exportHead begins an export. The nodes follow in an array, each on a line of its own, parents before children.
type exportHead struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Root    string `json:"root"`
}

// exportNode is a node of an export. Path is relative to the root: "" for the root itself, or it begins with a slash.
// Data is in Text if it is UTF-8, else in Base64; a node with null data has neither.
type exportNode struct {
	Path   string      `json:"path"`
	Text   *string     `json:"text,omitempty"`
	Base64 *string     `json:"base64,omitempty"`
	ACL    []exportACL `json:"acl"`
}

// exportACL is an entry of an access control list. Bits holds permissions that have no letter.
type exportACL struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Perms  string `json:"perms"`
	Bits   int32  `json:"bits,omitempty"`
}

func newExportNode(path string, data []byte, acl []wire.ACL) *exportNode {
	n := &exportNode{Path: path, ACL: []exportACL{}}
	switch {
	case data == nil:
	case utf8.Valid(data):
		n.Text = new(string(data))
	default:
		n.Base64 = new(base64.StdEncoding.EncodeToString(data))
	}
	for i := range acl {
		n.ACL = append(n.ACL, exportACL{acl[i].Scheme, acl[i].ID, permText(acl[i].Perms), acl[i].Perms &^ wire.PermAll})
	}
	return n
}

// data returns the node's data, nil for null.
func (n *exportNode) data() ([]byte, error) {
	switch {
	case n.Text != nil && n.Base64 != nil:
		return nil, fmt.Errorf("node %q has both text and base64", n.Path)
	case n.Text != nil:
		return []byte(*n.Text), nil
	case n.Base64 != nil:
		return base64.StdEncoding.DecodeString(*n.Base64)
	}
	return nil, nil
}

func (n *exportNode) acl() ([]wire.ACL, error) {
	var out []wire.ACL
	for _, a := range n.ACL {
		entry := wire.ACL{Scheme: a.Scheme, ID: a.ID, Perms: a.Bits}
		for _, p := range permLetters {
			if strings.IndexByte(a.Perms, p.letter) >= 0 {
				entry.Perms |= p.bit
			}
		}
		if permText(entry.Perms) != a.Perms {
			return nil, fmt.Errorf("node %q: permissions %q: they are some of the letters cdrwa, in this order", n.Path, a.Perms)
		}
		out = append(out, entry)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("node %q has no access control list", n.Path)
	}
	return out, nil
}

// relative is a path below root, "" for root itself.
func relative(root, path string) string {
	if root == "/" {
		return strings.TrimSuffix(path, "/")
	}
	return path[len(root):]
}

// exportFile is where an export goes, "-" for stdout.
func exportFile(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return "-"
}

// isDocument tells whether a command writes an export to stdout.
func isDocument(words []string) bool {
	if len(words) == 0 {
		return false
	}
	cmd := lookupCommand(words[0])
	if cmd == nil || cmd.name != "export" {
		return false
	}
	_, args, err := parseFlags(cmd.flags, words[1:])
	return err == nil && exportFile(args) == "-"
}

// export writes a subtree to a file or to stdout.
func export(c *call) error {
	file := exportFile(c.args)
	if file == "-" {
		defer c.document.Store(c.document.Swap(true))
		w := bufio.NewWriter(c.out)
		return errors.Join(c.exportTo(w, c.args[0]), w.Flush())
	}
	if _, err := os.Stat(file); err == nil && !c.flags.has("force") {
		return fmt.Errorf("%s exists, --force overwrites it", file)
	}
	// Under its name the file appears when it is complete.
	temp, err := os.CreateTemp(filepath.Dir(file), ".zabra-export-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // it is gone already if all went well
	w := bufio.NewWriter(temp)
	err = errors.Join(c.exportTo(w, c.args[0]), w.Flush(), temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), file)
}

func (c *call) exportTo(w io.Writer, root string) error {
	// What servers keep for themselves is no part of the data.
	skip := func(path string) bool { return c.sess.inside(path) == "/zookeeper" }
	top, err := c.subtree(c.sess, root, walkOptions{skip: skip})
	if err != nil {
		return err
	}
	nodes, ephemerals := withoutEphemerals(top.flatten())
	if len(nodes) == 0 {
		return fmt.Errorf("%s is an ephemeral node, which ends with its session: there is nothing to export", root)
	}
	head, err := json.Marshal(exportHead{exportFormat, exportVersion, root})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "{%s,\"nodes\":[", head[1:len(head)-1])
	bar := c.bar("nodes exported", len(nodes))
	written := 0
	err = c.contents(c.sess, nodes, func(n *node, data []byte, acl []wire.ACL) error {
		bar.add(1)
		if !utf8.ValidString(n.path) {
			return fmt.Errorf("%q: a path that is not UTF-8 cannot be exported", n.path)
		}
		line, err := encodeLine(newExportNode(relative(root, n.path), data, acl))
		if err != nil {
			return err
		}
		sep := ",\n"
		if written == 0 {
			sep = "\n"
		}
		written++
		_, err = io.WriteString(w, sep+line)
		return err
	})
	bar.end()
	if err == nil && written == 0 { // it was removed since it was found
		err = &opError{path: root, err: wire.CodeNoNode}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.err, "exported %d nodes, skipped %d ephemeral nodes\n", written, ephemerals)
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

func encodeLine(n *exportNode) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(n)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// withoutEphemerals leaves out the nodes that end with a session, and counts them.
func withoutEphemerals(nodes []*node) (kept []*node, ephemerals int) {
	for _, n := range nodes {
		if n.stat.EphemeralOwner == 0 {
			kept = append(kept, n)
		}
	}
	return kept, len(nodes) - len(kept)
}

// contents reads data and ACL of nodes, in order. Nodes that have been removed meanwhile are left out.
func (c *call) contents(s *session, nodes []*node, take func(n *node, data []byte, acl []wire.ACL) error) error {
	var data wire.DataReply
	gone := false
	return s.pipeline(c.ctx, 2*len(nodes), func(i int) (wire.Op, wire.Record) {
		path := []byte(s.inside(nodes[i/2].path))
		if i%2 == 0 {
			return wire.OpGetData, &wire.PathWatchRequest{Path: path}
		}
		return wire.OpGetACL, &wire.PathRequest{Path: path}
	}, func(i int, answer *client.Call) error {
		n := nodes[i/2]
		if i%2 == 0 {
			data = wire.DataReply{}
			gone = errors.Is(answer.Err, wire.CodeNoNode)
			return c.decode(n, answer, &data)
		}
		var acl wire.ACLReply
		if err := c.decode(n, answer, &acl); err != nil || gone || errors.Is(answer.Err, wire.CodeNoNode) {
			return err
		}
		return take(n, data.Data, acl.ACL)
	})
}

// decode reads an answer about a node; that the node is gone is no error.
func (c *call) decode(n *node, answer *client.Call, into wire.Record) error {
	switch {
	case errors.Is(answer.Err, wire.CodeNoNode):
		return nil
	case answer.Err != nil:
		return &opError{path: n.path, err: answer.Err}
	}
	return answer.Decode(into)
}
