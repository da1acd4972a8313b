package lock

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names as the languages make them; GUIDs are shortened.
const (
	goLock      = "_c_6f1e-lock-0000000004"
	javaLock    = "_c_ffff-lock-0000000003"
	pythonLock  = "0a1b__lock__0000000002"
	oldGoLock   = "_c_a1b2-lock-0000000001"
	javaReader  = "_c_0000-__READ__0000000006"
	javaWriter  = "_c_eeee-__WRIT__0000000005"
	javaShared  = "_c_1111-__READ__0000000005" // by the grace of javaWriter
	pyReader    = "9e8d__rlock__0000000007"
	pyRenamed   = "dd00-lock-0000000008"
	afterLast   = "_c_6f1e-lock--2147483648"
	stranger    = "config"
	leaseOfHand = "lease-17"
)

func TestOrderIsThatOfTheNumbers(t *testing.T) {
	line := order([]string{stranger, afterLast, pyRenamed, javaShared, goLock, pyReader, javaWriter, leaseOfHand, javaReader, oldGoLock, pythonLock, javaLock})
	var names []string
	for _, c := range line {
		names = append(names, c.name)
	}
	require.Equal(t, []string{oldGoLock, pythonLock, javaLock, goLock, javaShared, javaWriter, javaReader, pyReader, pyRenamed, afterLast}, names)
}

func TestWhoWaitsForWhom(t *testing.T) {
	for _, c := range []struct {
		name  string
		line  []string
		of    string
		waits string // "" for nobody
	}{
		{"alone", []string{goLock}, goLock, ""},
		{"the first", []string{goLock, pyRenamed}, goLock, ""},
		{"the one directly before", []string{goLock, javaLock, pythonLock, oldGoLock}, goLock, javaLock},
		{"not for strangers", []string{stranger, leaseOfHand, goLock}, goLock, ""},
		{"behind the largest number", []string{afterLast, goLock}, afterLast, goLock},
		{"a lock behind a reader", []string{javaReader, pyRenamed}, pyRenamed, javaReader},
		{"a reader behind a lock", []string{goLock, javaReader}, javaReader, goLock},
		{"a reader behind a reader", []string{javaReader, pyReader}, pyReader, ""},
		{"a reader behind reader and writer", []string{goLock, javaWriter, javaReader, pyReader}, pyReader, javaWriter},
		{"a shared reader and its writer", []string{javaWriter, javaShared}, javaShared, ""},
		{"a writer and its shared reader", []string{javaWriter, javaShared}, javaWriter, ""},
		{"a lock behind a shared reader", []string{javaShared, pyRenamed}, pyRenamed, javaShared},
		{"a reader behind a shared reader", []string{javaShared, javaReader}, javaReader, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			self, ok := parse(c.of)
			require.True(t, ok)
			ahead, found := before(order(c.line), self)
			require.Equal(t, c.waits != "", found)
			require.Equal(t, c.waits, ahead.name)
		})
	}
}

func TestNewcomersStandAtTheEnd(t *testing.T) {
	_, found := before(order([]string{afterLast}), contender{sequence: math.MaxInt64})
	require.True(t, found)
	_, found = before(order([]string{pyReader, javaReader}), contender{sequence: math.MaxInt64, reader: isReader(curatorRead)})
	require.False(t, found)
}
