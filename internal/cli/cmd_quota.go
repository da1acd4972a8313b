package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"zabra/server/client"
	"zabra/wire"
)

// Where quotas live: below quotaRoot stands the path again, with these two nodes.
const (
	quotaRoot   = "/zookeeper/quota"
	quotaLimits = "zookeeper_limits"
	quotaStats  = "zookeeper_stats"
)

// quota is what a limits or stats node says; -1 is no limit.
type quota struct{ count, bytes, countHard, bytesHard int64 }

var noQuota = quota{-1, -1, -1, -1}

// parseQuota reads the text of a node. What it does not know or cannot read is no limit.
func parseQuota(text string) quota {
	q := noQuota
	for item := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(item, "=")
		n, err := strconv.ParseInt(strings.TrimRight(value, "="), 10, 64)
		if err != nil {
			n = -1
		}
		switch key {
		case "count":
			q.count = n
		case "bytes":
			q.bytes = n
		case "countHardLimit":
			q.countHard = n
		case "byteHardLimit":
			q.bytesHard = n
		}
	}
	return q
}

func (q quota) String() string {
	return fmt.Sprintf("count=%d,bytes=%d=;byteHardLimit=%d;countHardLimit=%d", q.count, q.bytes, q.bytesHard, q.countHard)
}

// usage is the text of a stats node.
func (q quota) usage() string { return fmt.Sprintf("count=%d,bytes=%d", q.count, q.bytes) }

// part is the limit that an option names.
func (q *quota) part(name string) *int64 {
	switch name {
	case "n":
		return &q.count
	case "b":
		return &q.bytes
	case "N":
		return &q.countHard
	}
	return &q.bytesHard
}

const quotaParts = "nbNB"

func quotaCommands() []*command {
	set := []flag{
		{name: "n", value: "num", help: "Number of nodes, only warned about", group: "q"},
		{name: "b", value: "bytes", help: "Bytes of data, only warned about", group: "q"},
		{name: "N", value: "num", help: "Number of nodes, enforced", group: "q"},
		{name: "B", value: "bytes", help: "Bytes of data, enforced", group: "q"},
	}
	del := make([]flag, len(set))
	for i, f := range set {
		f.value = ""
		del[i] = f
	}
	return []*command{
		{name: "setquota", usage: "-n|-b|-N|-B val path", run: setQuota, flags: set},
		{name: "delquota", usage: "[-n|-b|-N|-B] path", argsMin: 1, run: deleteQuota, flags: del},
		{name: "listquota", usage: "path", argsMin: 1, run: listQuota},
	}
}

// quotaNode is the node of that name for a path, as zkCli puts it together.
func quotaNode(path, name string) string { return quotaRoot + path + "/" + name }

// readQuota reads a quota node. ok is false if there is none.
func (c *call) readQuota(node string) (q quota, ok bool, err error) {
	data, _, err := c.getData(node, false)
	switch {
	case errors.Is(err, wire.CodeNoNode):
		return noQuota, false, nil
	case err != nil:
		return noQuota, false, err
	}
	return parseQuota(string(data)), true, nil
}

func listQuota(c *call) error {
	path := c.args[0]
	limits := quotaNode(path, quotaLimits)
	fmt.Fprintln(c.err, "absolute path is "+limits)
	q, ok, err := c.readQuota(limits)
	if err != nil {
		return err
	}
	if !ok {
		fmt.Fprintf(c.err, "quota for %s does not exist.\n", path)
		return nil
	}
	fmt.Fprintf(c.out, "Output quota for %s %s\n", path, q)
	stats, ok, err := c.readQuota(quotaNode(path, quotaStats))
	if ok {
		fmt.Fprintf(c.out, "Output stat for %s %s\n", path, stats.usage())
	}
	return err
}

// wanted reads the limit that setquota is to set.
func (c *call) wanted() (name string, limit int64, err error) {
	for _, part := range strings.Split(quotaParts, "") {
		text, ok := c.flags.value(part)
		if !ok {
			continue
		}
		counts := part == "n" || part == "N"
		bits := 64
		if counts {
			bits = 32
		}
		limit, err = strconv.ParseInt(text, 10, bits)
		switch {
		case err != nil:
			return "", 0, errors.New("NumberFormatException happens when parsing the option value")
		case counts && limit <= 0:
			return "", 0, errors.New("the num quota must be greater than zero")
		case limit < 0:
			return "", 0, errors.New("the bytes quota must be greater than or equal to zero")
		}
		return part, limit, nil
	}
	return "", 0, errors.New("Missing required option: [-n num soft quota, -b bytes soft quota, -N num hard quota, -B bytes hard quota]")
}

