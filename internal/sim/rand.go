package sim

import "math/rand/v2"

// random is a source of everything that a seed decides.
type random struct{ *rand.Rand }

// newRandom makes one of several independent streams of a seed, so that what one part of the world draws does not change
// what another part gets.
func newRandom(seed uint64, stream uint64) random {
	return random{rand.New(rand.NewPCG(seed, stream))}
}

// chance is true once in n times.
func (r random) chance(n int) bool { return r.IntN(n) == 0 }

// between returns a time from a up to b.
func (r random) between(a, b Micros) Micros {
	if b <= a {
		return a
	}
	return a + Micros(r.Int64N(int64(b-a)))
}

// longTail returns mostly little more than least, and now and then much more, up to most.
func (r random) longTail(least, most Micros) Micros {
	switch r.IntN(64) {
	case 0:
		return r.between(least, most)
	case 1, 2, 3:
		return r.between(least, least+(most-least)/8)
	}
	return r.between(least, least+(most-least)/64)
}

// The streams of a seed.
const (
	streamWorld uint64 = iota + 1
	streamFaults
	streamNetwork
	streamDisk
	streamClients
)
