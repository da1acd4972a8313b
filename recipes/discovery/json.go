package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// document is an instance as Curator's JsonInstanceSerializer writes it: every field is there, and null if it is not set,
// but for enabled, which old readers do not know. It counts as true when it is missing.
type document struct {
	Name         string          `json:"name"`
	ID           string          `json:"id"`
	Address      *string         `json:"address"`
	Port         *int            `json:"port"`
	SSLPort      *int            `json:"sslPort"`
	Payload      json.RawMessage `json:"payload"`
	RegisteredMs int64           `json:"registrationTimeUTC"`
	Type         *string         `json:"serviceType"`
	URISpec      *URISpec        `json:"uriSpec"`
	Enabled      *bool           `json:"enabled,omitempty"`
}

// classField is where Jackson writes and looks for the class of a payload.
const classField = "@class"

// encode writes an instance. A payload that is an object gets javaClass, unless that is empty or a class is there already.
func encode[T any](i Instance[T], javaClass string) ([]byte, error) {
	payload, err := json.Marshal(i.Payload)
	if err != nil {
		return nil, fmt.Errorf("discovery: payload of %s: %w", i.ID, err)
	}
	if payload, err = withClass(payload, javaClass); err != nil {
		return nil, fmt.Errorf("discovery: payload of %s: %w", i.ID, err)
	}
	name := i.Type.String()
	d := document{
		Name: i.Name, ID: i.ID, Address: orNull(i.Address), Port: orNull(i.Port), SSLPort: orNull(i.SSLPort),
		Payload: payload, RegisteredMs: i.Registered.UnixMilli(), Type: &name, URISpec: i.URISpec,
	}
	if i.Disabled {
		d.Enabled = new(bool)
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("discovery: %s: %w", i.ID, err)
	}
	if len(data) > instanceBytesMax {
		return nil, fmt.Errorf("discovery: %s has %d bytes, at most %d", i.ID, len(data), instanceBytesMax)
	}
	return data, nil
}

// withClass puts the class first in an object, where Jackson finds it without buffering the rest.
func withClass(payload []byte, javaClass string) ([]byte, error) {
	if javaClass == "" || payload[0] != '{' {
		return payload, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, err
	}
	if _, has := fields[classField]; has {
		return payload, nil
	}
	class, err := json.Marshal(map[string]string{classField: javaClass})
	if err != nil || len(fields) == 0 {
		return class, err
	}
	class[len(class)-1] = ','
	return append(class, payload[1:]...), nil
}

// decode reads what somebody wrote. Unknown fields are ignored, as Curator ignores them.
func decode[T any](data []byte, node string, stat *zk.Stat) (Instance[T], error) {
	fail := func(reason any) (Instance[T], error) {
		return Instance[T]{}, fmt.Errorf("%w: %v", ErrMalformed, reason)
	}
	if len(data) > instanceBytesMax {
		return fail(fmt.Sprintf("%d bytes, at most %d", len(data), instanceBytesMax))
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return fail(err)
	}
	i := Instance[T]{
		Name: d.Name, ID: d.ID, Address: orZero(d.Address), Port: orZero(d.Port), SSLPort: orZero(d.SSLPort),
		Registered: time.UnixMilli(d.RegisteredMs), URISpec: d.URISpec, Disabled: d.Enabled != nil && !*d.Enabled,
		node: node, czxid: stat.Czxid,
	}
	switch {
	case d.Name == "" || d.ID == "":
		return fail("name or id is missing")
	case i.Port < 0 || i.Port > portMax || i.SSLPort < 0 || i.SSLPort > portMax:
		return fail(fmt.Sprintf("ports %d and %d", i.Port, i.SSLPort))
	case d.URISpec != nil && len(d.URISpec.Parts) > uriPartsMax:
		return fail(fmt.Sprintf("a URI spec of %d parts", len(d.URISpec.Parts)))
	}
	if d.Type != nil {
		var err error
		if i.Type, err = parseType(*d.Type); err != nil {
			return fail(err)
		}
	}
	if len(d.Payload) > 0 && !bytes.Equal(d.Payload, []byte("null")) {
		if err := json.Unmarshal(d.Payload, &i.Payload); err != nil {
			return fail(fmt.Sprintf("payload: %v", err))
		}
	}
	return i, nil
}

// orNull makes null of a value that is not set.
func orNull[V comparable](v V) *V {
	if v == *new(V) {
		return nil
	}
	return &v
}

func orZero[V any](v *V) V {
	if v == nil {
		return *new(V)
	}
	return *v
}
