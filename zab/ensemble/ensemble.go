// Package ensemble knows who belongs to an ensemble and which sets of servers decide for it. It is a pure leaf.
//
// A Config comes from the members (New), from the lines of a configuration file (FromLines), or from a text as servers
// hand it to each other and as clients find it in /zookeeper/config (Parse). It is immutable.
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
	quorums verifier
}

// New makes a configuration in which the majority of the voters decides. The members may come in any order; an id may be
// used once, and at least one member must have a vote.
func New(members []Member, version int64) (*Config, error) {
	c := &Config{version: version, members: slices.Clone(members)}
	slices.SortFunc(c.members, byID)
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
	c.quorums = majority{c.voters}
	return c, nil
}

// NewHierarchical makes a configuration in which groups decide: a quorum is a majority of the groups, and in each of
// these the servers that are part of it have more than half of the group's weight. Every voter belongs to exactly one
// group. Groups without any weight do not count.
func NewHierarchical(members []Member, version int64, groups []Group, weights []Weight) (*Config, error) {
	c, err := New(members, version)
	if err != nil {
		return nil, err
	}
	h, err := newHierarchy(c.voters, groups, weights)
	if err != nil {
		return nil, err
	}
	c.quorums = h
	return c, nil
}

func byID(a, b Member) int { return cmp.Compare(a.ID, b.ID) }

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

// Electable reports whether a server may lead: it has a vote, and the vote has weight.
func (c *Config) Electable(id zxid.ServerID) bool { return c.Voter(id) && c.quorums.weight(id) > 0 }

// Quorum reports whether the servers for which has is true can decide. has is asked about voters only. Any two quorums
// have a server in common.
func (c *Config) Quorum(has func(zxid.ServerID) bool) bool { return c.quorums.quorum(has) }

// Equal reports whether o has the same members, with the same roles, addresses and client addresses, and decides in the
// same way. The versions are not looked at.
func (c *Config) Equal(o *Config) bool {
	return slices.EqualFunc(c.members, o.members, Member.Equal) && c.quorums.equal(o.quorums)
}

// Equal reports whether two members are the same in every respect. The order of the addresses does not matter.
func (m Member) Equal(o Member) bool {
	return m.ID == o.ID && m.Observer == o.Observer && m.ClientPort == o.ClientPort && m.ClientHost == o.ClientHost &&
		slices.Equal(sortedAddresses(m.Addresses), sortedAddresses(o.Addresses))
}

func sortedAddresses(list []Address) []Address {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.QuorumPort, b.QuorumPort), cmp.Compare(a.ElectionPort, b.ElectionPort))
	})
	return list
}
