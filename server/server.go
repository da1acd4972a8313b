// Package server is the shell of a ZooKeeper server: sockets, goroutines, the clock, the disk and the log. What a request
// means is decided in package replica, which has none of these.
//
// The way through it: [New] recovers the data directory and binds the client port, [Server.Serve] runs until
// [Server.Shutdown] or [Server.Close]. Inside, conn.run is the life of a connection, Server.advance feeds the replica
// and carries out what it asks for, Server.diskLoop makes transactions durable.
//
// Goroutines. One accepts on each client port, one sees to steps that nobody else takes, one writes and syncs the log, a few flush the output of
// steps, one logs what the replica refuses, one writes the audit log. Each connection has one reader, which also answers its
// reads. A client that does not take its output gets a writer of its own until it has caught up. A snapshot has one while it is
// written. The admin server has two, and one for each of its connections. A member of an ensemble has more: see member.
//
// Steps. The replica is stepped by one goroutine at a time, but not always by the same: whoever has brought work, the reader of
// a connection or the disk goroutine, takes the step itself if nobody is at it, so that a write in a quiet server wakes one
// goroutine and not four. The goroutine that holds stepper.running is "the stepping goroutine" of the comments.
//
// Locks. stepper.running comes first: under it the replica is called, and whatever a step needs. The others are leaves, none
// is held while another is taken or while the replica is called, with these exceptions: who steps asks whether the replica is idle
// under the lock of stepper; the locks of a link and of quorumConns are held while that of stepper is taken, so that the core
// hears of connections in the order of their lives; that of quorumConns also while a connection's queue is; and
// quorumConn.writing comes before the lock of its queue and whatever writing a message takes (the storage's, the pinned snapshot);
// the lock of a connection's writer comes before secured.mu, and that before the locks of the TLS library and the one of its sink.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"zabra/conf"
	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/server/admin"
	"zabra/server/replica"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// Options are what a server needs beside its configuration. The zero value works.
type Options struct {
	// Log receives what happens; nil for silence.
	Log *zap.Logger
	// Version is this program's own version, Revision the source revision it was built from, Built when. They appear in
	// the version text of srvr, mntr and envi. Empty values are taken from the binary as far as it knows.
	Version, Revision string
	Built             time.Time
	// UntouchedBytes is how much of the heap is held and never used, so that it takes no memory of the system. The gauge
	// live_heap_bytes leaves it out.
	UntouchedBytes int64
	// FS is the file system of the data directories; nil for the operating system's.
	FS vfs.FS
	// Reload has the server take up its configuration again, as whoever started it does at SIGHUP: it ends in a call of
	// Reconfigure. The admin command reload calls it, from any goroutine. Nil if there is nothing to load again.
	Reload func() (Reloaded, error)
	// Rand spreads the snapshots of a server over time, so that many servers do not take theirs together. Nil takes one
	// with a random seed; a run that is to be repeated needs its own.
	Rand *rand.Rand
	// DialMember connects to an address of another member of the ensemble, before anything is said or encrypted; nil for TCP.
	// It is called from several goroutines.
	DialMember func(ctx context.Context, to zxid.ServerID, addr string) (net.Conn, error)
	// Control lets a test move the time of the server and end sessions; nil for a server that is none of a test.
	Control *Control
}

// Server is one ZooKeeper server: standalone, or a member of an ensemble. It is made by New.
type Server struct {
	cfg *conf.Config // as it was at the start
	// live is cfg with what has changed since. Keys that Reconfigure takes are read from it, each time anew.
	live    atomic.Pointer[conf.Config]
	log     *zap.Logger
	clock   clock
	version string
	// untouchedBytes is that of Options.
	untouchedBytes int64
	// treeConfig is what snapshots are read with.
	treeConfig znode.Config
	store      *storage.Store
	replica    *replica.Replica
	listener   *net.TCPListener // nil when no client port is configured
	member     *member          // nil for a standalone server
	// dialMember is that of Options.
	dialMember func(ctx context.Context, to zxid.ServerID, addr string) (net.Conn, error)
	admin      *adminServer // nil if there is none
	// adminTLS gives the admin server its keys, as a configuration for servers; nil if there are none. It is asked at the
	// start and at each handshake, so that new files can be taken up.
	// Of what it returns, ClientAuth, NextProtos and GetConfigForClient do not count: the admin server sets its own.
	adminTLS func() (*tls.Config, error)
	reload   func() (Reloaded, error) // that of Options
	// metricsServer is nil unless Prometheus is served.
	metricsServer *metricsServer
	// secureListener is the client port with TLS, nil without one.
	secureListener *net.TCPListener
	tls            encryption

	conns    connTable
	steps    stepper
	disk     disk
	flush    flushQueue
	snaps    snapshots
	refusals refusals
	actions  actions
	meter    meter
	audit    auditLog
	sessions sessionThrottle
	purging  purgeTimer

	startMu   sync.Mutex
	phase     atomic.Uint32
	traceMask atomic.Int64
	startMs   int64 // monotonic

	// draining is closed when no further requests are to be read, quit when every goroutine has to end.
	draining, quit chan struct{}
	drainOnce      sync.Once
	closeOnce      sync.Once
	// running holds all goroutines, serving the readers that still take requests.
	running, serving sync.WaitGroup

	failOnce sync.Once
	failure  error
	failed   chan struct{} // closed after failure is set
	done     chan struct{} // closed when everything is released
}

