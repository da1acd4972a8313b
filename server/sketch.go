package server

import (
	"cmp"
	"slices"
)

// sketch counts how often keys come in a memory that does not grow with the number of keys (the algorithm is known as
// space-saving). When a new key comes and all places are taken, it takes over the place of the one with the least count,
// and that count. So no count is too low, each tells by how much it may be too high, and a key that makes up more than one
// of as many requests as there are places is never missing.
type sketch struct {
	// places is a heap: the least count is first.
	places []place
	pos    map[string]int
	max    int
}

type place struct {
	key   string
	count int64
	over  int64 // so much of the count may be that of keys before
}

func (k *sketch) init(max int) { *k = sketch{pos: make(map[string]int), max: max} }

// add counts a key once.
func (k *sketch) add(key []byte) {
	i, ok := k.pos[string(key)]
	switch {
	case ok:
	case len(k.places) < k.max:
		i = len(k.places)
		k.places = append(k.places, place{key: string(key)})
		k.pos[k.places[i].key] = i
		k.places[i].count++
		k.up(i)
		return
	default:
		p := &k.places[0]
		delete(k.pos, p.key)
		p.key, p.over = string(key), p.count
		k.pos[p.key] = 0
	}
	k.places[i].count++
	k.down(i)
}

func (k *sketch) swap(i, j int) {
	k.places[i], k.places[j] = k.places[j], k.places[i]
	k.pos[k.places[i].key], k.pos[k.places[j].key] = i, j
}

func (k *sketch) up(i int) {
	for i > 0 && k.places[i].count < k.places[(i-1)/2].count {
		k.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (k *sketch) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(k.places); child++ {
			if k.places[child].count < k.places[least].count {
				least = child
			}
		}
		if least == i {
			return
		}
		k.swap(i, least)
		i = least
	}
}

// largest returns the n keys with the highest counts, the highest first.
func (k *sketch) largest(n int) []place {
	list := slices.Clone(k.places)
	slices.SortFunc(list, func(a, b place) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key)) })
	return list[:min(n, len(list))]
}
