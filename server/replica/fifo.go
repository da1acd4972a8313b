package replica

import (
	"sort"
	"sync"

	"zabra/wire"
)

// itemKind says how a queued request is carried out when its turn comes.
type itemKind uint8

const (
	itemRead    itemKind = iota + 1 // run against the tree: reads, sync, ping, watch operations
	itemWrite                       // becomes a transaction; its answer waits for the commit
	itemReply                       // the answer is known: a bare header with code and zxid 0 or -1
	itemSASL                        // a SASL answer that is known: its token is the body, none is null
	itemConnect                     // the handshake
	itemSync                        // a sync whose answer waits for a proof that the leader leads
	itemRefused                     // refused before it was looked at: a bare header with code and the last zxid
)

// item is a request of a connection that could not be answered at once.
type item struct {
	kind itemKind
	// proposed is set when a transaction has been made of the request, or it was sent to the leader; it is then in flight.
	proposed bool
	// forwarded is set when the request was sent to the leader.
	forwarded bool
	// silent is set when there is no answer at all: the session is ending.
	silent bool
	// last is set when the connection ends after the answer.
	last bool
	op   wire.Op
	xid  int32
	code wire.Code // itemReply
	// seq is the place of the request on its connection, from 1.
	seq uint64
	// body is the record behind the header; the item owns it.
	body []byte
	// ids are the identities that the connection had when the request arrived.
	ids    []wire.ID
	recvMs int64
	// large is what the request has of the budget of large ones.
	large int
}

// travelBytes is what the request takes on its way to the leader.
func (it *item) travelBytes() int { return len(it.body) + identityBytes(it.ids) }

// itemBuffer is memory for requests, which lines borrow while they are not empty: an idle connection has none.
type itemBuffer struct{ items []item }

var itemBuffers = sync.Pool{New: func() any { return &itemBuffer{make([]item, 0, itemBufferMin)} }}

// giveBack takes a buffer whose items are all cleared. One that has grown large is left to the collector.
func giveBack(b *itemBuffer) {
	if b != nil && cap(b.items) <= itemBufferKeptMax {
		b.items = b.items[:0]
		itemBuffers.Put(b)
	}
}

// fifo holds the requests of one connection in the order in which they are to be answered. It is a pure type: the
// stepping goroutine owns it.
type fifo struct {
	items []item
	buf   *itemBuffer // what items was borrowed from
	head  int
	// unproposed is the index of the first item that has not been looked at by prep.
	unproposed int
}

func (f *fifo) empty() bool { return f.head == len(f.items) }

func (f *fifo) push(it item) {
	if f.buf == nil {
		f.buf = itemBuffers.Get().(*itemBuffer)
		f.items = f.buf.items
	}
	f.items = append(f.items, it)
	f.buf.items = f.items
}

// take puts the requests of a buffer behind the others. The buffer becomes the line's if that is empty.
func (f *fifo) take(b *itemBuffer) {
	if b == nil {
		return
	}
	if f.empty() {
		giveBack(f.buf)
		*f = fifo{buf: b, items: b.items}
		return
	}
	f.items = append(f.items, b.items...)
	f.buf.items = f.items
	clear(b.items)
	giveBack(b)
}

// front returns the item whose answer is due next.
func (f *fifo) front() *item { return &f.items[f.head] }

// pop drops the front item and gives the memory back when the queue has run empty.
func (f *fifo) pop() {
	f.items[f.head] = item{}
	f.head++
	if f.unproposed < f.head {
		f.unproposed = f.head
	}
	switch {
	case f.head == len(f.items):
		giveBack(f.buf)
		*f = fifo{}
	case f.head >= 64 && f.head*2 >= len(f.items):
		f.compact()
	}
}

// compact moves the live items to the front of the slice.
func (f *fifo) compact() {
	n := copy(f.items, f.items[f.head:])
	clear(f.items[n:])
	f.items = f.items[:n]
	f.unproposed -= f.head
	f.head = 0
}

// peekUnproposed returns the next item that prep has not seen, nil if there is none. It counts as seen when unproposed
// is raised.
func (f *fifo) peekUnproposed() *item {
	if f.unproposed == len(f.items) {
		return nil
	}
	return &f.items[f.unproposed]
}

// find returns the item with a place on the connection, nil if it has left the line.
func (f *fifo) find(seq uint64) *item {
	live := f.items[f.head:]
	i := sort.Search(len(live), func(i int) bool { return live[i].seq >= seq })
	if i == len(live) || live[i].seq != seq {
		return nil
	}
	return &live[i]
}
