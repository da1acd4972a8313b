package discovery

import "time"

const (
	// instanceBytesMax bounds the JSON of one instance, written or read. What others wrote beyond it is skipped.
	instanceBytesMax = 256 << 10
	// instancesMax is how many instances of one service are read. The rest, in the order of their names, is skipped.
	instancesMax = 10_000
	// nameBytesMax bounds the name of a service and the id of an instance.
	nameBytesMax = 512
	// uriPartsMax bounds the parts of a URI spec.
	uriPartsMax = 256
	// portMax is the highest port there is.
	portMax = 65535

	// retryWaitFirst and retryWaitMax are the pauses after a request that failed for another reason than the connection.
	retryWaitFirst = 50 * time.Millisecond
	retryWaitMax   = 5 * time.Second

	// downErrorsDefault and downWindowDefault are those of Curator.
	downErrorsDefault = 2
	downWindowDefault = 30 * time.Second
	// removalWindow is the span of Dampening.RemovalsPerMinute.
	removalWindow = time.Minute
)
