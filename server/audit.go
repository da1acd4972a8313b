package server

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"zabra/conf"
	"zabra/internal/logfile"
	"zabra/server/replica"
	"zabra/wire"
	"zabra/znode"
)

// auditLog writes down who has changed what. The stepping goroutine leaves records in a bounded queue; a goroutine of its own
// writes them, so that no request waits for this log's disk.
//
// When the queue is full, because that disk stands still, a step waits for room: an audit log must not lose what it is there
// for. But a server that waits for ever would be lost to its ensemble and its clients for the sake of a log. So after
// auditWaitMax records are let go, counted, until half of the queue is free; what is missing is told in the server's log at
// once, and in the audit log itself where it is missing.
type auditLog struct {
	log   *zap.Logger
	auth  *znode.Auth
	owner string // who runs this process
	lost  atomic.Int64
	wake  chan struct{} // holds at most one: there are records
	room  chan struct{} // holds at most one: there is room again

	queue struct {
		sync.Mutex
		entries []auditEntry
		bytes   int
		lost    int64 // that no line was written about
		overrun bool  // nobody waits until half of the queue is free
	}
	// sink guards where the lines go. It is held while they are written.
	sink struct {
		sync.Mutex
		enabled bool
		format  string
		file    *logfile.File // nil: the server's log
		toldMs  int64
	}
}

// auditEntry is a record with the time at which it was known, or a notice of the server's own.
type auditEntry struct {
	wallMs int64
	replica.AuditRecord
	// notice is what the server has done, instead of a record.
	notice, result string
}

// costBytes is about what an entry takes while it waits.
func (e *auditEntry) costBytes() int {
	n := auditEntryBytes + len(e.Path)
	for i := range e.IDs {
		n += auditIdentityBytes + len(e.IDs[i].Scheme) + len(e.IDs[i].ID)
	}
	for i := range e.ACL {
		n += auditIdentityBytes + len(e.ACL[i].Scheme) + len(e.ACL[i].ID)
	}
	return n
}

// open gets the audit log ready, if there is to be one: a server that cannot write what it has to does not start.
func (a *auditLog) open(cfg *conf.Config, log *zap.Logger, auth *znode.Auth) error {
	a.log, a.auth, a.owner = log, auth, processOwner()
	a.wake, a.room = make(chan struct{}, 1), make(chan struct{}, 1)
	return a.configure(cfg)
}

// notStarted tells in the audit log that the server could not start.
func (s *Server) notStarted(err error) error {
	s.audit.notice(s.clock.now().WallMs, auditServerStart, auditFailure)
	s.audit.close()
	return err
}

// processOwner names who the process belongs to.
func processOwner() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid()) // in a container without a list of users
}

// configure takes up the settings, and the file anew, which may have been moved away. If it cannot be opened, nothing changes.
func (a *auditLog) configure(cfg *conf.Config) error {
	var file *logfile.File
	if path := cfg.AuditPath(); cfg.Audit.Enabled && path != "" {
		var err error
		if file, err = logfile.Open(path, auditFileBytesMax, auditFilesKept); err != nil {
			return fmt.Errorf("the audit log cannot be opened; give zabra.audit.file a path that can be written: %w", err)
		}
	}
	a.sink.Lock()
	defer a.sink.Unlock()
	if a.sink.file != nil {
		_ = a.sink.file.Close() // every write to it has returned
	}
	a.sink.enabled, a.sink.format, a.sink.file = cfg.Audit.Enabled, cfg.Audit.Format, file
	return nil
}

// add queues records. It waits for room, at most auditWaitMax.
func (a *auditLog) add(wallMs int64, records []replica.AuditRecord) {
	for i := range records {
		a.put(auditEntry{wallMs: wallMs, AuditRecord: records[i]})
	}
}

// notice queues what the server itself has done.
func (a *auditLog) notice(wallMs int64, operation, result string) {
	a.put(auditEntry{wallMs: wallMs, notice: operation, result: result})
}

func (a *auditLog) put(e auditEntry) {
	q := &a.queue
	q.Lock()
	defer q.Unlock()
	if a.fullLocked(1) && !q.overrun {
		a.awaitRoomLocked()
	}
	if q.overrun && !a.fullLocked(2) {
		q.overrun = false
	}
	if q.overrun || a.fullLocked(1) {
		q.overrun = true
		q.lost++
		a.lost.Add(1)
		return
	}
	q.entries = append(q.entries, e)
	q.bytes += e.costBytes()
	signal(a.wake)
}

// fullLocked tells whether the queue has reached the given part of its bound.
func (a *auditLog) fullLocked(part int) bool {
	return len(a.queue.entries) >= auditQueueMax/part || a.queue.bytes >= auditQueueBytesMax/part
}

