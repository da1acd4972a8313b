package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"zabra/server/client"
	"zabra/wire"
)

func treeCommands() []*command {
	force := flag{name: "force", help: "Overwrite what exists"}
	return []*command{
		{name: "tree", usage: "[-d depth] [-s] [path]", own: true, run: tree, flags: []flag{
			{name: "d", value: "depth", help: "Show this many levels only"}, {name: "s", help: "Show bytes, children and kind of each node"},
		}},
		{name: "du", usage: "[path]", own: true, run: diskUsage},
		{name: "watch", usage: "[-n count] path", own: true, argsMin: 1, run: watchPath, flags: []flag{
			{name: "n", value: "count", help: "End after this many events"},
		}},
		{name: "export", usage: "[--force] path [file]", own: true, argsMin: 1, run: export, flags: []flag{force}},
		{name: "import", usage: "[--force] file [path]", own: true, argsMin: 1, path: -1, run: importFile, flags: []flag{force}},
		{name: "diff", usage: "[--other host:port] path [path2]", own: true, argsMin: 1, path: 2, run: diff, flags: []flag{
			{name: "other", value: "servers", help: "The second path is at these servers"},
		}},
	}
}

// pathOrRoot is the first argument, or the root.
func (c *call) pathOrRoot() string {
	if len(c.args) > 0 {
		return c.args[0]
	}
	return "/"
}

// subtree walks with a bar.
func (c *call) subtree(s *session, path string, opt walkOptions) (*node, error) {
	bar := c.bar("nodes found", 0)
	defer bar.end()
	visit := opt.visit
	opt.visit = func(level []*node) error {
		bar.add(len(level))
		if visit != nil {
			return visit(level)
		}
		return nil
	}
	return s.walk(c.ctx, path, opt)
}

func tree(c *call) error {
	opt := walkOptions{}
	trouble, tell := c.collect()
	opt.trouble = tell
	if text, ok := c.flags.value("d"); ok {
		depth, err := strconv.Atoi(text)
		if err != nil || depth < 1 {
			return fmt.Errorf("-d %s: it must be a number of levels, 1 or more", text)
		}
		opt.depth = depth
	}
	top, err := c.subtree(c.sess, c.pathOrRoot(), opt)
	if err != nil {
		return err
	}
	t := treePrinter{w: c.out, stat: c.flags.has("s"), depth: opt.depth}
	fmt.Fprintln(c.out, top.path+t.facts(top))
	t.below(top, "", 1)
	fmt.Fprintf(c.out, "\n%d nodes\n", t.count+1)
	return trouble()
}

// treePrinter draws a subtree.
type treePrinter struct {
	w     io.Writer
	stat  bool
	depth int
	count int
}

func (t *treePrinter) below(n *node, indent string, depth int) {
	if t.depth > 0 && depth > t.depth {
		return
	}
	children := slices.DeleteFunc(slices.Clone(n.children), func(c *node) bool { return c.gone })
	for i, child := range children {
		branch, more := "├── ", "│   "
		if i == len(children)-1 {
			branch, more = "└── ", "    "
		}
		t.count++
		fmt.Fprintln(t.w, indent+branch+child.name()+t.facts(child))
		t.below(child, indent+more, depth+1)
	}
}

// facts is what -s shows of a node.
func (t *treePrinter) facts(n *node) string {
	if !t.stat {
		return ""
	}
	text := fmt.Sprintf("  [%d bytes", n.stat.DataLength)
	if n.stat.NumChildren > 0 {
		text += fmt.Sprintf(", %d children", n.stat.NumChildren)
	}
	if n.stat.EphemeralOwner != 0 {
		text += fmt.Sprintf(", ephemeral of 0x%x", uint64(n.stat.EphemeralOwner))
	}
	return text + "]"
}

func (n *node) name() string { return n.path[strings.LastIndexByte(n.path, '/')+1:] }

// usage is what a subtree holds.
type usage struct {
	path  string
	nodes int
	bytes int64
}

