//go:build interop && linux

package integration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

const (
	oracleSessions  = 4
	oracleTimeoutMs = 40000 // longer than any run, so that no session ends unasked
	// The shortest timeout that the servers grant is 1 s.
	oracleShortTimeoutMs = 1000
)

// oracleGen makes the steps of a run from its seed alone: it knows nothing of what the servers answer.
type oracleGen struct {
	*rand.Rand
	steps []oracleStep
	// auth: lists of permissions are varied, and the sessions have identities.
	auth bool
	// odd is how many paths of a hundred are ones that no sane client sends.
	odd int
	// lasting: what is made has to be the same after a restart of the reference server.
	lasting bool
}

// choice is something to do with its weight.
type choice struct {
	weight int
	do     func(g *oracleGen)
}

// oracleProfile is a kind of run.
type oracleProfile struct {
	name    string
	steps   int
	auth    bool
	odd     int
	reaping bool // needs servers that delete containers and outlived nodes quickly
	choices []choice
}

func (p *oracleProfile) generate(seed uint64) []oracleStep {
	g := &oracleGen{Rand: rand.New(rand.NewPCG(seed, 0x7a61627261)), auth: p.auth, odd: p.odd, lasting: p.name == "restart"}
	total := 0
	for _, c := range p.choices {
		total += c.weight
	}
	for i := range oracleSessions {
		g.add(oracleStep{session: i, act: actOpen, connect: oracleConnect{timeout: oracleTimeoutMs, oldForm: g.chance(30)}})
	}
	if p.auth {
		g.login(1, "ann:a")
		g.login(2, "bob:b")
		g.login(2, "eve:e")
		if g.chance(25) {
			g.login(3, "super:test")
		}
	}
	for len(g.steps) < p.steps {
		at := g.IntN(total)
		for _, c := range p.choices {
			if at -= c.weight; at < 0 {
				c.do(g)
				break
			}
		}
	}
	return g.steps
}

func (g *oracleGen) add(s oracleStep)        { g.steps = append(g.steps, s) }
func (g *oracleGen) chance(percent int) bool { return g.IntN(100) < percent }
func (g *oracleGen) session() int            { return g.IntN(oracleSessions) }

func (g *oracleGen) send(session int, reqs ...oracleReq) {
	step := oracleStep{session: session, act: actSend, reqs: reqs}
	for i := range reqs {
		step.loose = step.loose || reqs[i].op == opCloseSession
	}
	g.add(step)
}

func (g *oracleGen) login(session int, token string) { g.send(session, authReq("digest", token)) }

// revive follows a step that may have ended a connection.
func (g *oracleGen) revive(session int) {
	if g.chance(90) {
		g.add(oracleStep{session: session, act: actEnsure})
	}
}

func pick[T any](g *oracleGen, list ...T) T { return list[g.IntN(len(list))] }

var usualPaths = []string{"/a", "/b", "/a/x", "/a/y", "/a/x/p", "/a/x/q", "/b/x", "/b/y", "/b/x/p", "/a/x/p/z"}

var oddPaths = []string{
	"", "/", "a", "//", "/a/", "/a//x", "//a", "/a/.", "/a/..", "/./a", "/a/x/../y", "/a/.x", "/a/...", "/.", "/..", "a/b", "/ a", "/a b",
	"/a/\x00", "/\x01", "/a\x1f", "/a/\x7f", "/a/\u009f", "/a/\u00a0b", "/a/\u00e9", "/a/\ud7ff", "/a/\ue000", "/a/\uf8ff", "/a/\uf900",
	"/a/\uffef", "/a/\ufff0", "/a/\ufffd", "/a/\uffff", "/a/\U0001F600", "/a/\xff", "/a/\xc0\xaf", "/a/\xe2\x82", "/a/\xed\xa0\xbd", "/\xf0\x9f",
	"/a/\xed\xa0\xbd\xed\xb8\x80", pathNull, "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/x", "/zookeeper/config/x",
	"/zookeeper/quota/a", "/zookeeper/", "/zookeeper//quota", "/zookeeper/quota/zookeeper_stats",
	"/a/s", "/a/s0000000000", "/a/s0000000001", "/a/s0000000002", "/b/s0000000000", "/a/0000000001", "/b/x/s0000000000", "/\u4e2d\u6587",
	"/" + strings.Repeat("n", 300), "/a/" + strings.Repeat("\u00e9", 90),
}

