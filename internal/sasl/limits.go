package sasl

const (
	// TokenBytesMax is the longest token that either side of an exchange takes.
	TokenBytesMax = 4096
	// nonceBytes is how much randomness is in a nonce.
	nonceBytes = 32
	// directivesMax is how many directives a token may hold.
	directivesMax = 64
	// jaasWordBytesMax bounds a name or a value in a JAAS file, jaasEntriesMax the sections, the modules of a section and the
	// options of a module.
	jaasWordBytesMax = 64 << 10
	jaasEntriesMax   = 10_000
	// shownBytesMax cuts names that are quoted in a message.
	shownBytesMax = 64
)
