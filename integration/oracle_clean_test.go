//go:build interop && linux

package integration

import (
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"zabra/integration/harness"
)

// reservedNodes are those that every server has and that cannot be deleted.
var reservedNodes = []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}

// oracleAdmin is a session of the super user beside those of a run.
type oracleAdmin struct {
	side *oracleSide
	one  *oracleSession
}

func (s *oracleSide) admin() (*oracleAdmin, error) {
	a := &oracleAdmin{side: s, one: &oracleSession{name: "admin"}}
	s.open(a.one, &oracleConnect{timeout: oracleTimeoutMs})
	if a.one.conn == nil {
		return nil, fmt.Errorf("no session: %v", a.one.out)
	}
	_, err := a.call(authReq("digest", harness.SuperAuth))
	return a, err
}

// call returns the line of the answer.
func (a *oracleAdmin) call(q oracleReq) (string, error) {
	a.one.out = nil
	if a.one.conn == nil {
		return "", fmt.Errorf("the connection is gone before %s", q.text)
	}
	a.side.send(a.one, []oracleReq{q})
	if len(a.one.out) != 1 || !strings.HasPrefix(a.one.out[0], "reply ") {
		return "", fmt.Errorf("%s: %v", q.text, a.one.out)
	}
	return a.one.out[0], nil
}

func (a *oracleAdmin) close() error {
	_, err := a.call(closeReq())
	if a.one.conn != nil {
		a.one.conn.Close()
	}
	return err
}

// paths returns all paths of the tree, parents first.
func (a *oracleAdmin) paths(top string) ([]string, error) {
	list := []string{top}
	q := readReq(opGetChildren, top, 0)
	frame := q.frame(1, 0)
	if _, err := a.one.conn.Write(frame); err != nil {
		return nil, err
	}
	body, err := a.one.conn.frame()
	if err != nil {
		return nil, err
	}
	r := &oracleReader{b: body}
	if r.i32(); r.i64() < 0 || r.i32() != 0 {
		return nil, fmt.Errorf("children of %q: %x", top, body)
	}
	var names []string
	for n := r.i32(); n > 0 && !r.short; n-- {
		names = append(names, string(r.take(int(r.i32()))))
	}
	sort.Strings(names)
	for _, name := range names {
		below, err := a.paths(strings.TrimSuffix(top, "/") + "/" + name)
		if err != nil {
			return nil, err
		}
		list = append(list, below...)
	}
	return list, nil
}

// clean empties the tree and returns what the reserved nodes are like then. The run begins at the zxid that it ends with.
func (s *oracleSide) clean() ([]string, error) {
	a, err := s.admin()
	if err != nil {
		return nil, err
	}
	paths, err := a.paths("/")
	if err != nil {
		return nil, err
	}
	for i := len(paths) - 1; i >= 0; i-- {
		if reserved(paths[i]) {
			continue
		}
		if line, err := a.call(deleteReq(paths[i], -1)); err != nil || !strings.Contains(line, " err0") {
			return nil, fmt.Errorf("delete %q: %s %w", paths[i], line, err)
		}
	}
	var lines []string
	for _, path := range reservedNodes {
		acl := openEntries
		if path == "/zookeeper/config" {
			acl = []oracleACL{{1, "world", "anyone"}}
		}
		for _, q := range []oracleReq{setACLReq(path, acl, -1), setDataReq(path, "", -1)} {
			if line, err := a.call(q); err != nil || !strings.Contains(line, " err0") {
				return nil, fmt.Errorf("%s: %s %w", q.text, line, err)
			}
		}
		line, err := a.call(readReq(opExists, path, 0))
		if err != nil {
			return nil, err
		}
		lines = append(lines, path+counters(line))
	}
	if err := a.close(); err != nil {
		return nil, err
	}
	s.view.base = s.view.last
	return lines, nil
}

// counters cuts the versions out of a line with a stat: zxids of the past do not matter.
func counters(line string) string {
	var keep []string
	for _, field := range strings.Fields(line) {
		if field[0] == 'v' || strings.HasPrefix(field, "cv") || strings.HasPrefix(field, "av") {
			keep = append(keep, field)
		}
	}
	return " " + strings.Join(keep, " ")
}

func reserved(path string) bool {
	for _, r := range reservedNodes {
		if path == r {
			return true
		}
	}
	return false
}

// dump tells the whole tree, and what the server counts of it.
func (s *oracleSide) dump() map[string][]string {
	a, err := s.admin()
	if err != nil {
		return map[string][]string{"error": {err.Error()}}
	}
	out := map[string][]string{}
	paths, err := a.paths("/")
	if err != nil {
		return map[string][]string{"error": {err.Error()}}
	}
	for _, path := range paths {
		for _, op := range []int32{opGetData, opGetACL} {
			line, err := a.call(readReq(op, path, 0))
			if err != nil {
				return map[string][]string{"error": {err.Error()}}
			}
			out[path] = append(out[path], line)
		}
	}
	for _, word := range []string{"wchp", "dump"} {
		text, err := harness.FourLetter(s.server.Addr(), word)
		if err != nil {
			return map[string][]string{"error": {err.Error()}}
		}
		// Of the three parts of dump, those about sessions and connections depend on the clock.
		if _, below, ok := strings.Cut(text, "ephemeral nodes dump:\n"); ok {
			text, _, _ = strings.Cut(below, "Connections dump:\n")
		}
		out[word] = s.view.underPaths(text)
	}
	values, err := harness.Monitor(s.server.Addr())
	if err != nil {
		return map[string][]string{"error": {err.Error()}}
	}
	for _, name := range []string{"znode_count", "watch_count", "ephemerals_count", "global_sessions"} {
		out["mntr"] = append(out["mntr"], name+" "+values[name])
	}
	_ = a.close()
	return out
}

var sessionInText = regexp.MustCompile(`0x[0-9a-f]+`)

// underPaths tells the part of an answer to a four-letter word that lists lines below a head: "path session" of wchp,
// "session: path" of dump. Session ids become names, and the order, which is none, is that of the text. A head with
// nothing below it does not count: ZooKeeper keeps some sessions whose last ephemeral node is gone. Nor does a watch on a
// null path, which has no text.
func (v *oracleView) underPaths(text string) (lines []string) {
	head := ""
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		line = sessionInText.ReplaceAllStringFunc(line, func(id string) string {
			n, err := strconv.ParseUint(id[2:], 16, 64)
			if name, ok := v.sessions[int64(n)]; err == nil && ok {
				return name
			}
			return id
		})
		switch {
		case !strings.HasPrefix(line, "\t"):
			head = line
		case head != "" && head != "null":
			lines = append(lines, head+" "+line[1:])
		}
	}
	sort.Strings(lines)
	return lines
}

// closeAll ends all sessions, so that none of them ends by itself in a later run.
func (s *oracleSide) closeAll() {
	for _, one := range append(s.left, s.sessions...) {
		if one.old != nil {
			one.old.Close()
		}
		if one.conn == nil && one.id != 0 {
			s.connect(one, &oracleConnect{timeout: oracleTimeoutMs})
		}
		if one.conn != nil {
			s.send(one, []oracleReq{closeReq()})
		}
		if one.conn != nil {
			one.conn.Close()
		}
	}
}

// renew starts both servers with new data.
func (p *oraclePair) renew() error {
	for _, server := range p.servers {
		server.Kill()
		if err := os.RemoveAll(server.DataDir()); err != nil {
			return err
		}
		if err := server.Start(); err != nil {
			return err
		}
	}
	p.runs = 0
	return nil
}
