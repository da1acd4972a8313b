package sim

import (
	"fmt"
	"slices"

	"zabra/zab"
	"zabra/zab/zxid"
)

// FaultKind is what goes wrong.
type FaultKind uint8

// The kinds of faults.
const (
	FaultCrash      FaultKind = iota // a server loses its power
	FaultCrashInIO                   // it does so in the middle of a write to its disk
	FaultKill                        // its process ends, and the others are told
	FaultOutage                      // all servers lose their power
	FaultIsolate                     // nothing gets to a server, and nothing from it
	FaultOneWay                      // nothing gets from one server to another
	FaultDeaf                        // nothing gets to a server
	FaultMute                        // nothing gets from a server
	FaultSplit                       // the servers are in two groups
	FaultBreak                       // connections to a leader break
	FaultHalfOpen                    // they break, and nobody is told
	FaultLinks                       // election links break
	FaultSlowNet                     // messages take long
	FaultSlowDisk                    // a disk takes long
	FaultHang                        // a disk stands still
	FaultFailSync                    // a sync fails: the server stops
	FaultPause                       // a process stands still
	FaultWallClock                   // a wall clock jumps
	FaultClients                     // all clients of a server lose their connections
	FaultSilence                     // a client falls silent until its session is over
	FaultLeftBehind                  // a server is away while all others start anew, so that they have its past on disk only
	FaultBadTail                     // a leader is cut off and starts anew, twice, with a snapshot of what it has not got committed
	FaultShutdown                    // a server gives its role back, closes its disk and ends, as on SIGTERM
	faultKinds
)

var faultNames = [faultKinds]string{"crash", "crash in I/O", "kill", "outage", "isolate", "one way", "deaf", "mute", "split", "break", "half-open",
	"links", "slow network", "slow disk", "hanging disk", "failing sync", "pause", "wall clock", "clients lose", "silent client", "left behind",
	"bad tail", "shutdown"}

// String returns the name of the kind.
func (k FaultKind) String() string { return faultNames[k] }

// point is a moment in the protocol at which a fault may strike.
type point uint8

const (
	pointNone point = iota
	pointNewLeader
	pointAckNewLeader
	pointAckEpoch
	pointLeaderInfo
	pointUpToDate
	pointServing
	pointProposal
	pointTruncate
	pointInstall
	pointSetCurrent
	pointSetAccepted
	pointChunk
	pointSnapshot
	points
)

var pointNames = [points]string{"", "NEWLEADER", "ACK-NEWLEADER", "ACKEPOCH", "LEADERINFO", "UPTODATE", "serving", "PROPOSAL", "truncation",
	"installation", "current epoch", "accepted epoch", "chunk", "snapshot"}

func pointOfMessage(k zab.MessageKind) point {
	switch k {
	case zab.MessageAckNewLeader:
		return pointAckNewLeader
	case zab.MessageAckEpoch:
		return pointAckEpoch
	case zab.MessageLeaderInfo:
		return pointLeaderInfo
	case zab.MessageProposal:
		return pointProposal
	}
	return pointNone
}

func pointOfOp(k zab.PersistKind) point {
	switch k {
	case zab.PersistTruncate:
		return pointTruncate
	case zab.PersistInstallSnapshot:
		return pointInstall
	case zab.PersistSetCurrent:
		return pointSetCurrent
	case zab.PersistSetAccepted:
		return pointSetAccepted
	}
	return pointNone
}

// Fault is one thing that goes wrong. What it hits may depend on what is there when it strikes.
type Fault struct {
	Kind FaultKind
	At   Micros // it strikes then, or is armed then if there is a point
	For  Micros // how long it lasts, or how long a crashed server stays down
	// Server is the one that is hit; 0 is whoever leads at the time. Other is the second one where there are two.
	Server, Other zxid.ServerID
	// N is a number whose meaning depends on the kind.
	N int
	// Wipe empties the disk of a server that crashes, if that breaks no promise.
	Wipe bool

	point point
	armed bool
	done  bool
}

