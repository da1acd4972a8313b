package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/server/replica"
	"zabra/znode"
)

// attempt is a start that was tried on an overlay.
type attempt struct {
	rec     *replica.Recovered
	changes []change
	// epochs is why a member of an ensemble would not start; nil if it would.
	epochs error
}

// tryStart does what a server does with its data before it serves anybody. The first error is the one that it would end
// with.
func tryStart(base vfs.FS, cfg storage.Config, fieldBytes int) (*attempt, error) {
	fsys := newOverlay(base)
	st, err := storage.Open(fsys, cfg)
	if err != nil {
		return nil, err
	}
	defer st.Close() // what it writes at its end stays in memory, too
	rec, err := replica.Recover(st, replica.Config{FieldBytesMax: fieldBytes})
	if err != nil {
		return nil, err
	}
	if err := st.Begin(rec.LastZxid); err != nil {
		return nil, err
	}
	a := &attempt{rec: rec, changes: fsys.changes()}
	_, _, a.epochs = st.EpochsForStart(rec.LastZxid)
	return a, nil
}

// judge draws the conclusions from what was seen.
func (d *Diagnosis) judge() {
	slices.SortFunc(d.Snapshots, func(a, b SnapshotFact) int { return cmp.Compare(a.z, b.z) })
	slices.SortFunc(d.Logs, func(a, b *LogCheck) int { return cmp.Compare(a.named, b.named) })
	d.readEpochs()
	for _, s := range d.Snapshots {
		if !s.Whole && !s.Unreadable && !d.Use.live() {
			d.find(LevelWarning, fmt.Sprintf("%s is damaged: %s", s.File, s.Why),
				"Nothing, as long as an older snapshot and the log behind it are whole: a start passes over it.")
		}
	}
	if d.Fresh {
		d.WrittenBy = ""
		d.fresh()
		return
	}
	a, err := tryStart(d.fs, d.cfg, jute.FieldBytesMaxDefault)
	if err != nil {
		if again, errAgain := tryStart(d.fs, d.cfg, fieldBytesMax); errAgain == nil {
			a, err = again, nil
			d.find(LevelWarning, fmt.Sprintf("a node or transaction is larger than %d bytes, the default limit of a server",
				jute.FieldBytesMaxDefault),
				"Start the server with jute.maxbuffer as large as it was when the data were written.")
		}
	}
	d.tellUnreadable(err == nil)
	if err != nil {
		d.cannotStart(err)
		return
	}
	d.canStart(a)
}

// fresh is the verdict on a directory without data.
func (d *Diagnosis) fresh() {
	const says = "starts with an empty tree"
	d.Standalone = Verdict{Starts: true, Says: []string{says}}
	d.Apache = Verdict{Starts: true, Says: []string{says}}
	d.Member = d.memberVerdict(nil, says+", and gets the data from the leader of its ensemble")
	d.inUse()
}

func (d *Diagnosis) readEpochs() {
	number := func(name string) *int64 {
		epoch, ok, err := storage.ReadEpochFile(d.fs, d.cfg, name)
		if err != nil {
			d.epochFault = err
		}
		if err != nil || !ok {
			return nil
		}
		file := filepath.Join(d.Dir, dataFolder, name)
		if text, err := readSmall(file); err == nil {
			d.noteBlanks(file, firstLine(text))
		}
		v := int64(epoch)
		return &v
	}
	d.Accepted, d.Current = number(storage.AcceptedEpochFile), number(storage.CurrentEpochFile)
	if d.epochFault != nil {
		d.find(LevelError, trimPackage(d.epochFault), "Write the number of the epoch into it, or delete it: a missing file "+
			"stands for the epoch of the last transaction.")
	}
}

