package ensemble

const (
	// addressesMax bounds the addresses of one server line.
	addressesMax = 64
	// textBytesMax bounds a configuration text.
	textBytesMax = 1 << 20
	// shownBytesMax cuts values that are quoted in messages.
	shownBytesMax = 200
	// weightMax bounds the weight of one server, so that sums cannot overflow.
	weightMax = 1 << 31
)
