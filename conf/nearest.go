package conf

import "strings"

// nearest returns the known key that was most likely meant, or "" if none is near: at most a quarter of the letters may
// be wrong, and upper and lower case do not count.
func nearest(key string) string {
	if len(key) > lettersMax {
		return ""
	}
	best, bestDistance := "", max(2, len(key)/4)+1
	consider := func(name string) {
		if strings.HasSuffix(name, ".") || strings.HasSuffix(name, "*") {
			return
		}
		if apart := len(key) - len(name); apart > bestDistance || -apart > bestDistance {
			return
		}
		d := distance(strings.ToLower(key), strings.ToLower(name))
		if d < bestDistance || d == bestDistance && best != "" && name < best {
			best, bestDistance = name, d
		}
	}
	for _, k := range keys {
		consider(k.name)
	}
	for _, name := range sortedKeys(inert) {
		consider(name)
	}
	for _, name := range sortedKeys(unsupported) {
		consider(name)
	}
	return best
}

// isKnown tells whether ZooKeeper reads the key.
func isKnown(key string) bool {
	if _, ok := lookup(key); ok {
		return true
	}
	return family(inert, key) != "" || family(unsupported, key) != "" || key == "serverCnxnFactory"
}

// lettersMax bounds the work of distance: no key is longer.
const lettersMax = 100

// distance is the number of letters to insert, delete, replace or swap with their neighbour to turn a into b. Neither
// may be longer than lettersMax.
func distance(a, b string) int {
	var before, prev, row [lettersMax + 1]int
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replace := prev[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}
