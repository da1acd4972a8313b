package server_test

import (
	"bytes"
	"encoding/json"
	"slices"
)

// normalWant brings recorded results into the form in which they are compared. A recorded zxid is [distance, rank]; the
// rank tells nothing that the exact distance does not, and goes.
func normalWant(want goldenResults, s *goldenStep) goldenResults {
	return normalResults(want, s, func(list []any) any { return list[:1] })
}

func normalGot(got goldenResults, s *goldenStep) goldenResults {
	return normalResults(got, s, func(list []any) any { return list })
}

func normalResults(results goldenResults, s *goldenStep, zxid func([]any) any) goldenResults {
	out := goldenResults{}
	for session, list := range results {
		normal := make([]any, 0, len(list))
		for _, x := range list {
			normal = append(normal, normalValue(x, s.Loose, zxid))
		}
		if s.Unordered {
			sortEvents(normal)
		}
		if len(normal) > 0 {
			out[session] = normal
		}
	}
	return out
}

// normalValue copies v with its zxids brought into form, or without them if they are not to be compared.
func normalValue(v any, loose bool, zxid func([]any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if k != "z" && k != "cz" && k != "mz" && k != "pz" {
				out[k] = normalValue(x, loose, zxid)
				continue
			}
			if list, ok := x.([]any); ok {
				x = zxid(list)
			}
			if !loose {
				out[k] = x
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, x := range v {
			out = append(out, normalValue(x, loose, zxid))
		}
		return out
	}
	return v
}

// sortEvents sorts each unbroken series of events by its text.
func sortEvents(list []any) {
	isEvent := func(x any) bool { m, ok := x.(map[string]any); return ok && m["k"] == "event" }
	for from := 0; from < len(list); from++ {
		to := from
		for to < len(list) && isEvent(list[to]) {
			to++
		}
		if to > from {
			slices.SortFunc(list[from:to], func(a, b any) int { return bytes.Compare(jsonText(a), jsonText(b)) })
			from = to
		}
	}
}

// jsonText writes v as JSON with sorted keys, so that equal values have equal texts.
func jsonText(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}
