package zab

// Plant is a set of known bugs that are re-planted for the simulator to find: each stands for a mistake that ZooKeeper,
// or a paper about it, has made. Config.Plant is zero everywhere else.
type Plant uint64

// The bugs.
const (
	// PlantEpochBeforeHistory makes currentEpoch durable before the synchronised history (D-01).
	PlantEpochBeforeHistory Plant = 1 << iota
	// PlantAckNewLeaderEarly acknowledges NEWLEADER before the history is durable (D-02, D-05).
	PlantAckNewLeaderEarly
	// PlantAckEarly acknowledges proposals before they are durable.
	PlantAckEarly
	// PlantAckEpochEarly answers LEADERINFO before acceptedEpoch is durable.
	PlantAckEpochEarly
	// PlantVoteNotDurable votes with what is in the log and may not be durable, and while the disk still writes (D-18).
	PlantVoteNotDurable
	// PlantCommitMinority commits what one server has acknowledged.
	PlantCommitMinority
	// PlantSyncWithoutQuorum answers sync without proof that this server still leads (D-22).
	PlantSyncWithoutQuorum
	// PlantSkipPredecessor does not check that a proposal follows the last transaction (D-06, D-10).
	PlantSkipPredecessor
	// PlantTruncateOne truncates one transaction too few (D-09).
	PlantTruncateOne
	// PlantNoTruncate keeps what the leader wants truncated.
	PlantNoTruncate
	// PlantApplyUncommitted applies what is durable here without waiting for the commit.
	PlantApplyUncommitted
	// PlantApplyUndurable applies what is committed and not durable here (D-44, D-18).
	PlantApplyUndurable
	// PlantReuseEpoch takes the accepted epoch for a new leadership instead of the next one.
	PlantReuseEpoch
	// PlantWorseLeader goes on as leader although a voter of the quorum has the longer history (D-50).
	PlantWorseLeader
	// PlantServeBeforeQuorum serves as leader before a quorum has acknowledged NEWLEADER (D-34).
	PlantServeBeforeQuorum
	// PlantServeEarly serves as learner before the leader says UPTODATE.
	PlantServeEarly
	// PlantNoStepDown goes on leading without a quorum.
	PlantNoStepDown
	// PlantVoteByZxid orders votes by zxid alone, without the epoch.
	PlantVoteByZxid
	// PlantVoteWhileWriting votes before the disk is done with what the ended role gave it (D-23).
	PlantVoteWhileWriting
	// PlantCommitAhead tells learners of a commit that is only proposed (D-43).
	PlantCommitAhead
	// PlantSnapshotTooOld serves a learner with a snapshot that is older than what it shares with the leader (D-04, D-07).
	PlantSnapshotTooOld

	plantsEnd
)

// plantNames are the names on the command line, in the order of the constants.
var plantNames = [...]string{
	"epoch-before-history", "ack-newleader-early", "ack-early", "ack-epoch-early", "vote-not-durable", "commit-minority",
	"sync-without-quorum", "skip-predecessor", "truncate-one", "no-truncate", "apply-uncommitted", "apply-undurable",
	"reuse-epoch", "worse-leader", "serve-before-quorum", "serve-early", "no-step-down", "vote-by-zxid",
	"vote-while-writing", "commit-ahead", "snapshot-too-old",
}

// Each bug has one name; otherwise this does not compile.
var _ = [1]struct{}{}[plantsEnd-1<<len(plantNames)]

// Plants lists the bugs with their names.
func Plants() map[string]Plant {
	m := make(map[string]Plant, len(plantNames))
	for i, name := range plantNames {
		m[name] = 1 << i
	}
	return m
}

// planted reports whether a bug is to be shown.
func (n *Node) planted(p Plant) bool { return n.cfg.Plant&p != 0 }
