package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// mirror is the one engine of all caches: it holds a tree of nodes and repeats reads of it until nothing is left to read.
//
// Each node has two slots, one for its data and one for the list of its children. A slot has one read under way at most,
// so what it learns is in order. What different slots learn is put into order by zxids, see apply.go. A watch that
// fires, a reconnect, a list with a new name: they all only schedule reads.
type mirror struct {
	client   *recipes.Client
	options  Options
	depthMax int // how far below the root nodes are held; -1 is no bound

	life      context.Context // until Close, or until the client is closed
	endLife   context.CancelFunc
	follow    context.Context // as long as the server is followed; ends with life at the latest
	endFollow context.CancelFunc
	running   sync.WaitGroup
	ready     chan struct{} // closed when the first fill is complete
	floor     floor
	launch    func(*slot) // begins a read whose result goes to finish

	// The lock is held for one step: a result of a read, a watch, a change of the connection. Nothing waits under it.
	mu            sync.RWMutex
	root          *node
	byPath        map[string]*node // all that are known, present or not
	shown         int              // nodes in the contents
	bytes         int64            // of their paths and data
	queue         []*slot          // waiting for a read
	reads         int              // under way
	busy          int              // slots that wait or read
	clock         uint64           // counts steps that matter for the order of reads and lists
	connected     bool
	filled        bool
	inStep        bool
	asOf          time.Time // when it was in step last, if it is not
	zxid          int64     // the highest that the contents show
	faults        map[*slot]error
	err           error // why it does not follow any more
	subscriptions map[*subscription]bool
}

// node is one path that is known: the root, and what lists of children have named.
type node struct {
	path    string
	name    string // the last element of path
	parent  *node
	depth   int
	silent  bool // the root of a Children: it is watched, but not part of the contents
	present bool
	entry   Entry
	dead    int64 // the highest czxid of what was removed here: nothing up to it can be true again
	gone    bool  // out of the tree; whoever still holds it drops it

	data, list slot

	kids     map[string]*node
	listed   bool   // pzxid and kids come from a list of this incarnation
	pzxid    int64  // of that list
	listedAt uint64 // clock when the parent's list named this node last
	doubted  int    // how often in a row a read was older than what is known
	refused  refusals
}

// slot is one thing to be read of a node.
type slot struct {
	node      *node
	kids      bool // the list of children; otherwise the data
	waiting   bool
	reading   bool
	again     bool // something has happened since the read under way began
	startedAt uint64
	retrying  bool          // a timer runs that will schedule it
	armed     chan struct{} // closed to make the goroutine at the watch go; nil if there is none
}

func newNode(parent *node, path, name string) *node {
	n := &node{path: path, name: name, parent: parent, kids: map[string]*node{}}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	n.data.node, n.list.node, n.list.kids = n, n, true
	return n
}

func (n *node) sortedKids() []*node {
	kids := make([]*node, 0, len(n.kids))
	for _, kid := range n.kids {
		kids = append(kids, kid)
	}
	sortByName(kids)
	return kids
}

