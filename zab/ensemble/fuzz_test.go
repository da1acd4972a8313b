package ensemble

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse feeds any text: no panic, and what is accepted is rendered to a text that means the same.
func FuzzParse(f *testing.F) {
	f.Add("server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=[::1]:1:2|b:3:4:participant\nversion=100000004")
	f.Add("server.1=a:1:2\nserver.2=b:1:2:observer\ngroup.1=1\ngroup.2=2\nweight.1=3\nweight.2=0")
	f.Add("server.-1=:0:1;:5\nversion=7fffffffffffffff")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(c.Text())
		require.NoError(t, err)
		require.True(t, c.Equal(again), "%q", c.Text())
		require.Equal(t, c.Version(), again.Version())
	})
}
