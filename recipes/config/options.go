package config

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"zabra/recipes"
)

const (
	fileAfterDefault = 5 * time.Second
	// fileBytesMax bounds what is read of a file: no node is larger.
	fileBytesMax = 64 << 20
	// historyMax is how many versions a cohort's pointer remembers for Rollback.
	historyMax = 16
	// retryWait is between two attempts to read what a pointer names, when the client has given up to repeat the read.
	retryWait = time.Second
)

var (
	// ErrRefused is a value that does not decode, does not encode, or that the validation refuses.
	ErrRefused = errors.New("config: value refused")
	// ErrDeleted is the fault of a Value whose node is gone. The last good version stays in force.
	ErrDeleted = errors.New("config: the node is deleted")
	// ErrFile is a file of the last good version that cannot be used: it is damaged or belongs to another node.
	ErrFile = errors.New("config: unusable file")
	// ErrClosed is a call on a Value that is closed.
	ErrClosed = errors.New("config: closed")
	// ErrCohort is an Update of a Value that follows a cohort: its versions do not change. Publish and Promote make others.
	ErrCohort = errors.New("config: the value of a cohort is changed by Publish and Promote")
)

// Options say how values are read and checked. The zero value is right for JSON without a file.
type Options[T any] struct {
	// Codec is JSON[T] if nil.
	Codec Codec[T]
	// Validate returns why a value must not come into force, or nil. It is asked for each version that is read and before
	// each that is written.
	Validate func(T) error
	// File keeps the last good version on this machine's disk; empty for none. It belongs to one Value of one process.
	// Its directory must exist.
	File string
	// FileAfter is how long Open waits for the ensemble before it takes the version in the file, 5 s if 0.
	FileAfter time.Duration
	// OnFault is called with each fault, one after the other: a version that was refused, a deleted node, a file that
	// cannot be read or written. It must not block. Fault keeps the last one.
	OnFault func(error)
}

func (o *Options[T]) normalize() error {
	if o.FileAfter < 0 {
		return fmt.Errorf("config: FileAfter is negative: %v", o.FileAfter)
	}
	if o.FileAfter == 0 {
		o.FileAfter = fileAfterDefault
	}
	if o.Codec == nil {
		o.Codec = JSON[T]{}
	}
	return nil
}

// decode returns a value that may come into force.
func (o *Options[T]) decode(at string, data []byte) (T, error) {
	value, err := o.Codec.Decode(data)
	if err != nil {
		return value, fmt.Errorf("%w: %s: decoding: %w", ErrRefused, at, err)
	}
	return value, o.validate(at, value)
}

func (o *Options[T]) encode(at string, value T) ([]byte, error) {
	if err := o.validate(at, value); err != nil {
		return nil, err
	}
	data, err := o.Codec.Encode(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: encoding: %w", ErrRefused, at, err)
	}
	// What is written must be readable: otherwise everybody would refuse it.
	if _, err := o.decode(at, data); err != nil {
		return nil, err
	}
	return data, nil
}

func (o *Options[T]) validate(at string, value T) error {
	if o.Validate == nil {
		return nil
	}
	if err := o.Validate(value); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRefused, at, err)
	}
	return nil
}

func parent(p string) string { return path.Dir(p) }

func checkPath(p string) error {
	if !strings.HasPrefix(p, "/") || p != path.Clean(p) || p == "/" {
		return fmt.Errorf("config: %w: %q", recipes.ErrPath, p)
	}
	return nil
}