func sortByName(nodes []*node) {
	slices.SortFunc(nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
}

func start(client *recipes.Client, path string, depthMax int, silent bool, options Options) (*mirror, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if err := options.normalize(); err != nil {
		return nil, err
	}
	m := newMirror(path, depthMax, silent, options)
	m.client = client
	states := client.States(m.life) // from before the first look at the state: none is missed
	m.connected = client.State().IsConnected()
	m.running.Go(func() { m.watchConnection(states) })
	m.do(func() { m.schedule(&m.root.data) })
	return m, nil
}

// newMirror makes one that follows nothing yet.
func newMirror(path string, depthMax int, silent bool, options Options) *mirror {
	m := &mirror{
		options: options, depthMax: depthMax, ready: make(chan struct{}), root: newNode(nil, path, ""),
		faults: map[*slot]error{}, subscriptions: map[*subscription]bool{},
	}
	m.launch = m.readBeside
	m.root.silent = silent
	m.byPath = map[string]*node{path: m.root}
	m.life, m.endLife = context.WithCancel(context.Background())
	m.follow, m.endFollow = context.WithCancel(m.life)
	return m
}

// do makes one step, and starts the reads that it asked for. After the end it does nothing.
func (m *mirror) do(step func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.follow.Err() != nil {
		return
	}
	step()
	m.dispatch()
	m.settle()
}

// schedule asks for a read that begins after now.
func (m *mirror) schedule(s *slot) {
	switch {
	case s.node.gone || s.waiting:
	case s.reading:
		s.again = true
	default:
		s.waiting = true
		m.busy++
		m.queue = append(m.queue, s)
	}
}

// dispatch starts reads, as many as may be under way.
func (m *mirror) dispatch() {
	for m.reads < readsMax && len(m.queue) > 0 && m.follow.Err() == nil {
		s := m.queue[0]
		m.queue = m.queue[1:]
		s.waiting = false
		if s.node.gone || s.kids && !s.node.present { // the data will tell whether there is a list to read
			m.busy--
			continue
		}
		m.clock++
		s.reading, s.again, s.startedAt = true, false, m.clock
		m.reads++
		m.launch(s)
	}
}

func (m *mirror) readBeside(s *slot) {
	m.running.Go(func() {
		if r, ok := m.read(s); ok {
			m.do(func() { m.finish(s, r) })
		}
	})
}

// finish takes in what a read has brought.
func (m *mirror) finish(s *slot, r result) {
	s.reading = false
	m.reads--
	m.busy--
	if s.node.gone {
		return
	}
	if s.again {
		m.schedule(s)
	}
	if r.err != nil {
		m.fault(s, r.err)
		return
	}
	delete(m.faults, s)
	m.disarm(s)
	if r.fired != nil {
		m.arm(s, r.fired)
	}
	if s.kids {
		m.applyList(s.node, r)
	} else {
		m.applyData(s.node, r)
	}
}

// arm waits for a watch. Of several watches of a slot only the last one counts: whatever fires an older one after the
// newer was set fires that one, too.
func (m *mirror) arm(s *slot, fired <-chan zk.Event) {
	if s.node.gone {
		return
	}
	armed := make(chan struct{})
	s.armed = armed
	m.running.Go(func() {
		select {
		case <-fired:
			m.do(func() { m.fire(s, armed) })
		case <-armed:
		case <-m.follow.Done():
		}
	})
}

// fire takes in that a watch has fired.
func (m *mirror) fire(s *slot, armed chan struct{}) {
	if s.armed == armed {
		s.armed = nil
		m.schedule(s)
	}
}

func (m *mirror) disarm(s *slot) {
	if s.armed != nil {
		close(s.armed)
		s.armed = nil
	}
}

// fault notes that the server refuses a read, and tries again later. Until then the slot counts as read: one node that
// may not be read must not keep all others from being ready.
func (m *mirror) fault(s *slot, err error) {
	if m.faults[s] == nil {
		entry := s.node.entry
		entry.Path = s.node.path
		m.emit(Event{Kind: Faulted, Entry: entry, Err: err})
	}
	m.faults[s] = err
	if s.retrying {
		return
	}
	s.retrying = true
	time.AfterFunc(faultRetryWait, func() {
		m.do(func() {
			s.retrying = false
			m.schedule(s)
		})
	})
}

// settle notes whether the contents are in step.
func (m *mirror) settle() {
	now := m.busy == 0 && m.connected && m.follow.Err() == nil
	if m.inStep && !now {
		m.asOf = time.Now()
	}
	m.inStep = now
	if now && !m.filled {
		m.filled = true
		m.emit(Event{Kind: Initialized})
		close(m.ready)
	}
}

// watchConnection reads everything again after each reconnect. The client library sets the old watches again, but it does
// so from the last zxid that it has seen in any reply: if a reply comes before the watches are set, and the connection
// is cut in between, a change can fall through.
func (m *mirror) watchConnection(states <-chan recipes.State) {
	defer m.closed()
	for {
		select {
		case s, ok := <-states:
			if !ok {
				return
			}
			m.do(func() { m.connection(s) })
		case <-m.client.Closed():
			return
		}
	}
}

// closed ends everything when the cache or its client has been closed.
func (m *mirror) closed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop(ErrClosed)
	m.endLife()
}

func (m *mirror) connection(s recipes.State) {
	m.connected = s.IsConnected()
	switch s {
	case recipes.Suspended:
		m.emit(Event{Kind: Suspended})
	case recipes.Lost:
		m.emit(Event{Kind: Lost})
	case recipes.Connected, recipes.Reconnected:
		if s == recipes.Reconnected {
			m.emit(Event{Kind: Reconnected})
		}
		m.again(m.root)
	}
}

// again schedules all reads of a node and of what is below.
func (m *mirror) again(n *node) {
	m.schedule(&n.data)
	if n.present && m.descends(n) {
		m.schedule(&n.list)
	}
	for _, kid := range n.kids {
		m.again(kid)
	}
}

// descends tells whether the children of a node belong to the contents.
func (m *mirror) descends(n *node) bool { return m.depthMax < 0 || n.depth < m.depthMax }

// stop ends the following. The contents stay as they are. The mutex is held.
func (m *mirror) stop(err error) {
	if m.err != nil {
		return
	}
	if m.inStep {
		m.inStep, m.asOf = false, time.Now()
	}
	m.err = err
	m.endFollow()
	if err == ErrClosed { //nolint:errorlint // never wrapped
		return // the streams just end
	}
	for s := range m.subscriptions {
		m.end(s)
	}
}

// tooLarge stops the cache for a bound.
func (m *mirror) tooLarge(what string, max int64, path string) {
	m.stop(fmt.Errorf("%w: more than %d %s below %s, at %s", ErrTooLarge, max, what, m.root.path, path))
}

// Close ends the cache and returns when nothing of it runs any more. The contents stay readable.
func (m *mirror) Close() {
	m.closed()
	m.running.Wait()
}
