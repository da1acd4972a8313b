package peer

import (
	"fmt"

	"zabra/zab"
)

// FrameKind says what is in a frame. The numbers are part of the dialect; where ZooKeeper has a packet of the same
// meaning, the number is that of its packet.
type FrameKind uint8

// The kinds of frames.
const (
	KindRequest      FrameKind = 1
	KindProposal     FrameKind = 2
	KindAck          FrameKind = 3
	KindCommit       FrameKind = 4
	KindPing         FrameKind = 5
	KindRevalidate   FrameKind = 6
	KindSync         FrameKind = 7
	KindInform       FrameKind = 8
	KindNewLeader    FrameKind = 10
	KindFollowerInfo FrameKind = 11
	KindUpToDate     FrameKind = 12
	KindDiff         FrameKind = 13
	KindTrunc        FrameKind = 14
	KindSnap         FrameKind = 15
	KindObserverInfo FrameKind = 16
	KindLeaderInfo   FrameKind = 17
	KindAckEpoch     FrameKind = 18

	KindNotification FrameKind = 32
	KindAckNewLeader FrameKind = 33
	KindPong         FrameKind = 34
	KindRefused      FrameKind = 35
	KindSynced       FrameKind = 36
	KindRevalidated  FrameKind = 37

	// KindChunk is a piece of a snapshot file, KindKeepAlive a frame that says nothing. Neither carries a message.
	KindChunk     FrameKind = 48
	KindKeepAlive FrameKind = 49
)

// places is a set of purposes.
type places uint8

const (
	onElection places = 1 << PurposeElection
	onQuorum   places = 1 << PurposeQuorum
)

// kindInfo is what there is to know about a kind of frame.
type kindInfo struct {
	message zab.MessageKind // 0: carries no message
	places  places
	layout  *layout
}

// kinds is the dialect in one table.
var kinds = [256]kindInfo{
	KindNotification: {zab.MessageNotification, onElection, &notificationLayout},

	KindFollowerInfo: {zab.MessageFollowerInfo, onQuorum, &infoLayout},
	KindObserverInfo: {zab.MessageObserverInfo, onQuorum, &infoLayout},
	KindLeaderInfo:   {zab.MessageLeaderInfo, onQuorum, &epochLayout},
	KindAckEpoch:     {zab.MessageAckEpoch, onQuorum, &ackEpochLayout},

	KindDiff:         {zab.MessageDiff, onQuorum, &zxidLayout},
	KindTrunc:        {zab.MessageTrunc, onQuorum, &zxidLayout},
	KindSnap:         {zab.MessageSnap, onQuorum, &snapLayout},
	KindProposal:     {zab.MessageProposal, onQuorum, &batchLayout},
	KindInform:       {zab.MessageInform, onQuorum, &batchLayout},
	KindCommit:       {zab.MessageCommit, onQuorum, &zxidLayout},
	KindNewLeader:    {zab.MessageNewLeader, onQuorum, &infoLayout},
	KindUpToDate:     {zab.MessageUpToDate, onQuorum, &epochZxidLayout},
	KindAck:          {zab.MessageAck, onQuorum, &zxidLayout},
	KindAckNewLeader: {zab.MessageAckNewLeader, onQuorum, &epochZxidLayout},

	KindPing: {zab.MessagePing, onQuorum, &idLayout},
	KindPong: {zab.MessagePong, onQuorum, &pongLayout},

	KindRequest:     {zab.MessageRequest, onQuorum, &requestsLayout},
	KindRefused:     {zab.MessageRefused, onQuorum, &refusedLayout},
	KindSync:        {zab.MessageSync, onQuorum, &idLayout},
	KindSynced:      {zab.MessageSynced, onQuorum, &syncedLayout},
	KindRevalidate:  {zab.MessageRevalidate, onQuorum, &revalidateLayout},
	KindRevalidated: {zab.MessageRevalidated, onQuorum, &revalidatedLayout},

	KindChunk:     {places: onQuorum, layout: &chunkLayout},
	KindKeepAlive: {places: onElection | onQuorum, layout: &emptyLayout},
}

// kindOf finds the kind of frame that carries a kind of message.
var kindOf = func() (of [256]FrameKind) {
	for k, info := range kinds {
		if info.message != 0 {
			of[info.message] = FrameKind(k)
		}
	}
	return of
}()

// Known reports whether k is one of the kinds above.
func (k FrameKind) Known() bool { return kinds[k].places != 0 }

// String returns the name of the kind, that of its message if it carries one.
func (k FrameKind) String() string {
	switch {
	case k == KindChunk:
		return "CHUNK"
	case k == KindKeepAlive:
		return "KEEPALIVE"
	case k.Known():
		return kinds[k].message.String()
	}
	return fmt.Sprintf("FRAME-%d", uint8(k))
}
