//go:build !race

package storage

// crashSeeds is how many worlds the crash test runs.
const crashSeeds = 200