// The phases of a server's life, in order.
const (
	phaseNew uint32 = iota
	phaseServing
	phaseDraining
	phaseClosed
)

// New recovers the state in the data directories and binds the client port and that of the admin server. Nothing is served yet, and no goroutine runs.
// The server owns both until Close or Shutdown. Errors match [*StartError].
func New(cfg *conf.Config, opts Options) (*Server, error) {
	s := &Server{
		cfg: cfg, log: opts.Log, clock: newClock(opts.Control), untouchedBytes: opts.UntouchedBytes, reload: opts.Reload,
		dialMember: opts.DialMember,
		draining:   make(chan struct{}), quit: make(chan struct{}), failed: make(chan struct{}), done: make(chan struct{}),
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	s.live.Store(cfg)
	s.version = versionText(opts)
	s.traceMask.Store(traceMaskDefault)
	s.conns.init(cfg)
	s.steps.init()
	s.disk.init()
	s.flush.init()
	s.refusals.init(s.log)
	s.sessions.configure(s.clock.now().MonoMs, cfg.Throttle.Sessions)
	if err := s.open(opts); err != nil {
		return nil, s.notStarted(err)
	}
	if err := s.listen(); err != nil {
		return nil, s.notStarted(errors.Join(&StartError{Stage: StagePort, Err: err}, s.store.Close()))
	}
	if cfg.Ensemble != nil {
		var err error
		if s.member, err = newMember(s); err != nil {
			s.closeListeners()
			return nil, s.notStarted(errors.Join(err, s.store.Close()))
		}
	}
	if cfg.Security.Quorum.KeyStore.Location != "" {
		s.adminTLS = s.adminTLSConfig
	}
	s.listenAdmin()
	if err := s.listenMetrics(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if opts.Control != nil {
		opts.Control.server.Store(s)
	}
	return s, nil
}

// Addr returns the address of the client port, nil if there is none.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// SecureAddr returns the address of the client port with TLS, nil if there is none.
func (s *Server) SecureAddr() net.Addr {
	if s.secureListener == nil {
		return nil
	}
	return s.secureListener.Addr()
}

// Stats is the state of a server at one moment.
type Stats struct {
	Zxid                         zxid.Zxid // last applied
	Nodes, Sessions, Connections int
	// Mode is what the server is at the moment; empty while it belongs to no quorum and serves nobody.
	Mode admin.Mode
	// Leader is the member that leads, also while that is only about to begin; 0 if there is none.
	Leader zxid.ServerID
	// Durable is the last transaction that is durable here, committed or not.
	Durable zxid.Zxid
	// SyncedLearners is how many learners of a leader are level with it.
	SyncedLearners int
}

// Stats may be called from any goroutine.
func (s *Server) Stats() Stats {
	st := s.replica.Stats()
	out := Stats{Zxid: st.LastZxid, Durable: st.LastZxid, Nodes: st.Nodes, Sessions: st.Sessions, Connections: s.conns.len(), Mode: s.mode()}
	if s.member != nil {
		status := s.member.status.Load()
		out.Durable, out.Leader, out.SyncedLearners = status.LastDurable, status.Leader, status.SyncedFollowers+status.SyncedObservers
	}
	return out
}

// Digest sums up the data: servers that have applied the same transactions have the same. It is 0 with digest.enabled=false.
// Any goroutine may call it.
func (s *Server) Digest() uint64 {
	tree := s.replica.Tree()
	tree.RLock(0)
	defer tree.RUnlock(0)
	return tree.Digest()
}

// mode names what the server is, as srvr and mntr print it; empty while a member of an ensemble serves nobody.
func (s *Server) mode() admin.Mode {
	if s.member == nil {
		return admin.ModeStandalone
	}
	st := s.member.status.Load()
	if !st.Serving {
		return ""
	}
	switch st.Role {
	case zab.RoleLeading:
		return admin.ModeLeader
	case zab.RoleObserving:
		return admin.ModeObserver
	}
	return admin.ModeFollower
}

// Serve answers clients until the server is closed, and returns when everything is released: ErrServerClosed after
// Shutdown or Close, or why the server cannot go on, such as a failed disk. It may be called once.
func (s *Server) Serve() error {
	if !s.start() {
		return ErrServerClosed
	}
	select {
	case <-s.failed:
	case <-s.done:
		select {
		case <-s.failed: // both at once: the failure came first
		default:
			return ErrServerClosed
		}
	}
	s.logFailure()
	_ = s.Close() // whatever it says follows from the failure
	return s.failure
}

// start starts the goroutines, unless the server was ended before or is serving already.
func (s *Server) start() bool {
	s.startMu.Lock() // Close waits for those that are started here
	defer s.startMu.Unlock()
	if !s.phase.CompareAndSwap(phaseNew, phaseServing) {
		return false
	}
	s.startMs = s.clock.now().MonoMs
	if s.member != nil {
		s.member.announce()
	}
	s.spawn(s.stepLoop)
	s.spawn(s.diskLoop)
	s.spawn(s.refusalLoop)
	s.spawn(s.auditLoop)
	s.audit.notice(s.clock.now().WallMs, auditServerStart, auditSuccess)
	for range min(runtime.GOMAXPROCS(0), flushersMax) {
		s.spawn(s.flushLoop)
	}
	s.acceptLoops()
	if s.pollsCerts() {
		s.spawn(s.certLoop)
	}
	if s.member != nil {
		s.member.start()
	}
	if s.admin != nil {
		s.admin.start()
	}
	if s.metricsServer != nil {
		s.metricsServer.start(s)
	}
	s.spawn(s.purgeLoop)
	return true
}

// Shutdown ends the server gracefully: no new connections and requests, but every request that was read is carried out
// and answered, connections end in an orderly way, and the log is synced and trimmed. Sessions live on in the data and
// clients take them up again at the next start. If ctx ends before that is done, the rest is that of Close, and ctx's
// error is returned. A member of an ensemble gives its role back before it ends: a leader's followers elect another at
// once. A failure of the storage, such as of the last sync, outweighs it. ErrServerClosed is returned if
// the server was ended in another way meanwhile; if that was a failure, Serve returns it.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.phase.CompareAndSwap(phaseNew, phaseClosed) {
		return s.Close()
	}
	if !s.phase.CompareAndSwap(phaseServing, phaseDraining) {
		<-s.done
		return nil
	}
	s.audit.notice(s.clock.now().WallMs, auditServerStop, auditInvoked)
	s.log.Info("shutting down", zap.Int("connections", s.conns.len()))
	s.closeListeners()
	drainErr := s.drain(ctx)
	if err := s.Close(); err != nil {
		return err
	}
	return drainErr
}

