package replica

import (
	"errors"
	"fmt"
	"io"

	"zabra/zab/zxid"
	"zabra/znode"
)

// Restoring. A snapshot that is put in the place of a state that clients may know, or of one that is lost, is changed in
// two ways before, so that nobody takes the one for the other:
//
// It gets the zxid of the beginning of a new epoch, beyond everything that was ever given out. A client that has seen the
// later transactions of the state before would refuse, and be refused by, a server whose zxids have gone back; worse, once
// these had caught up, the same zxid would stand for two transactions.
//
// And it loses its sessions. A client that went on with its session would set its watches as of the zxid that it has seen,
// which every node of the restored state is older than: no watch would fire, and what the client has cached would stay,
// though it is wrong. Nor would it learn that ephemeral nodes which it has made since are gone. When its session is
// expired, it begins anew. The ephemeral nodes of the snapshot are orphans then, and closed as such by the leader.
//
// The nodes are those of the snapshot, and so is the digest.

// epochMax is the highest epoch that ZooKeeper can represent in a zxid.
const epochMax = 1<<31 - 1

// RestoredZxid returns the zxid that a snapshot gets when it is to follow a state, whichever of the two is the later.
func RestoredZxid(snapshot, state zxid.Zxid) (zxid.Zxid, error) {
	epoch := max(snapshot.Epoch(), state.Epoch())
	if epoch >= epochMax {
		return 0, errors.New("no epoch is left to restore into")
	}
	return zxid.Make(epoch+1, 0), nil
}

// ReadRestored reads a snapshot, uncompressed, that is to be put in the place of a state, as the state of z. info is what
// znode.InspectSnapshot has told of it. If its digest is that of its last transaction, it is compared.
func ReadRestored(r io.Reader, cfg znode.Config, fieldBytesMax int, info znode.SnapshotInfo, z zxid.Zxid) (*znode.Tree, error) {
	tree, _, err := znode.ReadSnapshot(r, cfg, fieldBytesMax, z)
	if err != nil {
		return nil, err
	}
	if info.HasDigest && !cfg.NoDigest && tree.Digest() != info.Digest {
		return nil, fmt.Errorf("its digest is %d, but that of its content is %d: it was damaged, or written by ZooKeeper while the data changed and is of use "+
			"only together with the log of that time", info.Digest, tree.Digest())
	}
	tree.DropSessions()
	return tree, nil
}