// memberVerdict is that on a start as a member of an ensemble; epochs is what keeps it from that.
func (d *Diagnosis) memberVerdict(epochs error, says ...string) Verdict {
	switch {
	case d.epochFault != nil:
		return refuses("the epoch files: " + trimPackage(d.epochFault))
	case epochs != nil:
		return refuses(trimPackage(epochs))
	case !d.myidOK:
		return refuses("there is no usable myid in " + d.Dir + "; with the server's number in it, it " + says[0])
	}
	return Verdict{Starts: true, Says: append([]string{says[0] + " as server " + d.MyID}, says[1:]...)}
}

// canStart describes a start that went well.
func (d *Diagnosis) canStart(a *attempt) {
	d.describe(a.rec)
	says := []string{"starts"}
	if s := d.Data.Snapshot; s != "" {
		says = append(says, fmt.Sprintf("loads %s and replays %s", s, count(d.Data.Replayed, "transaction")))
	} else {
		d.find(LevelWarning, "there are logs and no snapshot", "Start Zabra: the log is complete, and it writes a snapshot first.")
		says = append(says, fmt.Sprintf("has no snapshot, replays %s from the first one on, and writes a snapshot before "+
			"it serves", count(d.Data.Replayed, "transaction")))
	}
	for _, c := range a.changes {
		if text := d.changeText(c); text != "" && !d.Use.live() {
			d.Changes = append(d.Changes, text)
		}
	}
	if !d.Use.live() {
		d.tornEnds()
		d.damagedLogs()
	}
	says = append(says, d.Changes...)
	d.Standalone = Verdict{Starts: true, Says: says}
	d.Member = d.memberVerdict(a.epochs, says...)
	d.Apache = d.apacheVerdict()
	d.inUse()
}

// describe tells what was loaded.
func (d *Diagnosis) describe(rec *replica.Recovered) {
	t := rec.Tree
	d.Data = &Data{
		LastZxid: rec.LastZxid.String(), Replayed: rec.Replayed, Nodes: t.NodeCount(), DataBytes: t.DataSize(),
		Sessions:   t.SessionCount(),
		Ephemerals: t.EphemeralCount(), Containers: t.ContainerCount(), TTLNodes: t.TTLCount(), Digest: fmt.Sprint(t.Digest()),
		last: rec.LastZxid,
	}
	if rec.Snapshot != nil {
		info := rec.SnapshotInfo
		d.Data.Snapshot = rec.Snapshot.Name
		d.Data.oddTail = info.HasLastZxid && !info.HasDigestBlock
	}
	if rec.DigestMismatches > 0 {
		d.find(LevelWarning, fmt.Sprintf("after %s the digest in the log is not that of the data: the server that wrote "+
			"the log had other data, or a defect",
			count(rec.DigestMismatches, "transaction")), "Compare the members of the ensemble: running ones with "+
			"\"zabra cli diff --other\", snapshots of the same zxid with \"zabra snapshot dump --json\".")
	}
	if n := len(t.Orphans()); n > 0 {
		d.find(LevelNote, fmt.Sprintf("%s no session any more; a start removes them", count(n, "owner of ephemeral nodes has")), "")
	}
	if n := t.DanglingACLs(); n > 0 {
		d.find(LevelWarning, fmt.Sprintf("%s missing; the nodes with them are closed to everybody but the superuser", count(n,
			"ACL")), "Set their ACLs anew as superuser.")
	}
}

// tornEnds warns of ends that a crash may not have been the cause of: a whole record with a wrong checksum, in a log of which
// nobody can tell what was durable.
func (d *Diagnosis) tornEnds() {
	for _, l := range d.Logs {
		if l.State == stateTorn && strings.Contains(l.Why, "checksum") && !(d.state.Holds && l.named == d.state.DurableLog) {
			d.find(LevelWarning, fmt.Sprintf("the last record of %s has a wrong checksum", l.File),
				"After a crash of the machine that is nothing: it was not acknowledged, and is cut off. Otherwise the disk has "+
					"damaged it; then compare with the other members, or restore the file.")
		}
	}
}

