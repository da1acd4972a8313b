package znode

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBeyond: a hard limit counts in the place of a soft one, and only what changes is looked at.
func TestBeyond(t *testing.T) {
	tests := []struct {
		name                     string
		soft, hard, usage, delta int64
		over                     bool
		text                     string
	}{
		{"no limit", -1, -1, 5, 1, false, ""},
		{"soft", 5, -1, 5, 1, true, "Quota exceeded: /q [current count=6, softCountLimit=5]"},
		{"soft, not reached", 6, -1, 5, 1, false, ""},
		{"hard", -1, 5, 5, 1, true, "Quota exceeded: /q [current count=6, hardCountLimit=5]"},
		{"hard instead of soft", 3, 9, 5, 1, false, ""},
		{"no change", 1, 1, 5, 0, false, ""},
		{"nothing allowed", -1, 0, 0, 1, true, "Quota exceeded: /q [current count=1, hardCountLimit=0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, over := beyond(tt.soft, tt.hard, tt.usage, tt.delta)
			require.Equal(t, tt.over, over)
			if over {
				b.Prefix = "/q"
				require.Equal(t, tt.text, b.String())
			}
		})
	}
	b := QuotaBreach{Prefix: "/q", Bytes: true, Hard: true, After: 11, Limit: 10}
	require.Equal(t, "Quota exceeded: /q [current bytes=11, hardBytesLimit=10]", b.String())
}

// QuotaExceeded reports whether CheckQuota finds a hard limit.
func (t *Tree) QuotaExceeded(path []byte, countDelta, bytesDelta int64) bool {
	breach, over := t.CheckQuota(path, countDelta, bytesDelta)
	return over && breach.Hard
}