// String tells what the fault is.
func (f *Fault) String() string {
	who := "the leader"
	if f.Server != 0 {
		who = fmt.Sprintf("s%d", f.Server)
	}
	s := fmt.Sprintf("%v: %v of %s", f.At, f.Kind, who)
	if f.Other != 0 {
		s += fmt.Sprintf(" and s%d", f.Other)
	}
	s += fmt.Sprintf(" for %v", f.For)
	if f.point != pointNone {
		s += " at the next " + pointNames[f.point]
	}
	if f.N != 0 {
		s += fmt.Sprintf(" (%d)", f.N)
	}
	if f.Wipe {
		s += ", and its disk is emptied"
	}
	return s
}

// faultWeights says how often each kind comes.
var faultWeights = [faultKinds]int{FaultCrash: 12, FaultCrashInIO: 16, FaultKill: 8, FaultOutage: 5, FaultIsolate: 18, FaultOneWay: 6, FaultDeaf: 4,
	FaultMute: 4, FaultSplit: 5, FaultBreak: 6, FaultHalfOpen: 5, FaultLinks: 4, FaultSlowNet: 3, FaultSlowDisk: 4, FaultHang: 4, FaultFailSync: 4,
	FaultPause: 8, FaultWallClock: 2, FaultClients: 4, FaultSilence: 5, FaultLeftBehind: 7, FaultBadTail: 4,
	FaultShutdown: 6}

// planFaults draws the faults of the world, in the order in which they strike.
func (w *world) planFaults() []Fault {
	rnd := newRandom(w.opts.Seed, streamFaults)
	list := make([]Fault, faultsMin+rnd.IntN(10))
	for i := range list {
		list[i] = w.planFault(&rnd)
	}
	slices.SortStableFunc(list, func(a, b Fault) int { return int(a.At - b.At) })
	return list
}

func (w *world) planFault(rnd *random) Fault {
	sum := 0
	for _, n := range faultWeights {
		sum += n
	}
	n := rnd.IntN(sum)
	f := Fault{}
	for n >= faultWeights[f.Kind] {
		n -= faultWeights[f.Kind]
		f.Kind++
	}
	servers := len(w.servers)
	f.At = rnd.between(faultsFrom, faultsTo-2*second)
	f.For = rnd.between(50*millisecond, 3*second)
	if rnd.chance(5) {
		f.For = rnd.between(3*second, 9*second)
	}
	if !rnd.chance(2) {
		f.Server = zxid.ServerID(1 + rnd.IntN(servers))
	}
	f.N = 1 + rnd.IntN(24)
	switch f.Kind {
	case FaultOneWay:
		f.Other = zxid.ServerID(1 + rnd.IntN(servers))
	case FaultSplit:
		f.N = 1 + rnd.IntN(1<<servers-2)
	case FaultCrash, FaultCrashInIO, FaultKill, FaultFailSync:
		f.Wipe = rnd.chance(8)
	}
	if rnd.chance(3) && f.Kind != FaultSilence && f.Kind != FaultClients && f.Kind != FaultWallClock {
		f.point = point(1 + rnd.IntN(int(points)-1))
	}
	return f
}

// startFaults plans the faults.
func (w *world) startFaults() {
	for i := range w.faults {
		f := &w.faults[i]
		if w.opts.Leave[i] {
			continue
		}
		w.queue.add(event{at: f.At, run: func() {
			if f.point != pointNone {
				f.armed = true
				return
			}
			w.strike(f, nil)
		}})
	}
	// Those whose moment has not come strike in the end all the same.
	w.queue.add(event{at: faultsTo - 2*second, run: func() {
		for i := range w.faults {
			if f := &w.faults[i]; f.armed && !f.done {
				f.done = true
				w.strike(f, nil)
			}
		}
	}})
}

// trigger lets faults strike that wait for a moment in the protocol.
func (w *world) trigger(s *server, p point) {
	if p == pointNone || w.healed {
		return
	}
	for i := range w.faults {
		f := &w.faults[i]
		if !f.armed || f.done || f.point != p {
			continue
		}
		f.done = true
		w.after(w.rnd.between(0, 400), func() { w.strike(f, s) }) // soon, and not in the middle of a step
	}
}

