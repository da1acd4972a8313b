package server

import (
	"errors"
	"fmt"
	"math"
	"path"
	"time"

	"go.uber.org/zap"

	"zabra/internal/ahead"
	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/server/replica"
	"zabra/wire/peer"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

const (
	// standaloneServerByte is the top byte of session ids that a standalone server makes, as in ZooKeeper.
	standaloneServerByte = 1
	// dataFolder is the folder of the data directories that holds the files.
	dataFolder = "version-2"
)

// open takes the data directories, loads what they hold and makes the replica of it.
func (s *Server) open(opts Options) error {
	if err := s.cfg.Validate(); err != nil {
		return &StartError{Stage: StageConfig, Err: err}
	}
	auth, err := znode.NewAuth(znode.AuthConfig{
		SkipACL: s.cfg.SkipACL, SuperDigest: s.cfg.SuperDigest, DigestDisabled: !s.cfg.DigestAuthEnabled, DigestAlg: s.cfg.DigestAuthAlg,
		Providers: authProviders(s.cfg),
	})
	if err := errors.Join(err, s.openTLS()); err != nil {
		return &StartError{Stage: StageConfig, Err: err}
	}
	s.treeConfig = znode.Config{
		ExtendedTypes: s.cfg.ExtendedTypesEnabled, Emulate353TTL: s.cfg.Emulate353TTLNodes, NoDigest: !s.cfg.DigestEnabled, Auth: auth,
		Ahead: ahead.Run, Fired: s.meter.fired.note,
	}
	if err := s.audit.open(s.cfg, s.log, auth); err != nil {
		return &StartError{Stage: StageConfig, Err: err}
	}
	fsys := opts.FS
	if fsys == nil {
		fsys = vfs.OS{}
	}
	storageConfig := s.storageConfig()
	storageConfig.Rand, storageConfig.Failed, storageConfig.Verify = opts.Rand, s.diskFailed, s.verifySnapshot
	storageConfig.Removed = func(path string) { s.log.Info("Removing file: " + path) }
	if s.cfg.Ensemble != nil {
		storageConfig.ID = s.cfg.MyID
	}
	s.store, err = storage.Open(fsys, storageConfig)
	if err != nil {
		return &StartError{Stage: StageDataDir, Err: err}
	}
	if s.cfg.Ensemble != nil {
		if err := checkRecordSize(s.store.RecordBytesMax()); err != nil {
			return errors.Join(&StartError{Stage: StageConfig, Err: err}, s.store.Close())
		}
	}
	if err := s.recover(); err != nil {
		return errors.Join(&StartError{Stage: StageRecovery, Err: err}, s.store.Close())
	}
	return nil
}

func (s *Server) storageConfig() storage.Config {
	const kb = 1 << 10
	return storage.Config{
		SnapDir: s.cfg.DataDir, LogDir: s.cfg.LogDir(), PreAllocBytes: s.cfg.PreAllocKB * kb, SnapCount: s.cfg.SnapCount,
		SnapSizeLimitBytes: s.cfg.SnapSizeLimitKB * kb, LogSizeLimitBytes: s.cfg.TxnLogSizeLimitKB * kb,
		Compression: s.cfg.SnapshotCompression, RecordBytesMax: s.fieldBytesMax(), NoForceSync: !s.cfg.ForceSync,
		TrustEmpty: s.cfg.SnapshotTrustEmpty, NoAutocreate: !s.cfg.DatadirAutocreate,
		LockWait: lockWait, SyncWarn: syncWarn(s.cfg), SnapshotSizeFactor: s.snapshotSizeFactor(),
	}
}

// snapshotSizeFactor is the setting in the words of the storage, where 0 is the default.
func (s *Server) snapshotSizeFactor() float64 {
	if s.cfg.SnapshotSizeFactor == 0 {
		return math.Inf(1)
	}
	return s.cfg.SnapshotSizeFactor
}

// checkRecordSize sees to it that a member of an ensemble can send all that it can log. A transaction that fits into no
// frame would cut every connection to another member, again and again.
func checkRecordSize(bytesMax int) error {
	if bytesMax > peer.EntryBytesMax {
		return fmt.Errorf("transactions of %d bytes can be logged, but only those of %d sent to other servers; lower jute.maxbuffer", bytesMax, peer.EntryBytesMax)
	}
	return nil
}

// fieldBytesMax bounds what is read from disk or out of a request as one piece.
func (s *Server) fieldBytesMax() int { return s.cfg.JuteMaxBufferBytes + s.cfg.JuteMaxBufferExtraBytes }

func (s *Server) replicaConfig() replica.Config {
	return replica.Config{
		ServerByte: s.serverByte(), TickMs: int64(s.cfg.TickTimeMs),
		MinSessionTimeoutMs: s.cfg.MinSessionTimeoutMs, MaxSessionTimeoutMs: s.cfg.MaxSessionTimeoutMs,
		FieldBytesMax: s.fieldBytesMax(), RecordBytesMax: s.store.RecordBytesMax(), OutstandingMax: s.cfg.GlobalOutstandingLimit,
		SASL: s.clientLogins(), EnforcedSchemes: s.cfg.EnforcedSchemes(),
		Throttle: throttleOf(s.cfg), Audit: s.cfg.Audit.Enabled,
		Tree: s.treeConfig, EnforceQuota: s.cfg.EnforceQuota, BodylessCloseSession: !s.cfg.CloseSessionTxnEnabled,
		ReconfigEnabled:  s.cfg.ReconfigEnabled,
		ContainerCheckMs: s.cfg.ContainerCheckIntervalMs, ContainerMaxPerMinute: int64(s.cfg.ContainerMaxPerMinute),
		ContainerNeverUsedMs: s.cfg.ContainerMaxNeverUsedMs, Snapshot: s.snapshotOptions(),
		FlushEarly: s.flush.add, Wake: s.steps.wakeUp, Received: received, Refused: s.refused, Log: s.log,
	}
}

// serverByte is the top byte of the session ids made here.
func (s *Server) serverByte() byte {
	if s.cfg.Ensemble == nil {
		return standaloneServerByte
	}
	return byte(s.cfg.MyID)
}

// zabConfig is what the core of an ensemble member must know; nil for a standalone server.
func (s *Server) zabConfig(rec *replica.Recovered) (*zab.Config, error) {
	if s.cfg.Ensemble == nil {
		return nil, nil
	}
	accepted, current, err := s.store.EpochsForStart(rec.LastZxid)
	if err != nil {
		return nil, err
	}
	tick := int64(s.cfg.TickTimeMs)
	return &zab.Config{
		LastZxid: rec.LastZxid, Ensemble: s.cfg.Ensemble, ID: s.cfg.MyID, AcceptedEpoch: accepted, CurrentEpoch: current,
		Ends: rec.Ends, Floor: max(rec.Floor, s.store.CutFloor()),
		WindowEntries: s.windowEntries(),
		TickMs:        tick, InitLimitMs: int64(s.cfg.InitLimitTicks) * tick, SyncLimitMs: int64(s.cfg.SyncLimitTicks) * tick,
	}, nil
}

// windowEntries is how many transactions the core keeps in memory for learners whatever their size is; 0 leaves that to
// it. Its own measure, which goes by bytes, is at least as good as the default of commitLogCount.
func (s *Server) windowEntries() int {
	if s.cfg.CommitLogCount <= commitLogCountDefault {
		return 0
	}
	return s.cfg.CommitLogCount
}

// snapshotOptions say what stands at a snapshot's end. A last zxid without a digest before it is read as a digest by a
// server that expects one; nothing at all is read by all.
func (s *Server) snapshotOptions() znode.SnapshotOptions {
	return znode.SnapshotOptions{Digest: s.cfg.DigestEnabled, LastZxid: s.cfg.DigestEnabled && s.cfg.SerializeLastProcessedZxidEnabled}
}

// recover loads the state, makes the log ready for more, and sees to it that there is a snapshot which every ZooKeeper
// server with these settings could start from.
func (s *Server) recover() error {
	cfg := s.replicaConfig()
	began := time.Now()
	source := loadTimer{Source: s.store, began: began}
	rec, err := replica.Recover(&source, cfg)
	if err != nil {
		return err
	}
	s.meter.recoverMs, s.meter.replayed = time.Since(began).Milliseconds(), int64(rec.Replayed)
	s.meter.snapshotLoadMs = source.snapshotMs
	s.meter.replayMs = s.meter.recoverMs - source.snapshotMs
	for _, err := range rec.Unreadable {
		s.log.Error("a snapshot cannot be read and was passed over; an older one and a longer part of the log served instead. Look at its disk; the file may be deleted once there is a newer one", zap.Error(err))
	}
	if rec.DigestMismatches > 0 {
		s.log.Error("the log's digests differ from those of the data: the server that wrote it had other data, or a defect. "+
			"In an ensemble compare the members with zabra snapshot compare; one that differs gets the data of the others when it is started with an empty directory",
			zap.Int("transactions", rec.DigestMismatches))
	}
	s.log.Info("data loaded", zap.Stringer("zxid", rec.LastZxid), zap.Int("nodes", rec.Tree.NodeCount()+1), // as srvr counts: the root twice
		zap.Int("sessions", rec.Tree.SessionCount()), zap.Int("replayed", rec.Replayed), zap.Int64("ms", s.meter.recoverMs))
	if err := s.store.Begin(rec.LastZxid); err != nil {
		return err
	}
	if why := s.snapshotNeeded(rec); why != "" {
		if err := s.snapshotAtStart(rec, why); err != nil {
			return err
		}
	}
	if cfg.Ensemble, err = s.zabConfig(rec); err != nil {
		return err
	}
	s.replica = replica.New(cfg, rec, s.clock.now())
	if err := s.store.ReserveSessions(s.replica.ReservedSessions()); err != nil {
		return err
	}
	return nil
}

// loadTimer tells how long it took until the log was wanted: then the snapshot was loaded.
type loadTimer struct {
	replica.Source
	began      time.Time
	snapshotMs int64
}

// OpenLog implements [replica.Source].
func (l *loadTimer) OpenLog(after zxid.Zxid) (zab.LogReader, error) {
	l.snapshotMs = time.Since(l.began).Milliseconds()
	return l.Source.OpenLog(after)
}

// snapshotNeeded says why a snapshot has to be written before anything is served; empty if it has not. ZooKeeper refuses
// logs without a snapshot. And it decides by its settings, not by the file, which blocks it expects at a snapshot's end,
// so that one written under other settings would keep it from starting.
func (s *Server) snapshotNeeded(rec *replica.Recovered) string {
	want := s.snapshotOptions()
	// The digest in a snapshot may be of no use, such as that of zxid 0; here it counts that the block is there.
	switch info := rec.SnapshotInfo; {
	case rec.Snapshot == nil:
		return "there is none"
	case (info.HasDigest || info.DigestVersion != 0) != want.Digest:
		return "digest.enabled has changed"
	case info.HasLastZxid != want.LastZxid:
		return "serializeLastProcessedZxid.enabled has changed"
	}
	return ""
}

func (s *Server) snapshotAtStart(rec *replica.Recovered, why string) error {
	s.log.Info("writing a snapshot before serving", zap.String("because", why))
	snap, err := rec.Tree.OpenSnapshot(s.snapshotOptions())
	if err != nil {
		return err
	}
	defer snap.Close()
	if err := s.writeSnapshot(snap, nil); err != nil {
		return fmt.Errorf("cannot write a snapshot: %w", err)
	}
	return nil
}

// snapshotDir and logDir are the folders that hold the files.
func (s *Server) snapshotDir() string { return path.Join(s.cfg.DataDir, dataFolder) }
func (s *Server) logDir() string      { return path.Join(s.cfg.LogDir(), dataFolder) }
