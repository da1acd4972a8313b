package zabtest

import (
	"fmt"
	"slices"
	"strings"

	"zabra/zab"
	"zabra/zab/zxid"
)

// z renders a transaction as epoch:counter.
func z(x zxid.Zxid) string {
	if x == 0 {
		return "0"
	}
	return fmt.Sprintf("%d:%d", x.Epoch(), x.Counter())
}

func renderEntries(entries []zab.Entry) string {
	switch n := len(entries); n {
	case 0:
		return "nothing"
	case 1:
		return z(entries[0].Zxid)
	default:
		return z(entries[0].Zxid) + ".." + z(entries[n-1].Zxid)
	}
}

// renderMessage is one line: who, to whom, what, and the fields that count for that kind.
func renderMessage(m *zab.Message) string {
	return strings.TrimRight(fmt.Sprintf("%d > %d  %-13s %s", m.From, m.To, m.Kind, renderFields(m)), " ")
}

func renderFields(m *zab.Message) string {
	switch m.Kind {
	case zab.MessageNotification:
		if m.Vote.Leader < 0 {
			return fmt.Sprintf("takes no part, round %d, %v", m.Round, m.Role)
		}
		return fmt.Sprintf("vote %d (epoch %d, %s), round %d, %v", m.Vote.Leader, m.Vote.Epoch, z(m.Vote.Zxid), m.Round, m.Role)
	case zab.MessageFollowerInfo, zab.MessageObserverInfo:
		return fmt.Sprintf("accepted epoch %d", m.Epoch)
	case zab.MessageLeaderInfo:
		return fmt.Sprintf("epoch %d", m.Epoch)
	case zab.MessageAckEpoch:
		return renderAckEpoch(m)
	case zab.MessageDiff, zab.MessageTrunc, zab.MessageAck:
		return z(m.Zxid)
	case zab.MessageSnap:
		return z(m.Snapshot.Zxid)
	case zab.MessageProposal, zab.MessageInform:
		return fmt.Sprintf("%s after %s, committed %s", renderEntries(m.Entries), z(m.Zxid), z(m.Committed))
	case zab.MessageCommit:
		return "up to " + z(m.Zxid)
	case zab.MessageNewLeader:
		return fmt.Sprintf("epoch %d", m.Epoch)
	case zab.MessageUpToDate, zab.MessageAckNewLeader:
		return fmt.Sprintf("epoch %d, up to %s", m.Epoch, z(m.Zxid))
	case zab.MessageRequest:
		var list []string
		for _, q := range m.Requests {
			list = append(list, fmt.Sprintf("%d of %d: %s", q.Origin.Seq, q.Origin.Server, q.Body))
		}
		return strings.Join(list, ", ")
	case zab.MessageSynced:
		return fmt.Sprintf("%d, up to %s", m.ID, z(m.Zxid))
	}
	return fmt.Sprint(m.ID)
}

func renderAckEpoch(m *zab.Message) string {
	var ends []string
	for _, e := range m.Ends {
		ends = append(ends, z(e))
	}
	text := fmt.Sprintf("epoch %d, %s, ends %s, floor %s", m.Epoch, z(m.Zxid), strings.Join(ends, " "), z(m.Floor))
	if m.NoVote {
		text += ", no vote"
	}
	return text
}

func renderOp(op *zab.PersistOp) string {
	switch op.Kind {
	case zab.PersistAppend:
		return "appends " + renderEntries(op.Entries)
	case zab.PersistTruncate:
		if op.Reload {
			return "truncates to " + z(op.Zxid) + ", the state is loaded anew"
		}
		return "truncates to " + z(op.Zxid)
	case zab.PersistSetAccepted:
		return fmt.Sprintf("acceptedEpoch = %d", op.Epoch)
	case zab.PersistSetCurrent:
		return fmt.Sprintf("currentEpoch = %d", op.Epoch)
	}
	return "installs the snapshot of " + z(op.Zxid)
}

func renderRequest(r *zab.HistoryRequest) string {
	switch {
	case r.LogOnly:
		return ", transactions only"
	case r.SnapshotOnly:
		return ", a snapshot only"
	}
	return ""
}

func renderStatus(id zxid.ServerID, st zab.Status) string {
	text := fmt.Sprintf("%d is %v", id, st.Role)
	if st.Role == zab.RoleFollowing || st.Role == zab.RoleObserving {
		text += fmt.Sprintf(" %d", st.Leader)
	}
	if st.Phase != zab.PhaseElection {
		text += ", " + st.Phase.String()
	}
	if st.Serving {
		text += ", serves"
	}
	if st.Role == zab.RoleLooking && st.Why != "" {
		text += ": " + st.Why
	}
	return text
}

// quiet tells lines that say only that everybody is alive.
func quiet(line string) bool {
	f := strings.Fields(line)
	return len(f) > 3 && (f[3] == "PING" || f[3] == "PONG")
}

// Transcript is what a World has written down.
type Transcript struct {
	lines []string
	// Pings has pings and their answers written down as well.
	Pings bool
	// Off stops the writing.
	Off bool

	clock, written int64
	now            func() int64
}

// Record begins a transcript of a World.
func (w *World) Record() *Transcript {
	tr := &Transcript{clock: w.NowMs, written: w.NowMs, now: func() int64 { return w.NowMs }}
	w.write = tr.line
	return tr
}

func (tr *Transcript) line(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if tr.Off || !tr.Pings && quiet(line) {
		return
	}
	if now := tr.now(); now != tr.written {
		tr.lines = append(tr.lines, fmt.Sprintf("(%d ms)", now-tr.clock))
		tr.written = now
	}
	tr.lines = append(tr.lines, line)
}

// Say writes a line of the script.
func (tr *Transcript) Say(format string, args ...any) {
	if len(tr.lines) > 0 {
		tr.lines = append(tr.lines, "")
	}
	tr.lines = append(tr.lines, "# "+fmt.Sprintf(format, args...))
}

// String is the whole transcript.
func (tr *Transcript) String() string { return strings.Join(tr.lines, "\n") + "\n" }

// Has reports whether a line was written that contains all of the parts.
func (tr *Transcript) Has(parts ...string) bool { return has(tr.lines, parts) }

// HasLately is Has for what was written since the script said something.
func (tr *Transcript) HasLately(parts ...string) bool {
	i := len(tr.lines)
	for i > 0 && !strings.HasPrefix(tr.lines[i-1], "#") {
		i--
	}
	return has(tr.lines[i:], parts)
}

func has(lines, parts []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
	})
}
