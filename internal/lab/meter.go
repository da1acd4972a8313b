package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"zabra/server/client"
)

// metricsBytesMax bounds an answer to a look at /metrics.
const metricsBytesMax = 4 << 20

// Meter reads the counters of a server from outside.
type Meter struct {
	// name says where the numbers come from.
	name string
	// looks is how many packets of the server's count one look costs.
	looks int64
	// events are the names of the sums of notifications by kind.
	events [4]string
	read   func(ctx context.Context) (map[string]int64, error)
}

// Mntr asks by the four-letter word mntr.
func Mntr(addr string) *Meter {
	return &Meter{
		name: "mntr of " + addr, looks: 1,
		events: [4]string{"sum_node_created_watch_count", "sum_node_deleted_watch_count", "sum_node_changed_watch_count", "sum_node_children_watch_count"},
		read: func(ctx context.Context) (map[string]int64, error) {
			answer, err := client.Word(ctx, addr, "mntr")
			if err != nil {
				return nil, fmt.Errorf("mntr of %s: %w", addr, err)
			}
			return parseMntr(answer)
		},
	}
}

// Prometheus asks by HTTP, as Prometheus does.
func Prometheus(url string) *Meter {
	return &Meter{
		name:   url,
		events: [4]string{"node_created_watch_count_sum", "node_deleted_watch_count_sum", "node_changed_watch_count_sum", "node_children_watch_count_sum"},
		read: func(ctx context.Context) (map[string]int64, error) {
			values, err := scrape(ctx, url)
			if err != nil {
				return nil, fmt.Errorf("metrics: %w", err)
			}
			return values, nil
		},
	}
}

func scrape(ctx context.Context, url string) (map[string]int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, metricsBytesMax+1))
	if err == nil && len(text) > metricsBytesMax {
		err = fmt.Errorf("%s: more than %d bytes", url, metricsBytesMax)
	}
	return parseLines(string(text), " ", ""), err
}

// errNoWord is the answer of a server that may not answer mntr.
var errNoWord = errors.New("mntr is not in the server's 4lw.commands.whitelist")

func parseMntr(answer string) (map[string]int64, error) {
	const prefix = "zk_"
	values := parseLines(answer, "\t", prefix)
	switch {
	case len(values) > 0:
		return values, nil
	case strings.Contains(answer, "whitelist"):
		return nil, errNoWord
	}
	line, _, _ := strings.Cut(answer, "\n")
	return nil, fmt.Errorf("unexpected answer to mntr: %.100q", line)
}

// parseLines reads lines of a name and a whole number. Others, such as those with labels, are passed over.
func parseLines(text, between, prefix string) map[string]int64 {
	values := map[string]int64{}
	for line := range strings.Lines(text) {
		name, number, found := strings.Cut(strings.TrimSuffix(line, "\n"), between)
		name, ours := strings.CutPrefix(name, prefix)
		if !found || !ours || strings.Contains(name, "{") {
			continue
		}
		if v, err := strconv.ParseFloat(number, 64); err == nil && v == float64(int64(v)) {
			values[name] = int64(v)
		}
	}
	return values
}

// reading is what the counters are at a moment; nothing in it but err if they could not be read.
type reading struct {
	values map[string]int64
	err    error
}

func (m *Meter) look(ctx context.Context) reading {
	values, err := m.read(ctx)
	return reading{values, err}
}

// notified is how many notifications the server has sent between two looks; false if it does not tell.
func (m *Meter) notified(before, after reading) (n int64, known bool) {
	for _, name := range m.events {
		d, known := difference(before, after, name)
		if !known {
			return 0, false
		}
		n += d
	}
	return n, true
}

// requests is how many requests the server has received between two looks, the looks and the pings left out. A server that
// does not count its pings has received those that were seen on the connections here.
func (m *Meter) requests(before, after reading, seen int64) (n int64, known bool) {
	n, known = difference(before, after, "packets_received")
	pings, counted := difference(before, after, "pings_received")
	if !counted {
		pings = seen
	}
	return n - pings - m.looks, known
}

func difference(before, after reading, name string) (int64, bool) {
	from, ok := before.values[name]
	to, also := after.values[name]
	if !ok || !also {
		return 0, false
	}
	return to - from, true
}

// missing says what the counters of this server do not tell; "" if there is nothing.
func (m *Meter) missing(r reading) string {
	if r.err != nil {
		return fmt.Sprintf("The server's counters cannot be read (%v): notifications and requests are not shown.", r.err)
	}
	_, notified := m.notified(r, r)
	_, requests := m.requests(r, r, 0)
	_, pings := difference(r, r, "pings_received")
	switch {
	case !notified && !requests:
		return "The server counts neither notifications nor requests by the names that ZooKeeper 3.9 has for them: they are not shown."
	case !notified:
		return "The server does not count notifications by the names that ZooKeeper 3.9 has for them: they are not shown."
	case !requests:
		return "The server does not count requests by the name that ZooKeeper 3.9 has for them: they are not shown."
	case !pings:
		return "This server counts pings among the requests: those that were seen on the connections of the lab are taken off."
	}
	return ""
}