// awaitRoomLocked waits until the queue is not full any more, or for auditWaitMax.
func (a *auditLog) awaitRoomLocked() {
	timer := time.NewTimer(auditWaitMax)
	defer timer.Stop()
	for a.fullLocked(1) {
		a.queue.Unlock()
		select {
		case <-a.room:
			a.queue.Lock()
		case <-timer.C:
			a.queue.Lock()
			return
		}
	}
}

// take returns everything that waits, and how many records are missing before it.
func (a *auditLog) take() (entries []auditEntry, lost int64) {
	q := &a.queue
	q.Lock()
	defer q.Unlock()
	entries, lost = q.entries, q.lost
	q.entries, q.bytes, q.lost = nil, 0, 0
	signal(a.room)
	return entries, lost
}

// auditLoop writes what is queued, to the end also when the server is being closed.
func (s *Server) auditLoop() {
	for {
		select {
		case <-s.audit.wake:
			s.audit.drain()
		case <-s.quit:
			return // Close writes the rest when nobody adds to it any more
		}
	}
}

// close writes what is left and lets the file go.
func (a *auditLog) close() {
	a.drain()
	a.sink.Lock()
	defer a.sink.Unlock()
	if a.sink.file != nil {
		if err := a.sink.file.Close(); err != nil {
			a.log.Error("the audit log may be incomplete; look at its disk", zap.Error(err))
		}
		a.sink.file = nil
	}
	a.sink.enabled = false
}

// drain writes everything that waits.
func (a *auditLog) drain() {
	entries, lost := a.take()
	a.sink.Lock()
	defer a.sink.Unlock()
	if !a.sink.enabled {
		return
	}
	if lost > 0 {
		a.log.Error("records of the audit log are missing: it cannot be written as fast as clients write. Look at the disk that it is on",
			zap.Int64("records", lost))
	}
	switch {
	case a.sink.file == nil:
		for i := range entries {
			a.tell(&entries[i])
		}
		return
	case lost > 0: // they came after what waits
		entries = append(entries, auditEntry{wallMs: time.Now().UnixMilli(), notice: fmt.Sprintf("auditRecordsMissing:%d", lost), result: auditFailure})
	}
	var b []byte
	for i := range entries {
		b = a.appendLine(b, &entries[i])
		if len(b) >= auditWriteBytes || i == len(entries)-1 {
			a.write(b)
			b = b[:0]
		}
	}
}

// write appends lines to the file.
func (a *auditLog) write(lines []byte) {
	n, err := a.sink.file.Write(lines)
	if err == nil {
		return
	}
	missing := int64(0)
	for _, c := range lines[n:] {
		if c == '\n' {
			missing++
		}
	}
	a.lost.Add(missing)
	if now := time.Now().UnixMilli(); now-a.sink.toldMs >= auditTroubleQuietMs {
		a.sink.toldMs = now
		a.log.Error("the audit log cannot be written; look at the disk that it is on. What is told here is told once in a while",
			zap.String("file", a.sink.file.Path()), zap.Int64("recordsMissing", missing), zap.Error(err))
	}
}

// appendLine writes an entry as a line of the file.
func (a *auditLog) appendLine(b []byte, e *auditEntry) []byte {
	f := a.fields(e)
	if a.sink.format == conf.AuditJSON {
		return f.appendJSON(b, e.wallMs)
	}
	level := "INFO"
	if f.result == auditFailure {
		level = "ERROR"
	}
	b = time.UnixMilli(e.wallMs).AppendFormat(b, "2006-01-02 15:04:05,000 ")
	b = append(append(b, level...), " audit.Slf4jAuditLogger: "...)
	return append(f.appendText(b), '\n')
}

// tell writes an entry to the server's log.
func (a *auditLog) tell(e *auditEntry) {
	f := a.fields(e)
	tell := a.log.Info
	if f.result == auditFailure {
		tell = a.log.Error
	}
	if a.sink.format == conf.AuditJSON {
		tell("audit", f.zap()...)
		return
	}
	tell(string(f.appendText(nil)))
}

// fields are what is told of an entry.
func (a *auditLog) fields(e *auditEntry) auditFields {
	if e.notice != "" {
		return auditFields{user: a.owner, operation: e.notice, result: e.result}
	}
	f := auditFields{operation: auditOperation(e.Op), znode: e.Path, result: auditResults[e.Result], user: a.owner}
	if e.Session != 0 {
		f.session = e.Session.String()
	}
	if e.Remote.IsValid() {
		f.ip = e.Remote.String()
	}
	if e.IDs != nil {
		f.user = auditUser(a.auth.WhoAmI(e.IDs))
	}
	if e.HasFlags {
		f.kind = auditKind(e.Flags)
	}
	if e.Op == wire.OpSetACL {
		f.acl = auditACL(a.auth.Mask(e.ACL))
	}
	return f
}
