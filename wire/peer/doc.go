// Package peer is the dialect in which servers of this kind talk to each other: greetings, frames, and the messages of
// package zab in them. It knows bytes and connections, and nothing of the protocol behind the messages.
//
// A connection goes through three stages. First the Authenticator makes sure who is at the other end. Then the side that
// dialled sends its hello and the other answers (Greet, Answer). From then on both sides send frames as they like
// (Encoder, Reader); a connection for the election carries notifications, one for the quorum everything else.
//
// All numbers outside of bodies are unsigned and big-endian. CRC32C is the checksum with the Castagnoli polynomial, as in
// iSCSI: that of "123456789" is e3069283.
//
// # Greetings
//
//	bytes  what
//	8      89 'Z' 'a' 'b' 'r' 'a' 0d 0a
//	2      version of the sender's dialect: 1
//	1      kind: 1 hello, 2 accepted, 3 refused
//	2      length of the body, at most 1024
//	4      CRC32C of the 13 bytes before and the body
//	       body
//
// The body of a hello and of an acceptance is the msgpack array
//
//	[from, to, purpose, config version]
//
// with the id of the sender, the id of the server that is meant, 1 for the election or 2 for the quorum, and the version
// of the membership that the sender goes by. The body of a refusal is its reason, UTF-8 text of at most 512 bytes. The
// side that answers a hello puts its own id into from; each side checks that the other is who it should be. A server
// that does not know the version of a hello refuses it; head and refusal are the same in every version, so that the
// reason can always be read. What does not begin with the eight bytes is not answered.
//
// # Frames
//
//	bytes  what
//	4      length of the body
//	1      kind
//	4      CRC32C of the five bytes before and the body
//	       body
//
// A frame is at most 65 MiB long, header included; most kinds have a much lower bound. A COMMIT of 800000002:
//
//	0000000a 04 f98924f7 91 cf0000000800000002
//
// The body is one msgpack array with exactly the elements of its kind. Integers from 0 are written in the unsigned
// formats, integers below 0 in the signed ones, and everything is in its shortest form: there is one encoding of each
// message, and a reader refuses any other. There are no maps, no nil, no floats, no extensions. Bytes are of the bin
// formats, text of the str formats (not checked for UTF-8). Bytes after the array, unknown kinds, kinds that have no
// place on the connection, wrong checksums and numbers out of range end the connection.
//
//	kind                        body
//	32  NOTIFICATION            [round, role, leader, zxid, epoch, config version]
//	11  FOLLOWERINFO            [accepted epoch, config version]
//	16  OBSERVERINFO            [accepted epoch, config version]
//	17  LEADERINFO              [new epoch]
//	18  ACKEPOCH                [current epoch, last zxid, ends, floor, no vote, from, file zxid, file name, offset]
//	13  DIFF                    [zxid]
//	14  TRUNC                   [zxid]
//	15  SNAP                    [zxid, file zxid, file name, offset]
//	 2  PROPOSAL                [after zxid, committed zxid, entries]
//	 8  INFORM                  [after zxid, committed zxid, entries]
//	 4  COMMIT                  [zxid]
//	10  NEWLEADER               [epoch, config version]
//	12  UPTODATE                [epoch, zxid]
//	 3  ACK                     [zxid]
//	33  ACK-NEWLEADER           [epoch, zxid]
//	 5  PING                    [round]
//	34  PONG                    [round, touches]
//	 1  REQUEST                 [requests]
//	35  REFUSED                 [server, conn, seq, code]
//	 7  SYNC                    [id]
//	36  SYNCED                  [id, zxid]
//	 6  REVALIDATE              [id, session, timeout, server, conn, seq]
//	37  REVALIDATED             [id, session, valid, zxid]
//	48  CHUNK                   [offset, size of the file, bytes]
//	49  KEEPALIVE               []
//
// What the messages mean stands at the kinds of package zab. The ranges: epochs are below 2^31; zxids, offsets, sizes and
// config versions are 0 to 2^63-1, but leader and zxid of a NOTIFICATION, server ids and sessions are any signed 64-bit
// number; conn, seq, round and id any unsigned one; cxid, opcode and code signed 32-bit; times are in milliseconds, 0 to
// 2^31-1; no vote and valid are true or false; role is 0 looking, 1 following, 2 leading, 3 observing. A file name has 1
// to 255 letters, digits, '.', '-' and '_', and begins with a letter or digit. The last four elements of ACKEPOCH are the
// rest of a broken transfer, or 0, 0, "", 0.
//
//   - entries: byte string, one transaction after the other: zxid (8 bytes), server, conn and seq of its origin (8 each),
//     length of the payload (4), payload. The zxids ascend, the first is after the message's; no payload is empty.
//   - ends: byte string of up to 64 zxids (8 bytes each) that ascend up to the last zxid.
//   - touches: byte string, for each session its id (8 bytes), timeout (4) and age (4).
//   - requests: byte string, one request after the other, at least one: server, conn and seq of its origin, session (8 bytes
//     each), cxid and opcode (4 each), number of identities (2), for each length (4) and text of scheme and id, length of the record
//     (4), record. At most 1024 identities; ffff stands for those of the request before, and has to where they are the same.
//
// The CHUNKs of a snapshot follow its SNAP, with other frames in between if need be, and are at most 1 MiB long each. The
// file ends where offset and length reach its size; an empty chunk is allowed there only.
package peer
