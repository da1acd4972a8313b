package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"zabra/jute"
)

const (
	goldenTextBytesMax = 200 // longer text is only known by its hash
	goldenHexBytesMax  = 100 // likewise other bytes
	goldenClockSlack   = 2 * time.Minute
)

// goldenNames are the operations by number, as results of a multi are called.
var goldenNames = func() map[int32]string {
	names := map[int32]string{-1: "error"}
	for name, op := range goldenOps {
		names[op] = name
	}
	return names
}()

// goldenObject is one thing that arrived, as in a recording.
type goldenObject = map[string]any

// goldenReader takes the server's frames apart and replaces what differs from run to run.
type goldenReader struct {
	sessions map[int64]string // who first got a session
	times    map[int64]int64  // when a zxid's transaction was made
	base     int64            // the zxid that the server began at: 0, or the beginning of an ensemble's first epoch
}

// bytesValue writes b as a recording does: null, printable text, hex, or a hash.
func bytesValue(b []byte, null bool) any {
	switch {
	case null:
		return nil
	case len(b) <= goldenTextBytesMax && printable(b):
		return string(b)
	case len(b) <= goldenHexBytesMax:
		return goldenObject{"hex": hex.EncodeToString(b)}
	}
	sum := sha256.Sum256(b)
	return goldenObject{"len": len(b), "sha256": hex.EncodeToString(sum[:8])}
}

func printable(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexFunc(b, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// zxidValue is the distance of z from the server's beginning, in a list so that it can be told from other numbers.
func (g *goldenReader) zxidValue(z int64) any {
	if z > 0 {
		z -= g.base
	}
	if z == 0 || z == -1 {
		return z
	}
	return []any{z}
}

// record reads the record of a reply to op.
func (g *goldenReader) record(op int32, d *jute.Decoder, out goldenObject) {
	switch op {
	case 1, 9:
		out["path"] = g.bytes(d)
	case 15, 19, 21:
		out["path"] = g.bytes(d)
		out["stat"] = g.stat(d)
	case 3, 5, 7:
		out["stat"] = g.stat(d)
	case 4, 16:
		out["data"] = g.bytes(d)
		out["stat"] = g.stat(d)
	case 6:
		out["acl"] = g.acl(d)
		out["stat"] = g.stat(d)
	case 8:
		out["children"] = g.list(d)
	case 12:
		out["children"] = g.list(d)
		out["stat"] = g.stat(d)
	case 14, 22:
		out["results"] = g.results(d)
	case 102:
		out["token"] = g.bytes(d)
	case 103:
		out["paths"] = g.list(d)
	case 104:
		out["n"] = d.Int32()
	case 106:
		out["rsp"] = d.Int32()
	case 107:
		out["who"] = g.who(d)
	case 2, 11, 13, 17, 18, 20, 100, 101, 105, -11:
	default:
		if rest := d.Rest(); len(rest) > 0 {
			out["body"] = bytesValue(rest, false)
		}
	}
}

func (g *goldenReader) bytes(d *jute.Decoder) any {
	b := d.Buffer()
	return bytesValue(b, b == nil)
}

// list reads a vector of strings whose order is open.
func (g *goldenReader) list(d *jute.Decoder) any {
	n, null := d.Vector(4)
	if null {
		return nil
	}
	var all [][]byte
	for range n {
		all = append(all, d.Buffer())
	}
	slices.SortFunc(all, bytes.Compare)
	values := make([]any, 0, n)
	for _, b := range all {
		values = append(values, bytesValue(b, b == nil))
	}
	return values
}

func (g *goldenReader) acl(d *jute.Decoder) any {
	n, null := d.Vector(12)
	if null {
		return nil
	}
	entries := make([]any, 0, n)
	for range n {
		entries = append(entries, []any{d.Int32(), g.bytes(d), g.bytes(d)})
	}
	return entries
}

func (g *goldenReader) who(d *jute.Decoder) any {
	n, null := d.Vector(8)
	if null {
		return nil
	}
	var all [][2]string
	for range n {
		all = append(all, [2]string{string(d.Buffer()), string(d.Buffer())})
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0]+"\x00"+a[1], b[0]+"\x00"+b[1]) })
	who := make([]any, 0, n)
	for _, x := range all {
		who = append(who, []any{bytesValue([]byte(x[0]), false), bytesValue([]byte(x[1]), false)})
	}
	return who
}

