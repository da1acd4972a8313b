package admin

// Bounds of this package. Their unit is in the name.
const (
	// largeAnswersMax is how many answers that grow with the number of clients are made and sent at a time, so that they do not
	// take all memory. More wait.
	largeAnswersMax = 4
	// streamChunkBytes is how much of a stream is read and written at a time.
	streamChunkBytes = 256 << 10
	// transportSecurity is what browsers are told of a server that has answered them over TLS.
	transportSecurity = "max-age=86400; includeSubDomains"
)