// strike lets a fault happen, now or as soon as there is something that it can hit. at is the server at which the moment was
// that it waited for.
func (w *world) strike(f *Fault, at *server) {
	if w.healed {
		return
	}
	s := w.victim(f, at)
	if !f.finds(s) {
		w.after(strikeAgain, func() { w.strike(f, nil) })
		return
	}
	for f.Other == s.id { // nothing goes from a server to itself
		f.Other = zxid.ServerID(1 + w.rnd.IntN(len(w.servers)))
	}
	w.count.Faults++
	w.noteText(s.id, "FAULT", "%v", f)
	w.active++
	w.hit(f, s)
	w.after(f.For, func() { w.active--; w.calmSince = w.queue.now })
}

// victim is the server that a fault hits.
func (w *world) victim(f *Fault, at *server) *server {
	switch {
	case at != nil && at.running:
		return at
	case f.Server != 0 && w.server(f.Server).running:
		return w.server(f.Server)
	}
	if l := w.leader(); l != nil {
		return l
	}
	first := w.rnd.IntN(len(w.servers))
	for i := range w.servers {
		if s := w.servers[(first+i)%len(w.servers)]; s.running {
			return s
		}
	}
	return w.servers[first]
}

// finds reports whether there is anything at s that the fault can hit: only then is it one.
func (f *Fault) finds(s *server) bool {
	switch f.Kind {
	case FaultBreak, FaultHalfOpen:
		return s.running && len(s.conns) > 0
	case FaultClients:
		return s.running && len(s.clientConns) > 0
	}
	return s.running
}

// hit does what the kind of the fault says.
func (w *world) hit(f *Fault, s *server) {
	end := w.queue.now + f.For
	switch f.Kind {
	case FaultCrash, FaultKill:
		w.down(f, s, f.Kind == FaultKill)
	case FaultCrashInIO:
		s.orders.downFor, s.orders.wipe = f.For, f.Wipe
		if f.N%2 == 0 {
			s.disk.crashAtSync = true
		} else {
			s.disk.crashIn = f.N
		}
	case FaultOutage:
		for _, o := range w.servers {
			w.down(f, o, false)
		}
	case FaultIsolate, FaultDeaf, FaultMute, FaultOneWay, FaultSplit:
		w.cutWays(f, func(a, b *server) bool { return f.cuts(s, a, b) })
		if f.Kind == FaultIsolate && f.N%2 == 0 {
			w.reject(s)
		}
	case FaultBreak, FaultHalfOpen:
		w.breakConns(s, f.Kind == FaultBreak)
	case FaultLinks:
		w.breakLinks(s)
	case FaultSlowNet:
		w.net.slowUntil = end
	case FaultSlowDisk:
		s.disk.slowUntil = end
	case FaultHang:
		s.disk.hangUntil = end
	case FaultFailSync:
		s.disk.failSync, s.orders.downFor = true, f.For
	case FaultPause:
		s.pause(end)
	case FaultWallClock:
		s.wallOffMs += int64(f.N-12) * 3000
		s.wallOffMaxMs = max(s.wallOffMaxMs, s.wallOffMs)
	case FaultClients:
		for _, c := range slices.Clone(s.clientConns) {
			c.cut()
		}
	case FaultSilence:
		c := w.clients[f.N%len(w.clients)]
		c.fallSilent(Micros(c.timeoutMs)*millisecond*3/2 + f.For)
	case FaultLeftBehind:
		w.leaveBehind(f, s)
	case FaultBadTail:
		w.keepBadTail(f, s)
	case FaultShutdown:
		w.shutDown(f, s)
	}
}

// shutDown lets a server hand over and end.
func (w *world) shutDown(f *Fault, s *server) {
	if !s.running {
		return
	}
	s.input(zab.Input{Kind: zab.InputResign})
	w.afterOn(s, w.rnd.between(5*millisecond, 300*millisecond), func() {
		w.count.Shutdowns++
		s.end()
		s.restartIn(f.For)
	})
}

