package storage

import (
	"encoding/binary"

	"zabra/internal/adler"
	"zabra/zab/zxid"
)

// logHeader is the header of every log: magic "ZKLG", version 2, dbid 0 (on disk).
var logHeader = [fileHeaderBytes]byte{'Z', 'K', 'L', 'G', 0, 0, 0, 2}

// logMagic is all of the header that readers check.
const logMagic = 0x5a4b4c47

// appendRecord appends one log record: the checksum covers the payload only.
func appendRecord(b, payload []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(adler.Checksum(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, payload...)
	return append(b, recordEndByte)
}

// payloadZxid reads the zxid out of an encoded transaction of at least txnHeaderBytes.
func payloadZxid(payload []byte) zxid.Zxid {
	return zxid.Zxid(binary.BigEndian.Uint64(payload[txnZxidOffset:]))
}
