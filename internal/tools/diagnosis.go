package tools

import (
	"time"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// Level says how much a finding matters.
type Level string

// A note is for information, a warning ought to be looked after, an error keeps a server from starting or is lost data.
const (
	LevelNote    Level = "note"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Finding is one thing that the doctor noticed.
type Finding struct {
	Level Level  `json:"level"`
	What  string `json:"what"`
	// Do is what to do about it, empty if nothing is.
	Do string `json:"do,omitempty"`
}

// Verdict tells whether a kind of server would start here, and what it would do or why it would not.
type Verdict struct {
	Starts bool     `json:"starts"`
	Says   []string `json:"says"`
}

func refuses(why ...string) Verdict { return Verdict{Says: why} }

// Diagnosis is all that Diagnose learned about a data directory.
type Diagnosis struct {
	Dir    string `json:"dir"`
	LogDir string `json:"logDir"`
	// Fresh says that there are no data at all.
	Fresh     bool           `json:"fresh"`
	Use       Use            `json:"use"`
	WrittenBy string         `json:"writtenBy"`
	MyID      string         `json:"myid,omitempty"`
	Accepted  *int64         `json:"acceptedEpoch,omitempty"`
	Current   *int64         `json:"currentEpoch,omitempty"`
	Snapshots []SnapshotFact `json:"snapshots"`
	Logs      []*LogCheck    `json:"logs"`
	Data      *Data          `json:"data,omitempty"`
	FreeBytes int64          `json:"freeBytes"`
	DiskBytes int64          `json:"diskBytes"`
	Findings  []Finding      `json:"findings"`
	// Changes are what a start would change in the directory, in words.
	Changes []string `json:"changes,omitempty"`

	Standalone Verdict `json:"standalone"`
	Member     Verdict `json:"member"`
	Apache     Verdict `json:"apache"`

	fs    vfs.FS
	cfg   storage.Config
	state storage.State
	// epochFault is set when an epoch file holds no number; myidOK when myid is one.
	epochFault error
	myidOK     bool
	// blanks is a file with a number that ZooKeeper does not take, because of blanks around it.
	blanks  string
	foreign []string
	now     time.Time
}

// SnapshotFact is what the doctor tells of a snapshot.
type SnapshotFact struct {
	File     string `json:"file"`
	Zxid     string `json:"zxid"`
	Bytes    int64  `json:"bytes"`
	Modified string `json:"modified,omitempty"`
	Whole    bool   `json:"whole"`
	// Unreadable says that the system does not let the doctor read it, or not to its end.
	Unreadable bool   `json:"unreadable,omitempty"`
	Why        string `json:"why,omitempty"`

	z        zxid.Zxid
	modified time.Time
}

// Data is the state that a start would load.
type Data struct {
	LastZxid   string `json:"lastZxid"`
	Snapshot   string `json:"snapshot,omitempty"`
	Replayed   int    `json:"replayed"`
	Nodes      int    `json:"nodes"`
	DataBytes  int64  `json:"dataBytes"`
	Sessions   int    `json:"sessions"`
	Ephemerals int    `json:"ephemerals"`
	Containers int    `json:"containers"`
	TTLNodes   int    `json:"ttlNodes"`
	Digest     string `json:"digest"`

	last zxid.Zxid
	// oddTail says that the snapshot ends in a way that only a ZooKeeper with digest.enabled=false reads.
	oddTail bool
}

func (d *Diagnosis) find(level Level, what, do string) {
	d.Findings = append(d.Findings, Finding{Level: level, What: what, Do: do})
}

// Sound tells whether a Zabra server would start here, or one is at work.
func (d *Diagnosis) Sound() bool { return d.Standalone.Starts || d.Member.Starts || d.Use.live() }
