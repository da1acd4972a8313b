//go:build linux

package main

import (
	"math"
	"slices"

	"zabra/integration/harness"
)

const (
	// undecided is how far a figure has to be from its aim: what lies nearer counts as missed.
	undecided = 0.10
	// bigHeapShare is the part of each aim that holds against the better of the reference server's heaps.
	bigHeapShare = 0.75
)

// spread is what the pairs of all rounds give.
type spread struct {
	median, low, high float64
	pairs             int
}

// spreadOf returns median and range.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{median: median(values), low: slices.Min(values), high: slices.Max(values), pairs: len(values)}
}

// median returns the middle value, of an even number the mean of the two in the middle; of none NaN.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

// factors returns how many times better a is than b in each round that has both: a/b where more is better, else b/a.
func (r *results) factors(of row, f figure, a, b contestant) (all []float64) {
	for round := range r.rounds() {
		va, okA := r.figure(of, f, a, round)
		vb, okB := r.figure(of, f, b, round)
		if !okA || !okB || va <= 0 || vb <= 0 {
			continue
		}
		if f.higher {
			all = append(all, va/vb)
		} else {
			all = append(all, vb/va)
		}
	}
	return all
}

// figure returns a figure of one contestant in one round.
func (r *results) figure(of row, f figure, who contestant, round int) (float64, bool) {
	rec := r.all[entry{of.id, who.name, round}]
	if rec == nil || rec.Failed != "" {
		return 0, false
	}
	return rec.value(f.key)
}

// values returns a figure of one contestant in all rounds.
func (r *results) values(of row, f figure, who contestant) (all []float64) {
	for round := range r.rounds() {
		if v, known := r.figure(of, f, who, round); known {
			all = append(all, v)
		}
	}
	return all
}

// verdict is what a figure comes to, the worst last.
type verdict int

const (
	noAim verdict = iota
	met
	unmeasured
	near // to its aim, which counts as missed
	missed
)

func (v verdict) String() string {
	return [...]string{"", "met", "not measured", "**missed** (within 10 %)", "**missed**"}[v]
}

// isMissed says whether the figure is one of those that are named first.
func (v verdict) isMissed() bool { return v == missed || v == near }

// finding is a figure with what was measured.
type finding struct {
	row    row
	figure figure
	plain  spread // times better than the reference server with its default heap
	big    spread // the same for the larger heap; no pairs where that is not measured
	limit  spread // the figure as a share of its own limit
	verdict
}

// judge compares one figure with all its aims.
func (r *results) judge(of row, f figure, reference harness.Kind) finding {
	zabra, plain, big := contestants(reference)
	found := finding{row: of, figure: f, plain: spreadOf(r.factors(of, f, zabra, plain)), big: spreadOf(r.factors(of, f, zabra, big))}
	if f.limit > 0 {
		shares := r.values(of, f, zabra)
		for i := range shares {
			shares[i] /= f.limit
		}
		found.limit = spreadOf(shares)
	}
	found.verdict = found.decide()
	return found
}

// decide says what all aims of a figure come to: the worst of them.
func (f *finding) decide() verdict {
	v := noAim
	worse := func(other verdict) { v = max(v, other) }
	if f.figure.aim > 0 {
		worse(ahead(f.plain, f.figure.aim))
		if f.row.bigHeap {
			worse(ahead(f.big, f.figure.aim*bigHeapShare))
		}
	}
	if f.figure.limit > 0 {
		worse(below(f.limit, f.figure.exact))
	}
	return v
}

// ahead judges factors that are to be at least the aim.
func ahead(s spread, aim float64) verdict {
	switch {
	case s.pairs == 0:
		return unmeasured
	case s.median >= aim*(1+undecided):
		return met
	case s.median >= aim*(1-undecided):
		return near
	}
	return missed
}

// below judges shares of a limit that are to be at most 1.
func below(s spread, exact bool) verdict {
	margin := undecided
	if exact {
		margin = 0
	}
	switch {
	case s.pairs == 0:
		return unmeasured
	case s.median <= 1-margin:
		return met
	case s.median <= 1+margin:
		return near
	}
	return missed
}

// findings judges every figure of every row.
func (r *results) findings(reference harness.Kind) (all []finding) {
	for _, of := range allRows() {
		for _, f := range of.figures {
			all = append(all, r.judge(of, f, reference))
		}
	}
	return all
}
