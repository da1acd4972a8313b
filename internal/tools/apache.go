package tools

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// apacheVerdict tells whether Apache ZooKeeper 3.9 with its default settings would start on the directory. Its rules differ
// from ours: see the table in the README of internal/storage.
func (d *Diagnosis) apacheVerdict() Verdict {
	if len(d.foreign) > 0 {
		return refuses(fmt.Sprintf("takes %s for data, and may pass over transactions because of it: move it away first", d.foreign[0]))
	}
	if d.state.Holds && d.state.Installing {
		return refuses("would load what the half installed snapshot is about to replace: start Zabra once first")
	}
	base, why := d.apacheSnapshot()
	if why != "" {
		return refuses(why)
	}
	a := &apacheReader{highest: base}
	logs := d.Logs
	for i, l := range d.Logs {
		if l.named <= base {
			logs = d.Logs[i:]
		}
	}
	for i, l := range logs {
		if why := a.read(l, i == len(logs)-1); why != "" {
			return refuses(why)
		}
	}
	if why := d.apacheEpochs(a.highest); why != "" {
		return Verdict{Starts: true, Says: append([]string{"starts standalone; as a member of an ensemble it refuses: " + why},
			a.says...)}
	}
	says := append([]string{"starts"}, a.says...)
	if d.Data != nil && d.Data.TTLNodes > 0 {
		says = append(says, fmt.Sprintf("deletes the %s unless it runs with zookeeper.extendedTypesEnabled=true",
			count(d.Data.TTLNodes, "TTL node")))
	}
	if d.Data != nil && d.Data.oddTail {
		return refuses("cannot read the end of " + d.Data.Snapshot + " unless it runs with digest.enabled=false, as the " +
			"server that wrote it")
	}
	return Verdict{Starts: true, Says: says}
}

// apacheSnapshot chooses the snapshot that it loads.
func (d *Diagnosis) apacheSnapshot() (zxid.Zxid, string) {
	tried := 0
	for i := len(d.Snapshots) - 1; i >= 0 && tried < snapshotTriesMax; i-- {
		if tried++; d.Snapshots[i].Whole {
			return d.Snapshots[i].z, ""
		}
	}
	if tried > 0 {
		return 0, "finds no valid snapshot, and does not try without one"
	}
	for _, l := range d.Logs {
		if l.Records > 0 {
			return 0, "finds logs without a snapshot, and refuses that unless it runs with snapshot.trust.empty=true; start " +
				"Zabra once, it writes one"
		}
	}
	return 0, ""
}

// apacheReader follows how ZooKeeper replays the logs.
type apacheReader struct {
	highest zxid.Zxid
	says    []string
}

// read goes through one log. It returns why ZooKeeper would end there, empty if it would not.
func (a *apacheReader) read(l *LogCheck, newest bool) string {
	name := filepath.Base(l.File)
	switch {
	case l.State == stateUnreadable:
		return fmt.Sprintf("cannot read %s: %s", name, l.Why)
	case l.Bytes == 0 && newest:
		a.says = append(a.says, "deletes the empty "+name+" (3.9; older versions refuse)")
		return ""
	case l.report.Empty:
		return fmt.Sprintf("meets the end of %s in its header: remove that file, it holds nothing", name)
	}
	f, err := storage.OpenLogFile(vfs.OS{}, l.File)
	if err != nil {
		var damage *storage.CorruptError
		if errors.As(err, &damage) {
			return fmt.Sprintf("cannot read %s: %s", name, damage.Why)
		}
		return err.Error()
	}
	defer f.Close()
	for {
		rec, err := f.Next()
		if errors.Is(err, io.EOF) {
			return a.endOf(f, name)
		}
		if err != nil {
			return err.Error()
		}
		switch {
		case len(rec.Payload) > apacheRecordBytesMax:
			return fmt.Sprintf("meets a record of %d bytes in %s: start it with a larger jute.maxbuffer", len(rec.Payload), name)
		case !rec.EndOK:
			if l.State == stateDamaged {
				a.says = append(a.says, fmt.Sprintf("takes offset %d of %s for its end and LOSES the transactions behind it "+
					"without a word", rec.Offset, name))
			}
			return ""
		case !rec.ChecksumOK:
			return fmt.Sprintf("meets a wrong checksum at offset %d of %s", rec.Offset, name)
		}
		if why := a.follow(rec.Zxid, name); why != "" {
			return why
		}
	}
}

func (a *apacheReader) follow(z zxid.Zxid, name string) string {
	if z <= a.highest {
		return ""
	}
	if z.Epoch() == a.highest.Epoch() && z != a.highest+1 {
		return fmt.Sprintf("finds %v after %v in %s: those between are missing (3.9; older versions go on without a word)", z,
			a.highest, name)
	}
	if z.Epoch() != a.highest.Epoch() && !opensEpoch(a.highest, z) {
		a.says = append(a.says, fmt.Sprintf("does not notice that transactions before %v in %s are missing", z, name))
	}
	a.highest = z
	return ""
}

// endOf judges the length that stands where no record is.
func (a *apacheReader) endOf(f *storage.LogFile, name string) string {
	n := f.EndLength()
	if f.EndReason() != "" && (n < 0 || n > apacheRecordBytesMax) {
		return fmt.Sprintf("meets the unreasonable length %d at the end of %s; start Zabra once, it cuts that off", n, name)
	}
	return ""
}

// apacheEpochs tells why a member would refuse its epoch files.
func (d *Diagnosis) apacheEpochs(last zxid.Zxid) string {
	switch {
	case d.epochFault != nil:
		return trimPackage(d.epochFault)
	case d.blanks != "":
		return fmt.Sprintf("%s has blanks around its number", d.blanks)
	case d.Current != nil && int64(last.Epoch()) > *d.Current && !d.hasEpochTmp():
		return fmt.Sprintf("the current epoch, %d, is older than the last transaction, %v", *d.Current, last)
	case d.Current != nil && d.Accepted != nil && *d.Accepted < *d.Current:
		return fmt.Sprintf("the accepted epoch, %d, is less than the current epoch, %d", *d.Accepted, *d.Current)
	}
	return ""
}

func (d *Diagnosis) hasEpochTmp() bool {
	_, err := readSmall(filepath.Join(d.Dir, dataFolder, "currentEpoch.tmp"))
	return err == nil
}
