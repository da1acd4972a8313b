package ensemble

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"zabra/zab/zxid"
)

// voters makes members with a vote.
func voters(ids ...zxid.ServerID) (members []Member) {
	for _, id := range ids {
		members = append(members, Member{ID: id, Addresses: []Address{{"h", 1, 2}}})
	}
	return members
}

// in returns the predicate of a set.
func in(ids ...zxid.ServerID) func(zxid.ServerID) bool {
	return func(id zxid.ServerID) bool { return slices.Contains(ids, id) }
}

func TestMembers(t *testing.T) {
	members := append(voters(3, -2, 1), Member{ID: 9, Observer: true})
	c, err := New(members, 7)
	require.NoError(t, err)
	require.EqualValues(t, 7, c.Version())
	require.Equal(t, []zxid.ServerID{-2, 1, 3}, c.Voters())
	require.Len(t, c.Members(), 4)
	require.EqualValues(t, 3, members[0].ID, "the argument is left alone")
	m, ok := c.Member(9)
	require.True(t, ok)
	require.True(t, m.Observer)
	_, ok = c.Member(2)
	require.False(t, ok)
	require.True(t, c.Voter(-2))
	require.False(t, c.Voter(9))
	require.True(t, c.Electable(3))
	require.False(t, c.Electable(9))
	require.IsType(t, majority{}, c.quorums)
}

func TestFaultyMemberships(t *testing.T) {
	_, err := New(voters(1, 2, 1), 0)
	require.EqualError(t, err, "ensemble: two members have the id 1")
	_, err = New([]Member{{ID: 1, Observer: true}}, 0)
	require.EqualError(t, err, "ensemble: none of the 1 members has a vote")
	tests := []struct {
		groups  []Group
		weights []Weight
		want    string
	}{
		{nil, nil, "Server 1is not in a group"},
		{[]Group{{1, []zxid.ServerID{1, 2}}}, nil, "Server 3is not in a group"},
		{[]Group{{1, []zxid.ServerID{1, 2}}, {2, []zxid.ServerID{3, 2}}}, nil, "Server 2is in multiple groups"},
		{[]Group{{1, []zxid.ServerID{1, 2, 3, 3}}}, nil, "Server 3is in multiple groups"},
		{[]Group{{1, []zxid.ServerID{1, 2}}, {1, []zxid.ServerID{3}}}, nil, "two groups have the id 1"},
		{[]Group{{1, []zxid.ServerID{1, 2, 3, 8}}}, nil, "group 1 names server 8, which has neither a vote nor a weight"},
		{[]Group{{1, []zxid.ServerID{1, 2, 3}}}, []Weight{{1, -1}}, "weight -1 of server 1 is outside 0 to 2147483648"},
		{[]Group{{1, []zxid.ServerID{1, 2, 3}}}, []Weight{{1, 1 << 32}}, "weight 4294967296 of server 1 is outside 0 to 2147483648"},
		{[]Group{{1, []zxid.ServerID{1, 2, 3}}}, []Weight{{1, 2}, {1, 3}}, "server 1 has two weights"},
		{[]Group{{1, []zxid.ServerID{1, 2, 3}}}, []Weight{{1, 0}, {2, 0}, {3, 0}}, "none of the 3 voters has any weight"},
	}
	for _, tt := range tests {
		c, err := NewHierarchical(voters(1, 2, 3), 0, tt.groups, tt.weights)
		require.EqualError(t, err, "ensemble: "+tt.want)
		require.Nil(t, c)
	}
}

func TestMajority(t *testing.T) {
	c, err := New(append(voters(1, 2, 3, 4), Member{ID: 5, Observer: true}), 0)
	require.NoError(t, err)
	require.False(t, c.Quorum(in()))
	require.False(t, c.Quorum(in(1, 2)))
	require.False(t, c.Quorum(in(1, 2, 5)), "observers do not count")
	require.True(t, c.Quorum(in(1, 2, 4)))
	one, err := New(voters(1), 0)
	require.NoError(t, err)
	require.True(t, one.Quorum(in(1)))
	require.False(t, one.Quorum(in(2)))
}

