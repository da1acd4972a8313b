package discovery

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// URISpec is a template of an address, such as "{scheme}://{address}:{port}/api". It is written as Curator's UriSpec.
//
// The variables of an instance are scheme ("https" if it has an SSL port, else "http"), name, id, address, port, ssl-port,
// registration-time-utc and service-type; "[" and "]" stand for the braces themselves.
type URISpec struct {
	Parts []URIPart `json:"parts"`
}

// URIPart is a piece of text, or the name of a variable.
type URIPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

var errBraces = errors.New("discovery: URI spec: every { needs a } before the next {")

// ParseURISpec takes a template apart.
func ParseURISpec(text string) (*URISpec, error) {
	spec := &URISpec{}
	for text != "" {
		literal, rest, braced := strings.Cut(text, "{")
		if strings.Contains(literal, "}") {
			return nil, errBraces
		}
		spec.add(literal, false)
		if !braced {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || strings.Contains(name, "{") {
			return nil, errBraces
		}
		spec.add(strings.TrimSpace(name), true)
		text = after
	}
	return spec, nil
}

// add leaves out empty parts, as Curator does.
func (u *URISpec) add(value string, variable bool) {
	if value != "" {
		u.Parts = append(u.Parts, URIPart{value, variable})
	}
}

// Build puts the values in. Of several maps the last that has a variable counts; one that none has is left empty.
func (u *URISpec) Build(variables ...map[string]string) string {
	var text strings.Builder
	for _, p := range u.Parts {
		if !p.Variable {
			text.WriteString(p.Value)
			continue
		}
		value := map[string]string{"[": "{", "]": "}", "scheme": "http"}[p.Value]
		for _, m := range variables {
			if v, has := m[p.Value]; has {
				value = v
			}
		}
		text.WriteString(value)
	}
	return text.String()
}

// String returns the template.
func (u *URISpec) String() string {
	var text strings.Builder
	for _, p := range u.Parts {
		if p.Variable {
			text.WriteString("{" + p.Value + "}")
		} else {
			text.WriteString(p.Value)
		}
	}
	return text.String()
}

// MarshalJSON writes an empty list rather than null, which Java's class cannot hold.
func (u *URISpec) MarshalJSON() ([]byte, error) {
	parts := u.Parts
	if parts == nil {
		parts = []URIPart{}
	}
	return json.Marshal(map[string][]URIPart{"parts": parts})
}

// variables are those of Curator's UriSpec.
func (i Instance[T]) variables() map[string]string {
	scheme := "http"
	if i.SSLPort != 0 {
		scheme = "https"
	}
	return map[string]string{
		"scheme": scheme, "name": i.Name, "id": i.ID, "address": i.Address, "port": portText(i.Port), "ssl-port": portText(i.SSLPort),
		"registration-time-utc": strconv.FormatInt(i.Registered.UnixMilli(), 10), "service-type": strings.ToLower(i.Type.String()),
	}
}

func portText(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}
