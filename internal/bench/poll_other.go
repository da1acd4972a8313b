//go:build !linux

package bench

func newPoller(bool) (poller, error) { return newPortable(), nil }
