package session

// bucket holds the sessions that the tracker will look at when dueMs has come. That is their deadline as of the time
// they were put here; their real one may have moved on since. Order inside has no meaning.
type bucket struct {
	dueMs   int64
	handles []*Handle
}

// arm puts h into the bucket of dueMs, a point of the tick grid.
func (t *Tracker) arm(h *Handle, dueMs int64) {
	b := t.buckets[dueMs]
	if b == nil {
		b = t.newBucket(dueMs)
		t.buckets[dueMs] = b
		t.pushDue(dueMs)
	}
	h.bucket, h.pos = b, len(b.handles)
	b.handles = append(b.handles, h)
}

// disarm takes h out of its bucket, if it is in one. An emptied bucket stays until it is due or first in line.
func (t *Tracker) disarm(h *Handle) {
	b := h.bucket
	if b == nil {
		return
	}
	last := len(b.handles) - 1
	moved := b.handles[last]
	b.handles[h.pos], moved.pos = moved, h.pos
	b.handles[last] = nil
	b.handles = b.handles[:last]
	h.bucket = nil
}

// newBucket takes the memory of a spent bucket if there is one: buckets come and go with every tick.
func (t *Tracker) newBucket(dueMs int64) *bucket {
	n := len(t.spare)
	if n == 0 {
		return &bucket{dueMs: dueMs}
	}
	b := t.spare[n-1]
	t.spare = t.spare[:n-1]
	b.dueMs = dueMs
	return b
}

// popBucket removes the earliest bucket.
func (t *Tracker) popBucket() *bucket {
	dueMs := t.popDue()
	b := t.buckets[dueMs]
	delete(t.buckets, dueMs)
	return b
}

// recycle gives back a bucket whose handles have all gone elsewhere.
func (t *Tracker) recycle(b *bucket) {
	if len(t.spare) >= bucketsSpareMax || cap(b.handles) > bucketSpareHandlesMax {
		return
	}
	clear(b.handles)
	b.handles = b.handles[:0]
	t.spare = append(t.spare, b)
}

// pushDue adds a time to the min-heap of bucket times.
func (t *Tracker) pushDue(dueMs int64) {
	d := append(t.due, dueMs)
	for i := len(d) - 1; i > 0; {
		parent := (i - 1) / 2
		if d[parent] <= d[i] {
			break
		}
		d[parent], d[i] = d[i], d[parent]
		i = parent
	}
	t.due = d
}

// popDue removes and returns the earliest bucket time.
func (t *Tracker) popDue() int64 {
	d := t.due
	first, last := d[0], len(d)-1
	d[0] = d[last]
	d = d[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d); child++ {
			if d[child] < d[least] {
				least = child
			}
		}
		if least == i {
			break
		}
		d[i], d[least] = d[least], d[i]
		i = least
	}
	t.due = d
	return first
}