func (g *oracleGen) path() string {
	if g.chance(g.odd) {
		return pick(g, oddPaths...)
	}
	if g.chance(5) {
		return pick(g, "/", "/a/s0000000000", "/a/s0000000001", "/a/x/s0000000002", "/b/s0000000003")
	}
	return pick(g, usualPaths...)
}

func (g *oracleGen) data() string {
	switch g.IntN(10) {
	case 0:
		return ""
	case 1:
		return pathNull
	case 2:
		return strings.Repeat("d", 1+g.IntN(3000))
	case 3:
		return "\xff\x00\xfe"
	default:
		return fmt.Sprintf("data%d", g.IntN(100))
	}
}

func (g *oracleGen) version() int32 {
	if g.chance(60) {
		return -1
	}
	return pick[int32](g, 0, 0, 0, 1, 1, 2, 3, -2, math.MaxInt32, math.MinInt32)
}

// Identities of the sessions in profiles with auth, in their stored form.
const (
	annID = "ann:i9V/d2HTT0sehGWzvQcFNipywIQ="
	bobID = "bob:LcrmCNs/wfVD+i5a5yaz89GyjIM="
)

var oddACLs = [][]oracleACL{
	nil, {}, {{31, "world", "anyone"}, {31, "world", "anyone"}}, {{0, "world", "anyone"}}, {{999, "world", "anyone"}}, {{31, "world", "someone"}},
	{{31, "world", ""}}, {{31, "world", pathNull}}, {{31, pathNull, "anyone"}}, {{31, "auth", pathNull}}, {{31, "auth", "x"}},
	{{31, "digest", "a"}}, {{31, "digest", "a:b"}}, {{31, "digest", ":b"}}, {{31, "digest", "a:b:"}}, {{31, "digest", "a:b:c"}}, {{31, "digest", ""}},
	{{31, "digest", ":"}}, {{31, "digest", "a::"}}, {{31, "digest", "::b"}}, {{31, "digest", pathNull}}, {{31, "ip", "127.0.0.1"}}, {{31, "ip", "127.0.0.0/8"}},
	{{31, "ip", "10.0.0.0/8"}}, {{31, "ip", "1.2.3.4/"}}, {{31, "ip", "1.2.3.4/33"}}, {{31, "ip", "1.2.3.4/-1"}}, {{31, "ip", "1.2.3"}}, {{31, "ip", "01.2.3.4"}},
	{{31, "ip", "0.0.0.0/0"}}, {{31, "ip", "::1"}}, {{31, "ip", "0:0:0:0:0:0:0:1/128"}}, {{31, "ip", "1.2.3.4/8/9"}}, {{31, "ip", "1.2.3.256"}}, {{31, "ip", "host"}},
	{{31, "ip", ""}}, {{31, "ip", "1.2.3.4/+8"}}, {{31, "ip", "1.2.3.4/ 8"}}, {{31, "ip", "+1.2.3.4"}}, {{31, "ip", "::"}}, {{31, "ip", "1::2::3"}}, {{31, "ip", "::ffff:127.0.0.1"}},
	{{31, "ip", "127.0.0.1/0"}}, {{31, "ip", "128.0.0.1/1"}}, {{31, "ip", "1.2.3.4."}}, {{31, "ip", "1..3.4"}}, {{31, "ip", "fe80::1%lo"}}, {{31, "ip", "::1/64"}},
	{{31, "super", ""}}, {{31, "sasl", "bob"}}, {{31, "x509", "CN=a"}}, {{31, "Digest", "a:b"}}, {{31, "", ""}}, {{31, "nonesuch", "x"}},
	{{-1, "world", "anyone"}}, {{31, "auth", ""}, {31, "digest", annID}}, {{1, "auth", ""}, {31, "auth", ""}}, {{31, "world", "anyone"}, {31, "nonesuch", ""}},
	{{31, "digest", "a:\xff"}}, {{31, "digest", "\u00fc:\u4e2d"}},
}