func (g *goldenReader) results(d *jute.Decoder) any {
	results := []any{}
	for d.Err() == nil {
		op, done, herr := d.Int32(), d.Bool(), d.Int32()
		if done {
			break
		}
		name, ok := goldenNames[op]
		if !ok {
			name = fmt.Sprint(op)
		}
		r := goldenObject{"op": name}
		if op == -1 {
			err := d.Int32()
			r["err"] = err
			if herr != err {
				r["herr"] = herr
			}
		} else {
			g.record(op, d, r)
		}
		results = append(results, r)
	}
	return results
}

func (g *goldenReader) stat(d *jute.Decoder) any {
	cz, mz, ctime, mtime := d.Int64(), d.Int64(), d.Int64(), d.Int64()
	out := goldenObject{"v": d.Int32(), "cv": d.Int32(), "av": d.Int32()}
	if owner := d.Int64(); owner != 0 {
		out["eo"] = g.owner(owner)
	}
	out["dl"], out["nc"] = d.Int32(), d.Int32()
	pz := d.Int64()
	out["cz"], out["mz"], out["pz"] = g.zxidValue(cz), g.zxidValue(mz), g.zxidValue(pz)
	if d.Err() == nil {
		out["t"] = g.timeValue(cz, mz, ctime, mtime)
	}
	return out
}

func (g *goldenReader) owner(id int64) string {
	if name, ok := g.sessions[id]; ok {
		return name
	}
	return fmt.Sprintf("unknown %#x", uint64(id))
}

// timeValue says how a node's times are related, or what is wrong with them.
func (g *goldenReader) timeValue(cz, mz, ctime, mtime int64) string {
	if ctime == 0 && mtime == 0 {
		return "0"
	}
	for _, x := range [][2]int64{{cz, ctime}, {mz, mtime}} {
		z, ms := x[0], x[1]
		if z == 0 || ms == 0 {
			continue
		}
		if seen, ok := g.times[z]; ok && seen != ms {
			return fmt.Sprintf("zxid %d has times %d and %d", z, seen, ms)
		}
		g.times[z] = ms
		if away := time.Since(time.UnixMilli(ms)).Abs(); away > goldenClockSlack {
			return fmt.Sprintf("time %d is %v away from now", ms, away)
		}
	}
	switch {
	case ctime == 0:
		return "0<"
	case cz == mz && ctime == mtime:
		return "="
	case cz < mz && ctime <= mtime:
		return "<="
	}
	return fmt.Sprintf("ctime %d, mtime %d", ctime, mtime)
}

// reply takes a reply to req apart; body is the frame behind its header.
func (g *goldenReader) reply(h goldenHead, d *jute.Decoder, req *goldenRequest, asked bool) goldenObject {
	out := goldenObject{"k": "reply", "err": h.err, "z": g.zxidValue(h.zxid)}
	op := int32(0)
	if req != nil {
		op = req.op
		if req.at >= 0 {
			out["r"] = req.at
		}
	}
	if !asked {
		out["xid"] = h.xid
	}
	if h.err == 0 {
		g.record(op, d, out)
	}
	if d.Err() != nil {
		out["short"] = true
	} else if rest := d.Rest(); len(rest) > 0 {
		out["extra"] = bytesValue(rest, false)
	}
	return out
}

type goldenHead struct {
	xid, err int32
	zxid     int64
}

// event takes a notification apart.
func (g *goldenReader) event(h goldenHead, d *jute.Decoder) goldenObject {
	out := goldenObject{"k": "event", "type": d.Int32()}
	if state := d.Int32(); state != 3 {
		out["state"] = state
	}
	out["path"] = g.bytes(d)
	out["z"] = g.zxidValue(h.zxid)
	if h.err != 0 {
		out["err"] = h.err
	}
	switch {
	case d.Err() != nil:
		out["short"] = true
	case d.Remaining() > 0:
		out["extra"] = bytesValue(d.Rest(), false)
	}
	return out
}
