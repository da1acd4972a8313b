//go:build linux

package judge

import (
	"encoding/binary"
	"hash/adler32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// The judges have to condemn what is wrong: each history here differs in one point from one that is right.

const noVersion = harness.AnyVersion

func set(call, ret int64, value string, version, becomes int32) *Op {
	return &Op{Call: call, Return: ret, Known: true, Write: []Sub{{Verb: Set, Value: value, Version: version}},
		Codes: []int32{0}, Stats: []harness.Stat{{Version: becomes}}}
}

func create(call, ret int64, value string) *Op {
	return &Op{Call: call, Return: ret, Known: true, Write: []Sub{{Verb: Create, Value: value}}, Codes: []int32{0}, Stats: make([]harness.Stat, 1)}
}

func read(call, ret int64, value string, version int32) *Op {
	return &Op{Call: call, Return: ret, Known: true, Synced: true, Codes: []int32{0}, Value: value, Stats: []harness.Stat{{Version: version}}}
}

func open(op *Op) *Op { op.Known = false; return op }

func code(op *Op, code int32) *Op { op.Codes = []int32{code}; return op }

func multi(call, ret int64, codes []int32, write ...Sub) *Op {
	return &Op{Call: call, Return: ret, Known: true, Multi: true, Write: write, Codes: codes, Stats: make([]harness.Stat, len(write))}
}

func TestLinearizable(t *testing.T) {
	both := []Sub{{Verb: Set, Key: 0, Value: "x", Version: noVersion}, {Verb: Set, Key: 1, Value: "y", Version: noVersion}}
	for name, c := range map[string]struct {
		ops  []*Op
		want porcupine.CheckResult
	}{
		"one after the other":             {[]*Op{create(0, 1, "a"), set(2, 3, "b", 0, 1), read(4, 5, "b", 1)}, porcupine.Ok},
		"stale read":                      {[]*Op{create(0, 1, "a"), set(2, 3, "b", 0, 1), read(4, 5, "a", 0)}, porcupine.Illegal},
		"read during the write":           {[]*Op{create(0, 1, "a"), set(2, 5, "b", 0, 1), read(3, 4, "a", 0)}, porcupine.Ok},
		"acknowledged write is lost":      {[]*Op{create(0, 1, "a"), code(read(2, 3, "", 0), harness.CodeNoNode)}, porcupine.Illegal},
		"compare-and-set won twice":       {[]*Op{create(0, 1, "a"), set(2, 9, "b", 0, 1), set(3, 9, "c", 0, 1)}, porcupine.Illegal},
		"open write happened":             {[]*Op{create(0, 1, "a"), open(set(2, 3, "b", 0, 0)), read(4, 5, "b", 1)}, porcupine.Ok},
		"open write did not happen":       {[]*Op{create(0, 1, "a"), open(set(2, 3, "b", 0, 0)), read(4, 5, "a", 0)}, porcupine.Ok},
		"open write happened late":        {[]*Op{create(0, 1, "a"), open(set(2, 3, "b", 0, 0)), read(4, 5, "a", 0), read(6, 7, "b", 1)}, porcupine.Ok},
		"open write went away":            {[]*Op{create(0, 1, "a"), open(set(2, 3, "b", 0, 0)), read(4, 5, "b", 1), read(6, 7, "a", 0)}, porcupine.Illegal},
		"open write happened twice":       {[]*Op{create(0, 1, "a"), open(set(2, 3, "b", noVersion, 0)), read(4, 5, "b", 2)}, porcupine.Illegal},
		"wrong error":                     {[]*Op{create(0, 1, "a"), code(set(2, 3, "b", 7, 0), harness.CodeNoNode)}, porcupine.Illegal},
		"right error":                     {[]*Op{create(0, 1, "a"), code(set(2, 3, "b", 7, 0), harness.CodeBadVersion)}, porcupine.Ok},
		"multi fails as a whole":          {[]*Op{create(0, 1, "a"), multi(2, 3, []int32{0, -101}, both...), read(4, 5, "a", 0)}, porcupine.Ok},
		"multi happened by half":          {[]*Op{create(0, 1, "a"), multi(2, 3, []int32{0, -101}, both...), read(4, 5, "x", 1)}, porcupine.Illegal},
		"error behind the failed step":    {[]*Op{multi(2, 3, []int32{-101, -2}, both...)}, porcupine.Ok},
		"no error behind the failed step": {[]*Op{multi(2, 3, []int32{-101, 0}, both...)}, porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, porcupine.CheckOperationsTimeout(model, operations(c.ops), time.Minute))
		})
	}
}