// bigCharacterACL does not live through a restart of the reference server.
var bigCharacterACL = []oracleACL{{31, "digest", "\u00fc:\U0001F600"}}

// acl is open to all in most profiles.
func (g *oracleGen) acl() []oracleACL {
	if !g.auth {
		if g.chance(g.odd / 4) {
			return pick(g, oddACLs...)
		}
		return openEntries
	}
	switch g.IntN(10) {
	case 0, 1, 2, 3:
		return openEntries
	case 4:
		return []oracleACL{{31, "auth", ""}}
	case 5:
		if g.lasting || g.chance(98) {
			return pick(g, oddACLs...)
		}
		return bigCharacterACL
	case 6:
		return []oracleACL{{1, "world", "anyone"}}
	}
	list := make([]oracleACL, 0, 3)
	for range 1 + g.IntN(3) {
		who := pick(g, oracleACL{0, "world", "anyone"}, oracleACL{0, "digest", annID}, oracleACL{0, "digest", bobID}, oracleACL{0, "auth", ""},
			oracleACL{0, "ip", "127.0.0.1"}, oracleACL{0, "ip", "10.1.1.1"})
		who.perms = int32(g.IntN(32))
		list = append(list, who)
	}
	return list
}

// create makes a request for a node of any kind. Those that end the reference server, and those that mean something else
// here on purpose, are left out.
func (g *oracleGen) create() oracleReq {
	path, data, acl := g.path(), g.data(), g.acl()
	flags := pick[int32](g, 0, 0, 0, 0, 0, 0, 1, 2, 3)
	if g.chance(20) && path != pathNull && path != "" && path[len(path)-1] != '/' && !strings.HasPrefix(path, "/zookeeper") {
		path = path[:strings.LastIndexByte(path, '/')+1] + pick(g, "s", "s", "")
		flags = pick[int32](g, 2, 2, 3, 6)
	}
	if g.chance(g.odd / 4) {
		flags = pick[int32](g, 4, 5, 6, 7, -1, math.MaxInt32, math.MinInt32)
	}
	op := pick[int32](g, opCreate, opCreate, opCreate, opCreate2, opCreate2, opCreateContainer, opCreateTTL)
	if op == opCreateContainer && g.chance(80) {
		flags = 4
	}
	if op != opCreateTTL {
		return createReq(op, path, data, acl, flags, 0)
	}
	if g.chance(80) {
		flags = pick[int32](g, 5, 6)
	}
	ttl := pick[int64](g, 1, 1000, 100000, 1<<40-1)
	if g.chance(20) {
		ttl = pick[int64](g, 0, 1<<40, math.MaxInt64)
		if flags == 5 || flags == 6 {
			ttl = pick[int64](g, 0, -1, 1<<40, math.MinInt64)
		}
	}
	return createReq(op, path, data, acl, flags, ttl)
}

func (g *oracleGen) read() oracleReq {
	op := pick[int32](g, opExists, opExists, opGetData, opGetData, opGetChildren, opGetChildren2, opGetACL, opGetAllChildrenNumber, opSync, opGetEphemerals)
	watch := byte(0)
	if g.chance(30) {
		watch = pick[byte](g, 1, 1, 1, 1, 2, 0xff)
	}
	if op == opGetEphemerals && g.chance(60) {
		return readReq(op, pick(g, "/", "", pathNull, " ", "/a", "/a/", "/b/x", " /", "/ ", "x", "\t/\n", "\u00a0", "\u2003", "\x1c", "\x00"), 0)
	}
	return readReq(op, g.path(), watch)
}

// write is one change of the tree, without setACL.
func (g *oracleGen) write() oracleReq {
	switch g.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8:
		return g.create()
	case 9, 10, 11, 12, 13:
		return deleteReq(g.path(), g.version())
	case 14:
		if g.auth {
			return setDataReq(g.path(), g.data(), g.version())
		}
		return readReq(opDeleteContainer, g.path(), 0)
	default:
		return setDataReq(g.path(), g.data(), g.version())
	}
}