func (n *node) usage() usage {
	u := usage{path: n.path}
	for _, m := range n.flatten() {
		u.nodes++
		u.bytes += int64(m.stat.DataLength)
	}
	return u
}

// diskUsage lists the children of a node with the nodes and the bytes of data that each subtree has, the largest first.
func diskUsage(c *call) error {
	trouble, tell := c.collect()
	top, err := c.subtree(c.sess, c.pathOrRoot(), walkOptions{trouble: tell})
	if err != nil {
		return err
	}
	var all []usage
	for _, child := range top.children {
		if !child.gone {
			all = append(all, child.usage())
		}
	}
	slices.SortFunc(all, func(a, b usage) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.nodes, a.nodes), strings.Compare(a.path, b.path))
	})
	fmt.Fprintf(c.out, "%12s %10s  %s\n", "BYTES", "NODES", "PATH")
	for _, u := range append(all, top.usage()) {
		fmt.Fprintf(c.out, "%12d %10d  %s\n", u.bytes, u.nodes, u.path)
	}
	return trouble()
}

// watchPath prints a line for everything that happens at a node or below it, until Ctrl-C.
func watchPath(c *call) error {
	path, left := c.args[0], 0
	if text, ok := c.flags.value("n"); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-n %s: it must be a number of events, 1 or more", text)
		}
		left = n
	}
	ctx, enough := context.WithCancel(c.ctx)
	defer enough()
	count := 0
	stream := func(n notice) {
		if n.typ == "None" {
			c.watchState(n.state, enough)
			return
		}
		if count++; left > 0 && count > left {
			return
		}
		c.printEvent(n)
		if count == left {
			enough()
		}
	}
	inside := c.sess.inside(path)
	had := c.sess.watches.has(watchRecursive, inside)
	c.stream.Store(&stream)
	defer c.stream.Store(nil)
	err := c.sess.watch(watchRecursive, path, func() error {
		return c.sess.do(ctx, path, func(zk *client.Client, inside string) error {
			return zk.AddWatch(ctx, inside, wire.AddWatchPersistentRecursive)
		})
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.err, "watching %s and what is below it, Ctrl-C ends\n", path)
	<-ctx.Done()
	if !had {
		c.unwatch(path, inside)
	}
	if !c.alive() {
		return &opError{path: path, err: wire.CodeSessionExpired}
	}
	return errDone
}

// errDone is the end of a command that Ctrl-C ends in the ordinary way.
var errDone = errors.New("done")

func (c *call) unwatch(path, inside string) {
	c.sess.watches.remove(watchRecursive, inside)
	ctx, cancel := context.WithTimeout(context.Background(), closeMax)
	defer cancel()
	c.sess.do(ctx, path, func(zk *client.Client, inside string) error { // otherwise it ends with the session
		return zk.RemoveWatches(ctx, inside, wire.WatchTypePersistentRecursive)
	})
}

// watchState tells when events may be missing.
func (c *call) watchState(name string, enough func()) {
	switch name {
	case "Disconnected":
		fmt.Fprintln(c.err, "the connection is lost: what changes until the next line is not shown")
	case "SyncConnected", "ConnectedReadOnly":
		fmt.Fprintln(c.err, "connected again")
	default:
		fmt.Fprintln(c.err, "the session is over: "+name)
		enough()
	}
}

var eventColours = map[string]string{"NodeCreated": colourAdded, "NodeDeleted": colourRemoved, "NodeDataChanged": colourWarning}

func (c *call) printEvent(n notice) {
	typ := fmt.Sprintf("%-19s", n.typ)
	if c.opt.Color {
		typ = colour(cmp.Or(eventColours[n.typ], colourEvent), typ)
	}
	fmt.Fprintf(c.out, "%s %s zxid=0x%x %s\n", time.Now().Format("2006-01-02T15:04:05.000Z07:00"), typ, uint64(n.zxid), n.path)
}