// answer makes a step of a read that found mzxid at zxid, or of a write when mzxid is 0.
func answer(zxid, mzxid int64, watch bool) Step {
	op := &Op{Known: true, Zxid: zxid, Watch: watch, Codes: []int32{0}, Stats: []harness.Stat{{Czxid: 1, Mzxid: mzxid}}, Value: "a"}
	if mzxid == 0 {
		op.Write = []Sub{{Verb: Set, Value: "a"}}
		op.Stats[0].Mzxid = zxid
	}
	return Step{Kind: StepAnswer, Op: op}
}

func TestPromises(t *testing.T) {
	connected, event := Step{Kind: StepConnected}, Step{Kind: StepEvent, Path: Path(0, 0), Zxid: -1}
	for name, c := range map[string]struct {
		steps  []Step
		broken bool
	}{
		"all is well":                     {[]Step{connected, answer(5, 0, false), answer(6, 5, true), event, answer(7, 7, false)}, false},
		"the zxid goes back":              {[]Step{answer(5, 0, false), answer(4, 3, false)}, true},
		"two writes with one zxid":        {[]Step{answer(5, 0, false), answer(5, 0, false)}, true},
		"own write is not seen":           {[]Step{answer(5, 0, false), answer(6, 4, false)}, true},
		"new data before the event":       {[]Step{answer(5, 4, true), answer(7, 7, false), event}, true},
		"watches end with the connection": {[]Step{answer(5, 4, true), connected, answer(7, 7, false)}, false},
		"an event without a watch":        {[]Step{answer(5, 4, false), event}, true},
		"an event after the connection":   {[]Step{answer(5, 4, true), connected, event}, true},
		"data from the future":            {[]Step{answer(5, 6, false)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.broken, len(CheckPromises(Notes{Steps: c.steps})) > 0)
		})
	}
}

// record encodes a transaction as it stands in a log file.
func record(session int64, cxid int32, zxid int64, kind int32, body ...any) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(session))
	b = binary.BigEndian.AppendUint32(b, uint32(cxid))
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = binary.BigEndian.AppendUint64(b, 1234)
	b = binary.BigEndian.AppendUint32(b, uint32(kind))
	for _, field := range body {
		switch v := field.(type) {
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

func writeLog(t *testing.T, tail string, records ...[]byte) string {
	b := binary.BigEndian.AppendUint32(nil, logMagic)
	b = append(b, make([]byte, logFileHeader-4)...)
	for _, r := range records {
		b = binary.BigEndian.AppendUint64(b, uint64(adler32.Checksum(r)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(r)))
		b = append(append(b, r...), 'B')
	}
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "version-2"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "version-2", "log.1"), append(b, tail...), 0o644))
	return dir
}

func history(t *testing.T, records ...[]byte) []Txn {
	log, err := ReadLogs(writeLog(t, "", records...))
	require.NoError(t, err)
	return log
}