// TestHierarchy is the nine servers of three groups, in which four can decide.
func TestHierarchy(t *testing.T) {
	members := voters(1, 2, 3, 4, 5, 6, 7, 8, 9)
	groups := []Group{{3, []zxid.ServerID{9, 8, 7}}, {1, []zxid.ServerID{1, 2, 3}}, {2, []zxid.ServerID{4, 5, 6}}}
	c, err := NewHierarchical(members, 0, groups, nil)
	require.NoError(t, err)
	require.IsType(t, &hierarchy{}, c.quorums)
	require.True(t, c.Quorum(in(1, 2, 4, 5)))
	require.False(t, c.Quorum(in(1, 2, 3, 4, 7)), "a majority of one group only")
	require.True(t, c.Quorum(in(1, 2, 3, 7, 9)))

	weighted, err := NewHierarchical(members, 0, groups, []Weight{{1, 3}, {7, 0}, {8, 0}, {9, 0}})
	require.NoError(t, err)
	require.False(t, weighted.Quorum(in(1, 7, 8, 9)), "group 3 has no weight: both others are needed")
	require.True(t, weighted.Quorum(in(1, 4, 5)))
	require.False(t, weighted.Quorum(in(2, 3, 4, 5)))
	require.False(t, weighted.Electable(7))
	require.True(t, weighted.Electable(2))
	require.False(t, c.Equal(weighted))

	// A server that exists in a group only is one that is never there.
	ghost, err := NewHierarchical(voters(1, 2), 0, []Group{{1, []zxid.ServerID{1, 2, 8}}}, []Weight{{8, 2}})
	require.NoError(t, err)
	require.False(t, ghost.Quorum(in(1, 2)))
}

// drawConfig draws any membership.
func drawConfig(t *rapid.T) *Config {
	ids := rapid.SliceOfNDistinct(rapid.Int64Range(-3, 300), 1, 9, rapid.ID).Draw(t, "ids")
	var members []Member
	for i, id := range ids {
		m := Member{ID: zxid.ServerID(id), Observer: i > 0 && rapid.IntRange(0, 5).Draw(t, "observer") == 0}
		for range rapid.IntRange(1, 2).Draw(t, "addresses") {
			host := rapid.SampledFrom([]string{"a", "zoo-1.example", "10.0.0.1", "::1", "fe80::2"}).Draw(t, "host")
			quorum := rapid.IntRange(1, 65535).Draw(t, "quorum")
			m.Addresses = append(m.Addresses, Address{host, quorum, quorum%65535 + 1})
		}
		if rapid.Bool().Draw(t, "client") {
			m.ClientHost, m.ClientPort = rapid.SampledFrom([]string{"0.0.0.0", "::"}).Draw(t, "client host"), rapid.IntRange(1, 65535).Draw(t, "port")
		}
		members = append(members, m)
	}
	version := rapid.Int64Min(0).Draw(t, "version")
	if rapid.Bool().Draw(t, "majority") {
		c, err := New(members, version)
		require.NoError(t, err)
		return c
	}
	groups := make([]Group, rapid.IntRange(1, 4).Draw(t, "groups"))
	var weights []Weight
	for _, m := range members {
		g := &groups[rapid.IntRange(0, len(groups)-1).Draw(t, "group")]
		w := rapid.Int64Range(0, 3).Draw(t, "weight")
		if m.ID == members[0].ID {
			w = 1
		}
		g.Servers = append(g.Servers, m.ID)
		weights = append(weights, Weight{m.ID, w})
	}
	for i := range groups {
		groups[i].ID = int64(i * 3)
	}
	groups = slices.DeleteFunc(groups, func(g Group) bool { return len(g.Servers) == 0 })
	c, err := NewHierarchical(members, version, groups, weights)
	require.NoError(t, err)
	return c
}

// TestQuorumsIntersect: any two quorums have a voter in common. So no quorum may exist beside its complement.
func TestQuorumsIntersect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		ids := c.Voters()
		var quorums []uint
		for set := uint(0); set < 1<<len(ids); set++ {
			has := func(id zxid.ServerID) bool { return set&(1<<slices.Index(ids, id)) != 0 }
			if c.Quorum(has) {
				quorums = append(quorums, set)
			}
		}
		for i, a := range quorums {
			for _, b := range quorums[i:] {
				require.NotZero(t, a&b, "%b and %b of %v", a, b, ids)
			}
		}
		require.False(t, c.Quorum(in()))
	})
}

