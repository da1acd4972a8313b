package ensemble

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerLine(t *testing.T) {
	tests := []struct{ text, want string }{
		{"host:2888:3888", "host:2888:3888:participant"},
		{" host : 2888:3888 ", "host:2888:3888:participant"},
		{"host:2888:3888:OBSERVER", "host:2888:3888:observer"},
		{"host:2888:3888: participant ;2181", "host:2888:3888:participant;0.0.0.0:2181"},
		{"host:2888:3888; 127.0.0.1:2181 ", "host:2888:3888:participant;127.0.0.1:2181"},
		{"[::1]:2888:3888;[fe80::2]:2181", "[::1]:2888:3888:participant;[fe80::2]:2181"},
		{"b:1:2|a:3:4", "a:3:4:participant|b:1:2:participant"},
		{"host:2888:3888;0", "host:2888:3888:participant"},
	}
	for _, tt := range tests {
		s, err := ParseMember(1, tt.text)
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, s.Text())
		again, err := ParseMember(1, s.Text())
		require.NoError(t, err)
		require.Equal(t, s.Text(), again.Text())
	}
}

func TestServerLineFaults(t *testing.T) {
	form := wrongForm
	tests := []struct{ text, want string }{
		{"", form},
		{"host", "host" + form},
		{"host:2888", "host:2888" + form},
		{"host:1:2:participant:3", "host:1:2:participant:3" + form},
		{"host:1:2;3;4", "host:1:2;3;4" + form},
		{"host:1:2;a:b:3", "host:1:2;a:b:3" + form},
		{"host:x:2", "Address unresolved: host:x"},
		{"host:1:3888x", "Address unresolved: host:3888x"},
		{"host:1:2;y", "Address unresolved: 0.0.0.0:y"},
		{"host:1:2;", "Address unresolved: 0.0.0.0:"},
		{"host:1:70000", "port out of range:70000"},
		{"host:7:7", "Client and election port must be different! Please update the configuration file on server.4"},
		{"host:1:2:foo", "Unrecognised peertype: foo"},
		{"a:1:2:participant|b:1:2:observer", "Multiple addresses should have the same type (participant/observer): a:1:2:participant|b:1:2:observer"},
		{"[::1:2:3", "[::1:2:3" + form},
		{strings.Repeat("a:1:2|", addressesMax) + "a:1:2", shown(strings.Repeat("a:1:2|", addressesMax)) + form},
	}
	for _, tt := range tests {
		_, err := ParseMember(4, tt.text)
		require.EqualError(t, err, tt.want, tt.text)
	}
}