// drain lets everything that was read be answered, and ends the connections.
func (s *Server) drain(ctx context.Context) error {
	s.drainOnce.Do(func() { close(s.draining) })
	conns := s.conns.seal()
	for _, c := range conns {
		c.stopReading()
	}
	quiet := make(chan struct{})
	go func() { // ends with the readers, at the latest in Close
		s.serving.Wait()
		close(quiet)
	}()
	if err := s.await(ctx, quiet); err != nil {
		return err
	}
	if err := s.awaitIdle(ctx); err != nil {
		return err
	}
	if s.member != nil {
		s.member.handOver(ctx, conns)
	}
	for _, c := range conns {
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
	return s.await(ctx, s.conns.empty)
}

// awaitIdle waits until everything that was read is carried out. A member of an ensemble has the others to wait for, and
// does so for a limited time only: what is not committed by then is for the next leader to decide.
func (s *Server) awaitIdle(ctx context.Context) error {
	if s.member == nil {
		return s.await(ctx, s.steps.whenIdle())
	}
	limited, cancel := context.WithTimeout(ctx, idleTime)
	defer cancel()
	err := s.await(limited, s.steps.whenIdle())
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// await waits for ch, unless ctx or the server ends before.
func (s *Server) await(ctx context.Context, ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.quit:
		return ErrServerClosed
	}
}

// Close ends the server at once: connections are cut, requests in flight get no answer. Everything acknowledged is
// durable all the same. It returns when no goroutine of the server is left and the data directory is released, which
// takes as long as the disk does for what it has begun. The error is that of the storage.
func (s *Server) Close() error {
	var err error
	s.closeOnce.Do(func() {
		s.startMu.Lock()
		if s.phase.Swap(phaseClosed) == phaseServing {
			s.audit.notice(s.clock.now().WallMs, auditServerStop, auditInvoked)
		}
		s.startMu.Unlock()
		close(s.quit)
		s.steps.end()
		s.drainOnce.Do(func() { close(s.draining) })
		s.closeListeners()
		if s.admin != nil {
			s.admin.close()
		}
		for _, c := range s.conns.seal() {
			c.abort()
		}
		if s.member != nil {
			s.member.close()
		}
		if s.metricsServer != nil {
			s.metricsServer.close()
		}
		s.disk.close()
		s.flush.close()
		s.steps.close()
		s.running.Wait()
		s.audit.close()
		err = s.store.Close()
		close(s.done)
	})
	<-s.done
	return err
}

// fail ends the server for a reason that no retry can mend. Any goroutine may call it; the first reason counts.
func (s *Server) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = err
		s.meter.unrecoverable.Add(1)
		close(s.failed)
	})
}

// spawn runs f in a goroutine that Close waits for.
func (s *Server) spawn(f func()) { s.running.Go(f) }

// isServing reports whether requests are answered.
func (s *Server) isServing() bool {
	return s.phase.Load() == phaseServing && (s.member == nil || s.member.isServing()) && !s.actions.maintenance.Load()
}

// isDraining reports whether the server is on its way to its end.
func (s *Server) isDraining() bool { return s.phase.Load() >= phaseDraining }

var _ admin.Source = source{}
