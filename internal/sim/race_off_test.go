//go:build !race

package sim

// testSeeds is how many worlds the tests run.
const testSeeds = 60