// TestQuorumsGrow: a quorum with more servers is one, too.
func TestQuorumsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		ids := c.Voters()
		set := rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, len(ids), rapid.ID).Draw(t, "set")
		if c.Quorum(in(set...)) {
			require.True(t, c.Quorum(in(append(set, rapid.SampledFrom(ids).Draw(t, "one more"))...)))
		}
	})
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		again, err := Parse(c.Text())
		require.NoError(t, err)
		require.True(t, c.Equal(again))
		require.Equal(t, c.Version(), again.Version())
		require.Equal(t, c.Text(), again.Text())
		require.IsType(t, c.quorums, again.quorums)
	})
}

func TestText(t *testing.T) {
	c, err := Parse("version=100000004\nserver.2=b:2888:3888:observer;2181\n server.1 = [::1]:2888:3888 \n\n")
	require.NoError(t, err)
	require.Equal(t, "server.1=[::1]:2888:3888:participant\nserver.2=b:2888:3888:observer;0.0.0.0:2181\nversion=100000004", c.Text())
	c, err = Parse("server.2=b:1:2\nserver.1=a:1:2\nserver.10=c:1:2\nweight.10=5\ngroup.7=10:1\ngroupie.3=2")
	require.NoError(t, err)
	require.Equal(t, "server.1=a:1:2:participant\nserver.2=b:1:2:participant\nserver.10=c:1:2:participant\n"+
		"group.3=2\ngroup.7=1:10\nweight.1=1\nweight.2=1\nweight.10=5\nversion=0", c.Text())
}

func TestFaultyTexts(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "ensemble: none of the 0 members has a vote",
		"server.1":                           `ensemble: line "server.1" has no value`,
		"server.1=a:1:2\nserver.1=b:1:2":     "ensemble: server.1 comes twice",
		"version=1\nversion=2":               "ensemble: version comes twice",
		"server.1=a:1:2\nversion=xyz":        `ensemble: version "xyz" is not a hexadecimal number from 0`,
		"server.1=a:1:2\nversion=-1":         `ensemble: version "-1" is not a hexadecimal number from 0`,
		"tickTime=2000":                      "tickTime: Unrecognised parameter: tickTime",
		"server.x=a:1:2":                     `server.x: For input string: "x"`,
		"server.1=a:1":                       "server.1: a:1" + wrongForm,
		"server.1=a:1:2\ngroup=1":            `group: For input string: ""`,
		"server.1=a:1:2\nweight.1=1.5":       `weight.1: For input string: "1.5"`,
		strings.Repeat("\n", textBytesMax+1): "ensemble: a configuration of 1048577 bytes is longer than 1048576",
	} {
		_, err := Parse(text)
		require.EqualError(t, err, want)
	}
}

func TestEqual(t *testing.T) {
	const text = "server.1=a:1:2|b:3:4;5\nserver.2=c:1:2"
	parse := func(text string) *Config {
		c, err := Parse(text)
		require.NoError(t, err)
		return c
	}
	base := parse(text)
	require.True(t, base.Equal(parse(text+"\nversion=9")), "versions are not looked at")
	require.True(t, base.Equal(parse("server.2=c:1:2\nserver.1=b:3:4|a:1:2;5")), "the order does not matter")
	for _, other := range []string{
		"server.1=a:1:2|b:3:4;5", "server.1=a:1:2|b:3:4;5\nserver.3=c:1:2", "server.1=a:1:2|b:3:4;6\nserver.2=c:1:2",
		"server.1=a:1:2|b:3:4;h:5\nserver.2=c:1:2", "server.1=a:1:2|b:3:9;5\nserver.2=c:1:2", "server.1=a:1:2;5\nserver.2=c:1:2",
		"server.1=a:1:2|b:3:4;5\nserver.2=c:1:2:observer", text + "\ngroup.1=1:2",
	} {
		require.False(t, base.Equal(parse(other)), other)
	}
	grouped := parse(text + "\ngroup.1=1:2")
	require.True(t, grouped.Equal(parse(text+"\ngroup.1=2:1\nweight.2=1")))
	require.False(t, grouped.Equal(parse(text+"\ngroup.2=1:2")))
	require.False(t, grouped.Equal(parse(text+"\ngroup.1=1:2\nweight.2=2")))
	require.False(t, grouped.Equal(base))
}
