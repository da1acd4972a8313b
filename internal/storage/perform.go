package storage

import (
	"fmt"

	"zabra/zab"
)

// Perform carries out one persist operation. Entries are taken as Append takes them: the caller syncs, once for as many
// operations as it likes. Every other kind is durable on return, together with everything appended before. Errors are those
// of the methods for each kind.
func (s *Store) Perform(op zab.PersistOp) error {
	if op.Kind == zab.PersistAppend {
		return s.Append(op.Entries)
	}
	// An epoch must never be durable before the history that it stands for.
	if err := s.Sync(); err != nil {
		return err
	}
	switch op.Kind {
	case zab.PersistTruncate:
		return s.Truncate(op.Zxid)
	case zab.PersistSetAccepted:
		return s.SetAcceptedEpoch(op.Epoch)
	case zab.PersistSetCurrent:
		return s.SetCurrentEpoch(op.Epoch)
	case zab.PersistInstallSnapshot:
		return s.InstallSnapshot(op.Zxid)
	}
	return fmt.Errorf("storage: unknown persist operation %d", op.Kind)
}
