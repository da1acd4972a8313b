//go:build !race

package server_test

// idleBytesMax is what an idle connection with a session may cost.
const idleBytesMax = 8 << 10

// crashWorlds is how many worlds the crash test runs.
const crashWorlds = 500
