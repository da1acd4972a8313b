package config

import (
	"crypto/rand"
	"encoding/hex"
)

// moveBytes is the length of a move's name before it is written in hexadecimal: enough never to meet again.
const moveBytes = 16

// newMove returns a name that no other move has.
func newMove() string {
	var b [moveBytes]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return hex.EncodeToString(b[:])
}