func TestReadLogs(t *testing.T) {
	first := record(7, 1, 1, TxnCreate, "/judge-0/k0", "a", 0, 0)
	multi := record(7, 2, 2, txnMulti, 2, TxnSet, string(record(0, 0, 0, 0, "/judge-0/k0", "b", 1)[logTxnHeader:]), txnError, string(binary.BigEndian.AppendUint32(nil, 0xffffff9b)))
	log, err := ReadLogs(writeLog(t, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09torn", first, multi))
	require.NoError(t, err)
	require.Len(t, log, 2)
	require.Equal(t, []Change{{Type: TxnCreate, Path: "/judge-0/k0", Value: "a"}}, log[0].Changes)
	require.Equal(t, []Change{{Type: txnError}, {Type: txnError, Code: -101}}, log[1].Changes)
	_, err = ReadLogs(writeLog(t, "", first[:logTxnHeader+6]))
	require.ErrorContains(t, err, "too short")
}

func TestMerge(t *testing.T) {
	a, b, c := record(7, 1, 1, TxnCreate, "/a", "a"), record(7, 2, 2, TxnSet, "/a", "b", 1), record(7, 3, 3, TxnSet, "/a", "c", 2)
	other := record(7, 2, 2, TxnSet, "/a", "B", 1)
	epoch := record(7, 4, 1<<32+1, TxnSet, "/a", "d", 3)
	all, err := Merge([][]Txn{history(t, a, b), history(t, b, c, epoch)})
	require.NoError(t, err)
	require.Len(t, all, 4)
	_, err = Merge([][]Txn{history(t, a, b), history(t, other, c)})
	require.ErrorContains(t, err, "another transaction")
	_, err = Merge([][]Txn{history(t, a, c)})
	require.ErrorContains(t, err, "missing")
	_, err = Merge([][]Txn{history(t, b, a)})
	require.ErrorContains(t, err, "behind")
}

func TestReplay(t *testing.T) {
	txns := history(t, record(7, 1, 1, TxnCreate, "/judge-0/k0", "a", 0, 0), record(7, 2, 2, TxnSet, "/judge-0/k0", "b", 1), record(7, 3, 3, txnError, -103))
	r, err := NewReplay(txns)
	require.NoError(t, err)
	shown := func(zxid, mzxid int64, version int32, value string, watch bool) Step {
		return Step{Kind: StepAnswer, Op: &Op{Known: true, Zxid: zxid, Watch: watch, Codes: []int32{0}, Value: value,
			Stats: []harness.Stat{{Czxid: 1, Mzxid: mzxid, Version: version}}}}
	}
	wrote := func(xid int32, zxid int64, value string, code int32) Step {
		return Step{Kind: StepAnswer, Op: &Op{Known: true, Session: 7, Xid: xid, Zxid: zxid, Codes: []int32{code},
			Write: []Sub{{Verb: Set, Value: value}}, Stats: []harness.Stat{{Version: 1}}}}
	}
	event := func(zxid int64) Step { return Step{Kind: StepEvent, Path: Path(0, 0), Zxid: zxid} }
	for name, c := range map[string]struct {
		steps  []Step
		broken bool
	}{
		"reads of both states":              {[]Step{shown(1, 1, 0, "a", true), event(2), shown(2, 2, 1, "b", false)}, false},
		"the old value under the new zxid":  {[]Step{shown(2, 1, 0, "a", false)}, true},
		"the new value under the old zxid":  {[]Step{shown(1, 2, 1, "b", false)}, true},
		"a wrong version":                   {[]Step{shown(2, 2, 2, "b", false)}, true},
		"an acknowledged write":             {[]Step{wrote(2, 2, "b", 0)}, false},
		"an acknowledged write is lost":     {[]Step{wrote(9, 4, "z", 0)}, true},
		"acknowledged under another zxid":   {[]Step{wrote(2, 3, "b", 0)}, true},
		"another value was written":         {[]Step{wrote(2, 2, "c", 0)}, true},
		"an error that was logged":          {[]Step{wrote(3, 3, "c", -103)}, false},
		"another error":                     {[]Step{wrote(3, 3, "c", -101)}, true},
		"an event of something else":        {[]Step{shown(1, 1, 0, "a", true), event(3)}, true},
		"an answer overtakes the event":     {[]Step{shown(1, 1, 0, "a", true), wrote(3, 3, "c", -103), event(2)}, true},
		"an event before anything happened": {[]Step{shown(2, 2, 1, "b", true), event(-1)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			broken := r.Check(Notes{Steps: c.steps})
			require.Equal(t, c.broken, len(broken) > 0, "%v", broken)
		})
	}

	_, err = NewReplay(history(t, record(7, 1, 1, TxnCreate, "/a", "a"), record(7, 1, 2, TxnSet, "/a", "a", 1)))
	require.ErrorContains(t, err, "twice")
	_, err = NewReplay(history(t, record(7, 1, 1, TxnCreate, "/a", "a"), record(7, 2, 2, TxnSet, "/a", "a", 2)))
	require.ErrorContains(t, err, "goes from version")
	_, err = NewReplay(history(t, record(7, 1, 1, TxnSet, "/a", "a", 1)))
	require.ErrorContains(t, err, "exists")
}
