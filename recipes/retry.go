package recipes

import "time"

// RetryPolicy says how long to wait at most before the next attempt, and whether there is one: a connection that is back ends
// the wait. attempt counts from 0, for the wait after the first failure. It has to be usable from several goroutines.
type RetryPolicy func(attempt int) (wait time.Duration, again bool)

// Exponential tries without end, until the context of the call does. The wait begins with first and doubles up to most.
func Exponential(first, most time.Duration) RetryPolicy {
	return func(attempt int) (time.Duration, bool) {
		wait := first
		for range attempt {
			if wait *= 2; wait >= most {
				return most, true
			}
		}
		return min(wait, most), true
	}
}

// Times tries n times more, with the same wait before each.
func Times(n int, wait time.Duration) RetryPolicy {
	return func(attempt int) (time.Duration, bool) { return wait, attempt < n }
}

// Never gives up at the first failure.
func Never() RetryPolicy { return Times(0, 0) }
