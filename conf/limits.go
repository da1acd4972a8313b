package conf

const (
	// fileBytesMax bounds a configuration file and a JAAS file; real ones have a few kilobytes.
	fileBytesMax = 1 << 20
	// myidBytesMax bounds the file myid, of which only the first line counts.
	myidBytesMax = 4096
	// faultsMax bounds the faults that are reported of one file.
	faultsMax = 100
	// snapRetainCountMin is the least number of snapshots that a purge keeps, as in ZooKeeper.
	snapRetainCountMin = 3
	// snapCountMin is what ZooKeeper raises smaller values to.
	snapCountMin = 2
	// commitLogCountMin is what ZooKeeper raises smaller values to. commitLogCountMax keeps a slip of the hand from taking
	// all memory.
	commitLogCountMin = 500
	commitLogCountMax = 1_000_000
	// extraBytesMin is the least headroom of records on disk, as in ZooKeeper.
	extraBytesMin = 1024
	// juteBytesMin keeps the limit of a request above what the handshake and an empty multi need.
	juteBytesMin = 1024
	// valueShownMax cuts values in messages.
	valueShownMax = 200
)
