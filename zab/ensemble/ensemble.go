// Package ensemble knows who belongs to an ensemble and which sets of servers decide for it. It is a pure leaf.
package ensemble

import (
	"cmp"
	"fmt"
	"slices"

	"zabra/zab/zxid"
)

// Member is one server of an ensemble.
type Member struct {
	ID zxid.ServerID
	// Observer members learn what is committed and have no vote.
	Observer bool
	// Addresses are where other servers reach it: one, or several with multi-address.
	Addresses []Address
	// ClientHost and ClientPort are the client part of the server line; the port is 0 if there is none.
	ClientHost string
	ClientPort int
}

// Address is where other servers reach a server. An IPv6 host has no brackets.
type Address struct {
	Host                     string
	QuorumPort, ElectionPort int
}

// Config is a membership with its version. It is immutable.
type Config struct {
	version int64
	members []Member // by id
	voters  []zxid.ServerID
}

// New makes a configuration. The members may come in any order; an id may be used once, and at least one member must
// have a vote.
func New(members []Member, version int64) (*Config, error) {
	c := &Config{version: version, members: slices.Clone(members)}
	slices.SortFunc(c.members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	for i, m := range c.members {
		if i > 0 && c.members[i-1].ID == m.ID {
			return nil, fmt.Errorf("ensemble: two members have the id %d", m.ID)
		}
		if !m.Observer {
			c.voters = append(c.voters, m.ID)
		}
	}
	if len(c.voters) == 0 {
		return nil, fmt.Errorf("ensemble: none of the %d members has a vote", len(members))
	}
	return c, nil
}

// Version tells configurations apart: the zxid of the reconfiguration that made it, 0 for the one from the files.
func (c *Config) Version() int64 { return c.version }

// Members lists all members by id. The slice is the Config's own.
func (c *Config) Members() []Member { return c.members }

// Voters lists the ids of the members with a vote. The slice is the Config's own.
func (c *Config) Voters() []zxid.ServerID { return c.voters }

// Member finds a member.
func (c *Config) Member(id zxid.ServerID) (Member, bool) {
	i, ok := slices.BinarySearchFunc(c.members, id, func(m Member, id zxid.ServerID) int { return cmp.Compare(m.ID, id) })
	if !ok {
		return Member{}, false
	}
	return c.members[i], true
}

// Voter reports whether a server has a vote.
func (c *Config) Voter(id zxid.ServerID) bool {
	_, ok := slices.BinarySearch(c.voters, id)
	return ok
}

// Quorum reports whether the servers for which has is true can decide. has is asked about voters only.
func (c *Config) Quorum(has func(zxid.ServerID) bool) bool {
	n := 0
	for _, id := range c.voters {
		if has(id) {
			n++
		}
	}
	return 2*n > len(c.voters)
}
