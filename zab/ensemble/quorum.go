package ensemble

import (
	"cmp"
	"fmt"
	"slices"

	"zabra/zab/zxid"
)

// verifier decides which sets of voters are quorums.
type verifier interface {
	quorum(has func(zxid.ServerID) bool) bool
	weight(id zxid.ServerID) int64
	equal(o verifier) bool
}

// majority: more than half of the voters.
type majority struct{ voters []zxid.ServerID }

func (q majority) quorum(has func(zxid.ServerID) bool) bool {
	n := 0
	for _, id := range q.voters {
		if has(id) {
			n++
		}
	}
	return 2*n > len(q.voters)
}

func (q majority) weight(zxid.ServerID) int64 { return 1 }

func (q majority) equal(o verifier) bool {
	_, ok := o.(majority)
	return ok // the voters follow from the members
}

// Group is a group of servers of a hierarchical ensemble.
type Group struct {
	ID      int64
	Servers []zxid.ServerID
}

// Weight is what a server counts in its group. A voter for which none is given counts 1.
type Weight struct {
	Server zxid.ServerID
	Weight int64
}

// hierarchy: a majority of the groups, each by a majority of its weight.
type hierarchy struct {
	groups  []Group  // by id, their servers sorted
	weights []Weight // by server; complete
	voters  []vote
	totals  []int64 // by index of the group
	counted int     // groups with weight
}

// vote is what a voter adds to which group.
type vote struct {
	id     zxid.ServerID
	group  int // index
	weight int64
}

// newHierarchy checks groups and weights. A group may name servers that have no vote, if they have a weight: they count
// as servers that are never there, as in ZooKeeper.
func newHierarchy(voters []zxid.ServerID, groups []Group, weights []Weight) (*hierarchy, error) {
	h := &hierarchy{weights: slices.Clone(weights)}
	slices.SortFunc(h.weights, func(a, b Weight) int { return cmp.Compare(a.Server, b.Server) })
	for i, w := range h.weights {
		if i > 0 && h.weights[i-1].Server == w.Server {
			return nil, fmt.Errorf("ensemble: server %d has two weights", w.Server)
		}
		if w.Weight < 0 || w.Weight > weightMax {
			return nil, fmt.Errorf("ensemble: weight %d of server %d is outside 0 to %d", w.Weight, w.Server, int64(weightMax))
		}
	}
	for _, id := range voters {
		if i, ok := h.findWeight(id); !ok {
			h.weights = slices.Insert(h.weights, i, Weight{id, 1})
		}
	}
	if err := h.addGroups(groups); err != nil {
		return nil, err
	}
	return h, h.addVoters(voters)
}

func (h *hierarchy) findWeight(id zxid.ServerID) (int, bool) {
	return slices.BinarySearchFunc(h.weights, id, func(w Weight, id zxid.ServerID) int { return cmp.Compare(w.Server, id) })
}

// addGroups sorts the groups and sums up their weights.
func (h *hierarchy) addGroups(groups []Group) error {
	h.groups = slices.Clone(groups)
	slices.SortFunc(h.groups, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	h.totals = make([]int64, len(h.groups))
	var all []zxid.ServerID
	for i := range h.groups {
		g := &h.groups[i]
		if i > 0 && h.groups[i-1].ID == g.ID {
			return fmt.Errorf("ensemble: two groups have the id %d", g.ID)
		}
		g.Servers = slices.Clone(g.Servers)
		slices.Sort(g.Servers)
		all = append(all, g.Servers...)
		for _, id := range g.Servers {
			w, ok := h.findWeight(id)
			if !ok {
				return fmt.Errorf("ensemble: group %d names server %d, which has neither a vote nor a weight", g.ID, id)
			}
			h.totals[i] += h.weights[w].Weight
		}
		if h.totals[i] > 0 {
			h.counted++
		}
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i-1] == all[i] {
			return fmt.Errorf("ensemble: Server %dis in multiple groups", all[i])
		}
	}
	return nil
}

// addVoters puts each voter to its group.
func (h *hierarchy) addVoters(voters []zxid.ServerID) error {
	var sum int64
	for _, id := range voters {
		group := slices.IndexFunc(h.groups, func(g Group) bool { return slices.Contains(g.Servers, id) })
		if group < 0 {
			return fmt.Errorf("ensemble: Server %dis not in a group", id)
		}
		w, _ := h.findWeight(id)
		h.voters = append(h.voters, vote{id, group, h.weights[w].Weight})
		sum += h.weights[w].Weight
	}
	if sum == 0 {
		return fmt.Errorf("ensemble: none of the %d voters has any weight", len(voters))
	}
	return nil
}

func (h *hierarchy) quorum(has func(zxid.ServerID) bool) bool {
	var few [8]int64
	sums := few[:]
	if len(h.groups) > len(few) {
		sums = make([]int64, len(h.groups))
	}
	for _, v := range h.voters {
		if has(v.id) {
			sums[v.group] += v.weight
		}
	}
	n := 0
	for i, total := range h.totals {
		if 2*sums[i] > total {
			n++
		}
	}
	return 2*n > h.counted
}

func (h *hierarchy) weight(id zxid.ServerID) int64 {
	i, ok := h.findWeight(id)
	if !ok {
		return 0
	}
	return h.weights[i].Weight
}

func (h *hierarchy) equal(o verifier) bool {
	oh, ok := o.(*hierarchy)
	return ok && slices.Equal(h.weights, oh.weights) &&
		slices.EqualFunc(h.groups, oh.groups, func(a, b Group) bool { return a.ID == b.ID && slices.Equal(a.Servers, b.Servers) })
}
