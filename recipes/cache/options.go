package cache

import (
	"errors"
	"fmt"
	pathpkg "path"
	"strings"
	"time"

	"zabra/recipes"
)

const (
	nodesMaxDefault  = 100_000
	bytesMaxDefault  = 256 << 20
	eventsMaxDefault = 1 << 18
	// readsMax bounds the reads of one cache that are under way at a time.
	readsMax = 16
	// A read that failed because of the connection is tried again after retryWaitMin, then after twice that, and so on.
	retryWaitMin, retryWaitMax = 20 * time.Millisecond, 2 * time.Second
	// faultRetryWait is between two attempts to read a node that the server refuses to show.
	faultRetryWait = 5 * time.Second
	// refusalsMax is how often a child that seems newer than the list of its parent's children is put off before it is
	// taken as it is: a server whose pzxid is wrong must not keep us listing for ever.
	refusalsMax = 3
)

var (
	// ErrTooLarge is why a cache stopped: the nodes it should hold are more than Options.NodesMax, or their bytes more than
	// Options.BytesMax.
	ErrTooLarge = errors.New("cache: too large")
	// ErrEventsOverflow is why a stream of events ended whose reader fell behind by more than Options.EventsMax.
	ErrEventsOverflow = errors.New("cache: reader of events fell too far behind")
	// ErrClosed is why a cache stopped that was closed, or whose client was.
	ErrClosed = errors.New("cache: closed")
)

// Options say what a cache takes in. The zero value is right for most.
type Options struct {
	// Filter says which paths are of interest, the root excepted, which always is. What it refuses is neither read nor
	// watched, and nor is anything below. It must give the same answer each time and must not block. Nil takes all.
	Filter func(path string) bool
	// DepthMax bounds how far a Tree goes down: 1 takes the root and its children. 0 goes all the way.
	DepthMax int
	// NodesMax bounds the nodes, 100,000 if 0. A cache that would need more stops with ErrTooLarge.
	NodesMax int
	// BytesMax bounds the bytes of all data and paths, 256 MiB if 0. A cache that would need more stops with ErrTooLarge.
	BytesMax int64
	// EventsMax bounds the events that wait for one reader, 262,144 if 0. A reader that falls behind further loses its
	// stream, with ErrEventsOverflow.
	EventsMax int
}

// normalize fills in the defaults and refuses what makes no sense.
func (o *Options) normalize() error {
	if o.DepthMax < 0 || o.NodesMax < 0 || o.BytesMax < 0 || o.EventsMax < 0 {
		return fmt.Errorf("cache: a limit is negative: depth %d, nodes %d, bytes %d, events %d", o.DepthMax, o.NodesMax, o.BytesMax, o.EventsMax)
	}
	if o.NodesMax == 0 {
		o.NodesMax = nodesMaxDefault
	}
	if o.BytesMax == 0 {
		o.BytesMax = bytesMaxDefault
	}
	if o.EventsMax == 0 {
		o.EventsMax = eventsMaxDefault
	}
	return nil
}

// checkPath refuses what no server would take.
func checkPath(path string) error {
	if !strings.HasPrefix(path, "/") || path != pathpkg.Clean(path) || strings.ContainsRune(path, 0) {
		return fmt.Errorf("cache: %w: %q", recipes.ErrPath, path)
	}
	return nil
}

func join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}
