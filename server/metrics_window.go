package server

import (
	"sync"

	"zabra/internal/histogram"
)

// window remembers how the summaries were at some moments of the past, so that quantiles can be told of the last ten
// minutes.
type window struct {
	mu    sync.Mutex
	steps []map[counterKey]histogram.Snapshot // oldest first
}

// step remembers how the summaries are now, and forgets what has got too old.
func (w *window) step(summaries []labelled) {
	now := make(map[counterKey]histogram.Snapshot)
	for _, row := range summaries {
		if row.series == nil {
			continue
		}
		if total := row.series.Total(); total.Count > 0 {
			now[counterKey{row.name, exportLabel(row.label)}] = total
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.steps) == windowSteps {
		w.steps = append(w.steps[:0], w.steps[1:]...)
	}
	w.steps = append(w.steps, now)
}

// begin returns how a summary was when the window begins. While the server has not run for so long it is empty.
func (w *window) begin(key counterKey) histogram.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.steps) < windowSteps {
		return histogram.Snapshot{}
	}
	return w.steps[0][key]
}
