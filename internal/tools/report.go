package tools

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Print prints what the doctor found, in words or as one object.
func (d *Diagnosis) Print(o Output) (err error) {
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	if o.JSON {
		for i, s := range d.Snapshots {
			if !s.modified.IsZero() {
				d.Snapshots[i].Modified = o.in(s.modified).Format(time.RFC3339)
			}
		}
		p.object(d)
		return nil
	}
	d.printFacts(p)
	d.printFindings(p)
	p.printf("\nWhat would happen at a start\n")
	p.verdict("Zabra, standalone", d.Standalone)
	p.verdict("Zabra, in an ensemble", d.Member)
	p.verdict("Apache ZooKeeper 3.9", d.Apache)
	p.printf("\n%s\n", d.Conclusion())
	return nil
}

func (p *printer) fact(name, format string, args ...any) {
	p.printf("  %-12s %s\n", name, fmt.Sprintf(format, args...))
}

func (p *printer) verdict(who string, v Verdict) {
	answer := "no: "
	if v.Starts {
		answer = "yes: "
	}
	p.printf("  %-22s %s%s\n", who, answer, strings.Join(v.Says, "; "))
}

func (d *Diagnosis) printFacts(p *printer) {
	p.printf("%s\n", d.Dir)
	if d.LogDir != d.Dir {
		p.fact("logs", "in %s", d.LogDir)
	}
	if d.Use.live() {
		p.fact("in use", "by %s", d.Use.who())
	} else {
		p.fact("in use", "no: nobody has locked it, and no process is seen to write here (an idle Apache server would not be)")
	}
	if d.WrittenBy != "" {
		p.fact("written by", "%s", d.WrittenBy)
	}
	p.fact("myid", "%s", cmp.Or(d.MyID, "none: a standalone server needs none"))
	p.fact("epochs", "accepted %s, current %s", epochText(d.Accepted), epochText(d.Current))
	d.printSnapshots(p)
	d.printLogs(p)
	if t := d.Data; t != nil {
		p.fact("data", "last transaction %s (epoch %d), %s, %s, %s of paths and data", t.LastZxid, t.last.Epoch(), count(t.Nodes,
			"node"), count(t.Sessions, "session"), sizeText(t.DataBytes))
		p.fact("", "%s, %s, %s", count(t.Ephemerals, "ephemeral node"), count(t.Containers, "container"), count(t.TTLNodes, "TTL node"))
	}
	if d.DiskBytes > 0 {
		p.fact("disk", "%s free of %s", sizeText(d.FreeBytes), sizeText(d.DiskBytes))
	}
}

func (d *Diagnosis) printSnapshots(p *printer) {
	whole := 0
	var newest *SnapshotFact
	for i := range d.Snapshots {
		if d.Snapshots[i].Whole {
			whole++
			newest = &d.Snapshots[i]
		}
	}
	switch {
	case len(d.Snapshots) == 0:
		p.fact("snapshots", "none")
	case newest == nil:
		p.fact("snapshots", "%d, none of them whole", len(d.Snapshots))
	default:
		p.fact("snapshots", "%d, %d of them whole; newest: zxid %s, %s, %s", len(d.Snapshots), whole, newest.Zxid, sizeText(newest.Bytes),
			p.at(newest.modified.UnixMilli(), layoutReadable))
	}
}

func (d *Diagnosis) printLogs(p *printer) {
	if len(d.Logs) == 0 {
		p.fact("logs", "none")
		return
	}
	records := 0
	var bytes int64
	for _, l := range d.Logs {
		records += l.Records
		bytes += l.End
	}
	p.fact("logs", "%s, %s, %s without padding", count(len(d.Logs), "file"), count(records, "transaction"), sizeText(bytes))
}

func (d *Diagnosis) printFindings(p *printer) {
	if len(d.Findings) == 0 {
		if len(d.Changes) == 0 {
			p.printf("\nNothing wrong was found.\n")
		}
		return
	}
	p.printf("\nFindings\n")
	for _, f := range d.Findings {
		p.printf("  %-8s %s\n", f.Level, f.What)
		if f.Do != "" {
			p.printf("  %-8s   -> %s\n", "", f.Do)
		}
	}
}

// Conclusion is the whole in one sentence.
func (d *Diagnosis) Conclusion() string {
	switch {
	case d.Use.Locked:
		return "A server is running here."
	case d.Use.live():
		return "Somebody writes here; start nothing before that has stopped."
	case !d.Sound():
		return "A server does not start on this directory as it is."
	case d.Fresh:
		return "The directory is empty: this is a new server."
	case len(d.Changes) > 0:
		return "A server starts, and mends what a crash has left."
	}
	return "A server starts on this directory as it is."
}

func epochText(e *int64) string {
	if e == nil {
		return "none"
	}
	return fmt.Sprint(*e)
}
