// Package counter shares numbers and small values between processes, on the nodes that Curator and kazoo use:
//
//   - Long is a number that many change at once. It is Curator's DistributedAtomicLong and DistributedAtomicInteger, and
//     kazoo's Counter, by the choice of a Codec.
//   - Value is a few bytes that everybody follows, Curator's SharedValue, and Count is its SharedCount.
//
// # What a change is worth when its reply is lost
//
// A write that was sent, and whose connection broke before the answer, may have been carried out, and may even be carried
// out later. Long finds out. Each Long has an ephemeral node of its own, its mark, and each change of the number sets the
// mark in the same transaction. The mark then tells whether the last change was carried out, and setting it again under its
// known version makes sure that a change which was not carried out never will be. So a lost reply is neither counted
// twice nor forgotten, and the node of the number holds nothing but the number, as Curator and kazoo want it.
//
// One case is left: the session ends before the mark could be looked at. Then the number itself may still tell (it is as it
// was, or somebody else has made the change that was tried); otherwise the call fails with an UnknownError, which is
// recipes.ErrUnknown, and it cannot be found out by anybody. Curator and kazoo leave both cases to the caller.
//
// Value and Count have no mark. A lost reply there is recipes.ErrUnknown: read, and decide. Who shall know exactly puts
// something of his own into the bytes of the value, or counts by a Long with the codec Curator32, which may be used on
// the node of a Count.
package counter

import "time"

const (
	// retryFirst and retryMost bound the pause between two tries of a change that met another one.
	retryFirst = 10 * time.Millisecond
	retryMost  = time.Second
	// optimisticTries is how often a change is tried again before it asks for the lock, if there is one.
	optimisticTries = 5
	// rereadPause is the pause after a read that failed for good, by its policy of retry.
	rereadPause = time.Second
)