func setQuota(c *call) error {
	name, limit, err := c.wanted()
	switch {
	case err != nil:
		return err
	case len(c.args) < 1:
		return errUsage
	}
	path := c.args[0]
	if path == quotaRoot || strings.HasPrefix(path, quotaRoot+"/") {
		return errors.New("cannot set a quota under the path: " + path)
	}
	if err := c.quotaAllowed(path); err != nil {
		return err
	}
	limits := quotaNode(path, quotaLimits)
	q, exists, err := c.readQuota(limits)
	if err != nil {
		return err
	}
	*q.part(name) = limit
	if exists {
		err = c.put(limits, q.String())
	} else {
		err = c.createQuota(path, q)
	}
	if err != nil {
		return err
	}
	return c.warnQuota(path, q)
}

// quotaAllowed checks that the node exists and that no quota stands above or below it.
func (c *call) quotaAllowed(path string) error {
	if path == "/" { // its quota would have no effect
		return pathError("Path must not end with / character")
	}
	err := c.sess.do(c.ctx, path, func(zk *client.Client, inside string) error {
		_, err := zk.Exists(c.ctx, inside, false)
		return err
	})
	if errors.Is(err, wire.CodeNoNode) {
		return errors.New(path + " does not exist.")
	}
	for above := parentOf(path); err == nil && above != "/"; above = parentOf(above) {
		var has bool
		if _, has, err = c.readQuota(quotaNode(above, quotaLimits)); has {
			return fmt.Errorf("%s has a parent %s which has a quota", path, above)
		}
	}
	if err != nil {
		return err
	}
	_, err = c.sess.walk(c.ctx, quotaRoot+path, walkOptions{visit: func(level []*node) error {
		for _, n := range level {
			owner, is := strings.CutSuffix(strings.TrimPrefix(n.path, quotaRoot), "/"+quotaLimits)
			if is && owner != path {
				return fmt.Errorf("%s has a child %s which has a quota", path, owner)
			}
		}
		return nil
	}})
	if errors.Is(err, wire.CodeNoNode) {
		return nil
	}
	return err
}

// createQuota makes the nodes of a quota, those above them included.
func (c *call) createQuota(path string, q quota) error {
	at := quotaRoot
	for name := range strings.SplitSeq(path[1:], "/") {
		at = join(at, name)
		if err := c.make(at, nil); err != nil && !errors.Is(err, wire.CodeNodeExists) {
			return err
		}
	}
	if err := c.make(join(at, quotaLimits), []byte(q.String())); err != nil {
		return err
	}
	return c.make(join(at, quotaStats), []byte(quota{}.usage()))
}

func (c *call) make(path string, data []byte) error {
	return c.sess.do(c.ctx, path, func(zk *client.Client, inside string) error {
		_, err := zk.Create(c.ctx, inside, data, wire.OpenACL, wire.FlagPersistent)
		return err
	})
}

func (c *call) put(path, data string) error {
	return c.sess.do(c.ctx, path, func(zk *client.Client, inside string) error {
		_, err := zk.SetData(c.ctx, inside, []byte(data), -1)
		return err
	})
}

// warnQuota tells if there is more already than the quota allows.
func (c *call) warnQuota(path string, q quota) error {
	used, ok, err := c.readQuota(quotaNode(path, quotaStats))
	if !ok {
		return err
	}
	over := func(limit, used int64) bool { return limit > -1 && limit < used }
	if over(q.count, used.count) || over(q.countHard, used.count) {
		fmt.Fprintf(c.out, "[Warning]: the count quota you create is less than the existing count:%d\n", used.count)
	}
	if over(q.bytes, used.bytes) || over(q.bytesHard, used.bytes) {
		fmt.Fprintf(c.out, "[Warning]: the bytes quota you create is less than the existing bytes:%d\n", used.bytes)
	}
	return nil
}

// deleteQuota takes one limit away, or the whole quota with the nodes above it that nothing else needs.
func deleteQuota(c *call) error {
	path := c.args[0]
	limits := quotaNode(path, quotaLimits)
	q, ok, err := c.readQuota(limits)
	if err != nil {
		return err
	}
	if !ok {
		fmt.Fprintln(c.out, "Quota does not exist for "+path)
		return nil
	}
	for part := range strings.SplitSeq(quotaParts, "") {
		if c.flags.has(part) {
			*q.part(part) = -1
			return c.put(limits, q.String())
		}
	}
	for _, node := range []string{limits, quotaNode(path, quotaStats)} {
		if err := c.remove(node); err != nil {
			return err
		}
	}
	for at := quotaRoot + path; at != quotaRoot; at = parentOf(at) {
		if err := c.remove(at); errors.Is(err, wire.CodeNotEmpty) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a node, which may be gone already.
func (c *call) remove(path string) error {
	err := c.sess.do(c.ctx, path, func(zk *client.Client, inside string) error {
		return zk.Delete(c.ctx, inside, -1)
	})
	if errors.Is(err, wire.CodeNoNode) {
		return nil
	}
	return err
}