// keepBadTail cuts a server off, most of all a leader that goes on proposing, and starts it anew twice before the others
// can tell it what has become of its transactions: the first start writes a snapshot of them, the second begins with that.
func (w *world) keepBadTail(f *Fault, s *server) {
	f.For = max(f.For, 2500*millisecond)
	w.cutWays(f, func(a, b *server) bool { return a == s || b == s })
	s.orders.snapAtStart = true
	for _, at := range []Micros{w.rnd.between(200*millisecond, 800*millisecond), w.rnd.between(1200*millisecond, 1800*millisecond)} {
		w.after(at, func() {
			if s.running && !w.healed {
				s.crash(true, f.Kind.String())
				s.restartIn(w.rnd.between(20*millisecond, 200*millisecond))
			}
		})
	}
}

// leaveBehind keeps a server away for long enough that the others go on without it, and makes them start anew meanwhile.
// In half of the cases the connection on which it is told of its past breaks once.
func (w *world) leaveBehind(f *Fault, s *server) {
	if !s.running {
		return
	}
	f.For += 4 * second
	w.down(f, s, true)
	w.after(w.rnd.between(2*second, 3*second), func() {
		for _, o := range w.servers {
			if o != s && o.running && !w.healed {
				o.crash(true, "a start anew")
				o.restartIn(w.rnd.between(20*millisecond, 200*millisecond))
			}
		}
	})
	if f.N%2 == 0 {
		s.orders.breakAtChunk = 1 + f.N%3
	}
}

// cuts reports whether a partition that hits s stops what goes from a to b.
func (f *Fault) cuts(s, a, b *server) bool {
	side := func(s *server) bool { return f.N>>(s.id-1)&1 != 0 }
	switch f.Kind {
	case FaultIsolate:
		return a == s || b == s
	case FaultDeaf:
		return b == s
	case FaultMute:
		return a == s
	case FaultOneWay:
		return a == s && b.id == f.Other
	}
	return side(a) != side(b)
}

// reject tells everybody but the server itself that the connections to it are gone, as a firewall does that refuses: it goes
// on in the belief that it is connected, until its own timers tell it otherwise.
func (w *world) reject(s *server) {
	for _, c := range slices.Clone(w.net.conns) {
		for _, e := range c.ends {
			if e.srv == s && e.other().alive() {
				w.afterOn(e.other().srv, w.net.latency(), e.other().finish)
			}
		}
	}
	for _, l := range w.net.links {
		if l.ends[0] == s || l.ends[1] == s {
			l.dropFor(func(o *server) Micros { return l.noticed(o != s) })
		}
	}
}

// breakLinks breaks the election links of a server.
func (w *world) breakLinks(s *server) {
	w.count.Breaks++
	for _, l := range w.net.links {
		if l.ends[0] == s || l.ends[1] == s {
			l.drop(func() Micros { return l.noticed(w.netRnd.chance(2)) })
		}
	}
}

// down crashes a server and starts it again later.
func (w *world) down(f *Fault, s *server, loud bool) {
	if !s.running {
		return
	}
	s.crash(loud, f.Kind.String())
	s.orders.wipe = f.Wipe
	s.restartIn(f.For + w.rnd.between(0, 300*millisecond))
}

// cutWays blocks some ways for the time of the fault.
func (w *world) cutWays(f *Fault, cut func(from, to *server) bool) {
	w.count.Partitions++
	type way struct{ a, b zxid.ServerID }
	var ways []way
	for _, a := range w.servers {
		for _, b := range w.servers {
			if a != b && cut(a, b) {
				ways = append(ways, way{a.id, b.id})
				w.net.block(a.id, b.id, true)
			}
		}
	}
	w.after(f.For, func() {
		w.note(0, "partition ends", int64(len(ways)), 0)
		for _, x := range ways {
			w.net.block(x.a, x.b, false)
		}
	})
}

// breakConns breaks the connections between a server and its leader or its learners.
func (w *world) breakConns(s *server, loud bool) {
	for _, c := range slices.Clone(w.net.conns) {
		if c.ends[0].srv == s || c.ends[1].srv == s {
			if loud {
				w.count.Breaks++
			} else {
				w.count.HalfOpen++
			}
			c.cut(loud)
		}
	}
}
