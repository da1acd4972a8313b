//go:build race

package server_test

// idleBytesMax is what an idle connection with a session may cost. The race detector makes stacks larger.
const idleBytesMax = 16 << 10

// crashWorlds is how many worlds the crash test runs.
const crashWorlds = 12
