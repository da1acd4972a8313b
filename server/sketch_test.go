package server

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// No count is too low, none is too high by more than it says, and what makes up more than its share is there.
func TestSketch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var k sketch
		k.init(16)
		exact := map[string]int64{}
		total := int64(0)
		for range 3000 {
			n := rng.IntN(1 + rng.IntN(1+rng.IntN(200))) // small numbers are frequent
			key := fmt.Sprint("/", n)
			k.add([]byte(key))
			exact[key]++
			total++
		}
		found := map[string]bool{}
		list := k.largest(100)
		require.Len(t, list, 16)
		require.Len(t, k.pos, 16)
		sum := int64(0)
		for i, p := range list {
			found[p.key] = true
			require.GreaterOrEqual(t, p.count, exact[p.key])
			require.LessOrEqual(t, p.count-p.over, exact[p.key])
			require.True(t, i == 0 || list[i-1].count >= p.count)
			sum += p.count
		}
		require.Equal(t, total, sum)
		for key, n := range exact {
			if n > total/16 {
				require.True(t, found[key], "%s came %d times of %d", key, n, total)
			}
		}
		require.Equal(t, list[:3], k.largest(3))
	}
}

func TestLargest(t *testing.T) {
	l := largest{n: 3}
	asked := 0
	for i, size := range []int64{5, 0, 1, 9, 9, 2, 7} {
		l.offer(size, func() string { asked++; return fmt.Sprint(i) })
	}
	var got []string
	for _, o := range l.objects("size") {
		got = append(got, fmt.Sprint(o[0].Value, ":", o[1].Value))
	}
	require.Equal(t, []string{"3:9", "4:9", "6:7"}, got)
	require.Equal(t, 5, asked)
}

func TestRateLimit(t *testing.T) {
	var l rateLimit
	require.Zero(t, l.wait(5, 100))
	require.EqualValues(t, 100, l.wait(5, 100))
	require.EqualValues(t, 1, l.wait(104, 100))
	require.Zero(t, l.wait(105, 100))
	require.EqualValues(t, 50, l.wait(155, 100))
	require.Zero(t, l.wait(155, 0))
}
