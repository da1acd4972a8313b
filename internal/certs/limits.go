package certs

import "time"

const (
	// storeBytesMax bounds a store. The one of a Java installation, with some 150 authorities, has 200 kB.
	storeBytesMax = 4 << 20
	// passwordBytesMax bounds the file with a password.
	passwordBytesMax = 4 << 10
	// entriesMax bounds the entries of a store in JKS, and the certificates of one of them.
	entriesMax = 10_000
	// iterationsMax bounds the work of turning a password into a key, as Java does. Tools use a few thousand to a million rounds.
	iterationsMax = 5_000_000
	// macKeyBytesMax bounds the key of a MAC. Real ones are as long as a hash.
	macKeyBytesMax = 1024
	// lookupTime bounds looking up the name of an address.
	lookupTime = 2 * time.Second
	// namesShownMax is how many names of a certificate an error shows.
	namesShownMax = 8
)