// damagedLogs warns of damage that a start does not meet, since a snapshot lies behind it.
func (d *Diagnosis) damagedLogs() {
	for _, l := range d.Logs {
		if l.State == stateDamaged {
			d.find(LevelWarning, fmt.Sprintf("%s is damaged at offset %d: %s; a start does not need it, because a snapshot "+
				"lies behind it", l.File, *l.Offset, l.Why),
				"Take care of the disk. The older snapshots cannot be used as far as they need that log.")
		}
	}
}

// changeText says what a start changes, leaving out the files of its own that it always writes.
func (d *Diagnosis) changeText(c change) string {
	name := filepath.Base(c.path)
	kind, _ := storage.KindOf(name)
	switch {
	case kind == storage.KindOwn || kind == storage.KindEpoch || kind == storage.KindLeftover:
		return ""
	case c.kind == changeCut:
		for _, l := range d.Logs {
			if filepath.Base(l.File) == name && l.Torn > 0 {
				return fmt.Sprintf("cuts %s off at offset %d: the %s behind it are no whole transaction (%s)", name, c.to,
					count(int(l.Torn), "byte"), l.Why)
			}
		}
		return fmt.Sprintf("cuts %s off at offset %d", name, c.to)
	case c.kind == changeRemoved:
		return fmt.Sprintf("removes %s (%s), which holds no transaction", name, sizeText(c.from))
	}
	return c.kind + " " + name
}

// cannotStart describes a start that failed.
func (d *Diagnosis) cannotStart(err error) {
	do := "Restore the directory from a backup, or empty it if this server is a member of an ensemble: it gets the " +
		"data from the leader."
	var damage *storage.CorruptError
	what := trimPackage(err)
	if errors.As(err, &damage) {
		what, do = fmt.Sprintf("%s is damaged at offset %d: %s", damage.File, damage.Offset, damage.Why), damage.Do
	}
	var bad *storage.DirError
	if errors.As(err, &bad) {
		do = "See to it that the directory is there, readable and writable for this user, and that dataDir and dataLogDir " +
			"are not swapped."
	}
	denied := errors.Is(err, fs.ErrPermission)
	if denied {
		do = doReadable
	}
	if d.Use.live() && (errors.Is(err, fs.ErrNotExist) || damage != nil || denied) {
		if !denied {
			do = "Run the doctor again, or when the server has stopped."
		}
		d.find(LevelNote, "the data could not be read to their end while "+d.Use.who()+" is writing: "+what, do)
		d.Standalone, d.Member, d.Apache = refuses("cannot be told now"), refuses("cannot be told now"), refuses("cannot be told now")
		d.inUse()
		return
	}
	d.find(LevelError, what, do)
	const why = "it refuses, because of the error above"
	d.Standalone, d.Member = refuses(why), refuses(why)
	d.Apache = d.apacheVerdict()
	d.inUse()
}

// inUse corrects the verdicts when somebody is at work.
func (d *Diagnosis) inUse() {
	switch {
	case d.Use.Locked:
		why := d.Use.who() + " is running here: a second one refuses to start"
		d.Standalone, d.Member = refuses(why), refuses(why)
		d.Apache.Starts = false
		d.Apache.Says = []string{"would not notice that " + d.Use.who() + " is running here: do not start one"}
		d.find(LevelNote, d.Use.who()+" is at work: what is said about the newest files is of this moment", "")
	case d.Use.live():
		why := d.Use.who() + " has files here open for writing and takes no lock: stop it first"
		d.find(LevelWarning, why, "")
		d.Standalone, d.Member, d.Apache = refuses(why), refuses(why), refuses(why)
	}
}

// trimPackage takes the name of the package off an error.
func trimPackage(err error) string {
	text := err.Error()
	if errors.Is(err, znode.ErrSnapshot) {
		return text
	}
	return strings.TrimPrefix(text, "storage: ")
}