func (g *oracleGen) watchOp() oracleReq {
	switch g.IntN(10) {
	case 0, 1, 2:
		return numberReq(opAddWatch, g.path(), pick[int32](g, 0, 0, 0, 1, 1, 1, 1, 2, -1))
	case 3:
		return numberReq(opRemoveWatches, g.path(), pick[int32](g, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0, 6, -1))
	case 4:
		return numberReq(opCheckWatches, g.path(), pick[int32](g, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0, 6))
	default:
		op := pick[int32](g, opExists, opExists, opGetData, opGetChildren, opGetChildren2)
		return readReq(op, g.path(), 1)
	}
}

func (g *oracleGen) setWatches() oracleReq {
	var lists [5][]string
	for i := range lists {
		lists[i] = []string{}
		for range g.IntN(4) {
			lists[i] = append(lists[i], g.path())
		}
		if g.chance(3) {
			lists[i] = nil
		}
	}
	since := int64(g.IntN(len(g.steps) + 2))
	if g.chance(10) {
		since = pick[int64](g, -1, math.MinInt32, math.MaxInt32)
	}
	return setWatchesReq(pick[int32](g, opSetWatches, opSetWatches2, opSetWatches2), since, lists)
}

// sub is an operation of a multi.
func (g *oracleGen) sub() oracleSub {
	switch g.IntN(20) {
	case 0, 1, 2:
		return asSub(versionReq(opCheck, g.path(), g.version()))
	case 4:
		// In a multi createTTL may have any flags: they decide.
		return asSub(createReq(opCreateTTL, g.path(), g.data(), g.acl(), int32(g.IntN(8)), pick[int64](g, -1, 0, 1, 100000)))
	}
	for {
		if q := g.write(); q.op != opDeleteContainer {
			return asSub(q)
		}
	}
}

// spoilt is an operation for which a multi is refused as a whole.
func (g *oracleGen) spoilt() oracleSub {
	create := pick[int32](g, opCreate, opCreate2, opCreateContainer)
	return asSub(pick(g,
		createReq(create, g.path(), "", nil, int32(g.IntN(8)), 0),
		createReq(create, g.path(), "", openEntries, pick[int32](g, 5, 6, 7, -1), 0),
		readReq(pick[int32](g, opGetData, opGetChildren), g.path(), 0),
		deleteReq(pathNull, -1), versionReq(opCheck, pathNull, -1), createReq(create, pathNull, "", openEntries, 0, 0),
		setACLReq(g.path(), openEntries, -1), bareReq(pick[int32](g, 0, 23, -1)),
	))
}

func (g *oracleGen) multi() oracleReq {
	subs := make([]oracleSub, 0, 8)
	for range g.IntN(7) {
		subs = append(subs, g.sub())
	}
	if g.chance(10) {
		subs = append(subs, g.spoilt())
		g.Shuffle(len(subs), func(i, j int) { subs[i], subs[j] = subs[j], subs[i] })
	}
	q := multiReq(opMulti, subs)
	if g.chance(3) {
		q.body = pick(g, nil, q.body[:5], oracleBytes{}.i32(14).u8(1).i32(77), oracleBytes{}.i32(14).u8(2).i32(77))
		q.text += fmt.Sprintf(" ending %x", q.body)
	}
	return q
}

func (g *oracleGen) multiRead() oracleReq {
	var subs []oracleSub
	for range g.IntN(6) {
		q := readReq(pick[int32](g, opGetData, opGetChildren), g.path(), byte(g.IntN(2)))
		if g.chance(4) {
			q = pick(g, g.write(), readReq(opExists, g.path(), 0))
		}
		subs = append(subs, asSub(q))
	}
	return multiReq(opMultiRead, subs)
}

// any is a request of any kind that leaves the connection open.
func (g *oracleGen) any() oracleReq {
	switch g.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6:
		return g.write()
	case 7, 8, 9:
		return g.multi()
	case 10:
		return g.multiRead()
	case 11, 12:
		return g.watchOp()
	case 13:
		return pick(g, bareReq(opWhoAmI), bareReq(opPing))
	case 14:
		return g.setWatches()
	default:
		return g.read()
	}
}
