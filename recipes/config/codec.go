package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Codec turns values into the bytes of a node and back. Decode must keep no reference to the bytes.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	Decode([]byte) (T, error)
}

// JSON is the codec that is used when Options name none: encoding/json, with line breaks for human readers. Fields that T
// does not have are ignored, so that a newer writer does not break older readers; a second value behind the first is
// an error.
type JSON[T any] struct{}

// Encode returns the value as JSON.
func (JSON[T]) Encode(value T) ([]byte, error) { return json.MarshalIndent(value, "", "  ") }

// Decode reads one JSON value.
func (JSON[T]) Decode(data []byte) (value T, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&value); err != nil {
		return value, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return value, fmt.Errorf("something follows the value at byte %d", decoder.InputOffset())
	}
	return value, nil
}
