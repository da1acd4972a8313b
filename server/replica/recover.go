package replica

import (
	"errors"
	"fmt"
	"io"

	"zabra/session"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// Source is the reading half of the storage: what recovery needs of it.
type Source interface {
	// Snapshots lists the snapshots, newest first.
	Snapshots() ([]zab.SnapshotFile, error)
	// OpenSnapshot returns the uncompressed bytes of one.
	OpenSnapshot(zab.SnapshotFile) (io.ReadCloser, error)
	// OpenLog returns the logged transactions after the given zxid. It fails, or its Next does, when they do not follow
	// one another without a gap from there.
	OpenLog(after zxid.Zxid) (zab.LogReader, error)
	// SessionMark is the highest session id that may have been made here, as far as an earlier life has noted it; 0 if
	// nothing is known.
	SessionMark() zxid.SessionID
}

// Recovered is the state that a data directory holds.
type Recovered struct {
	Tree     *znode.Tree
	LastZxid zxid.Zxid
	// SessionFloor is the highest session id with this server's top byte in snapshot and log.
	SessionFloor zxid.SessionID
	// SessionMark is what an earlier life has noted as the highest id that it might make; in a state that is loaded anew it
	// is this life's own note, and says nothing.
	SessionMark zxid.SessionID
	// Floor is the lowest transaction that the log can be cut back to with the state still at hand: the point of the
	// snapshot. Ends are the last transactions of the epochs from there on, ascending; the last one is LastZxid.
	Floor zxid.Zxid
	Ends  []zxid.Zxid
	// Snapshot is the file that the state was built on, nil if there was none.
	Snapshot     *zab.SnapshotFile
	SnapshotInfo znode.SnapshotInfo
	// Replayed counts the transactions of the log that came after it.
	Replayed int
	// DigestMismatches counts transactions after which the tree's digest was not the one that the log carries. Servers
	// with defects of their own write such logs, so it is told, not refused.
	DigestMismatches int
	// Unreadable holds why newer snapshots were passed over.
	Unreadable []error
}

// Recover loads the newest readable snapshot and replays the log behind it. Each attempt starts from an empty state. The
// errors name what is damaged; nothing on disk is changed.
func Recover(src Source, cfg Config) (*Recovered, error) {
	files, err := src.Snapshots()
	if err != nil {
		return nil, err
	}
	rec := &Recovered{}
	for i := range files {
		tree, info, err := loadSnapshot(src, files[i], cfg)
		if err != nil {
			rec.Unreadable = append(rec.Unreadable, fmt.Errorf("%s: %w", files[i].Name, err))
			continue
		}
		rec.Tree, rec.SnapshotInfo, rec.Snapshot = tree, info, &files[i]
		break
	}
	if rec.Tree == nil {
		if len(files) > 0 {
			return nil, fmt.Errorf("none of the %d snapshots can be read: %w", len(files), errors.Join(rec.Unreadable...))
		}
		rec.Tree = znode.NewTree(cfg.Tree)
	}
	rec.LastZxid = rec.Tree.LastZxid()
	rec.SessionMark = src.SessionMark()
	rec.Floor, rec.Ends = rec.LastZxid, []zxid.Zxid{rec.LastZxid}
	rec.Tree.VisitSessions(func(s zxid.SessionID, _ int32) bool {
		rec.noteSession(s, cfg.ServerByte)
		return true
	})
	for _, s := range rec.Tree.Orphans() { // of a restored snapshot, which has no sessions
		rec.noteSession(s, cfg.ServerByte)
	}
	if err := rec.replay(src, cfg); err != nil {
		return nil, err
	}
	return rec, nil
}

func loadSnapshot(src Source, f zab.SnapshotFile, cfg Config) (*znode.Tree, znode.SnapshotInfo, error) {
	r, err := src.OpenSnapshot(f)
	if err != nil {
		return nil, znode.SnapshotInfo{}, err
	}
	tree, info, err := znode.ReadSnapshot(r, cfg.Tree, cfg.FieldBytesMax, f.Zxid)
	return tree, info, errors.Join(err, r.Close())
}

// replay applies the logged transactions after the snapshot. A snapshot that Apache wrote may already hold some of their
// effects; applying is idempotent. Digests are compared from the point on at which the snapshot's own digest was taken.
func (rec *Recovered) replay(src Source, cfg Config) (err error) {
	log, err := src.OpenLog(rec.LastZxid)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var (
		h   znode.TxnHeader
		txn znode.Txn
		res znode.Result
	)
	compareFrom := rec.LastZxid
	if rec.SnapshotInfo.HasDigest && rec.SnapshotInfo.DigestZxid > compareFrom {
		compareFrom = rec.SnapshotInfo.DigestZxid
	}
	for {
		e, err := log.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		digest, hasDigest, err := znode.DecodeTxn(e.Payload, cfg.FieldBytesMax, &h, &txn)
		if err != nil {
			return fmt.Errorf("transaction %v in the log: %w", e.Zxid, err)
		}
		rec.Tree.Apply(&h, &txn, &res)
		if h.Zxid > rec.LastZxid {
			rec.noteEnd(h.Zxid)
			rec.LastZxid = h.Zxid
		}
		rec.Replayed++
		if h.Type == wire.OpCreateSession {
			rec.noteSession(h.ClientID, cfg.ServerByte)
		}
		if hasDigest && !cfg.Tree.NoDigest && h.Zxid >= compareFrom && digest.Value != rec.Tree.Digest() {
			rec.DigestMismatches++
		}
	}
}

// noteEnd notes that z follows the last transaction.
func (rec *Recovered) noteEnd(z zxid.Zxid) {
	last := len(rec.Ends) - 1
	if rec.Ends[last].Epoch() == z.Epoch() {
		rec.Ends[last] = z
		return
	}
	rec.Ends = append(rec.Ends, z)
}

func (rec *Recovered) noteSession(s zxid.SessionID, serverByte byte) {
	if s.ServerByte() == serverByte && s > rec.SessionFloor {
		rec.SessionFloor = s
	}
}

// ReserveMore returns the session mark that has to be made durable before this state takes the place of the running one;
// false if that there is will do. A server whose disk was replaced learns only now which sessions it once made.
func (rec *Recovered) ReserveMore() (zxid.SessionID, bool) {
	return session.ReserveMore(rec.SessionMark, rec.SessionFloor)
}
