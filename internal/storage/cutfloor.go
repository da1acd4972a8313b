package storage

import "zabra/zab/zxid"

// CutFloor is the lowest transaction that Truncate takes: what another server wrote is not cut. It belongs to the disk
// goroutine, and Begin comes before it.
func (s *Store) CutFloor() zxid.Zxid { return s.state.rec.cutFloor }
