package opsrecord

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Heading is the first line of a file: what was asked.
type Heading struct {
	From     string  `json:"from"`     // the server program and its version
	Role     string  `json:"role"`     // standalone, leader, follower, observer, or in which way it does not serve
	Sessions []int64 `json:"sessions"` // of the conversation, in order; empty where there was none
}

// Answer is what a server answered.
type Answer struct {
	Question string `json:"q"` // a word, or method, blank and path
	// Status, Type and Allow are those of an HTTP response; Status is 0 for a word.
	Status int    `json:"status,omitempty"`
	Type   string `json:"type,omitempty"`
	Allow  string `json:"allow,omitempty"`
	Text   string `json:"text"` // every byte; empty for pages and where nothing came
}

// Recording is the content of a file: one line of JSON for the heading, and one for each answer.
type Recording struct {
	Heading
	Answers []Answer
}

// Write makes the file.
func (r *Recording) Write(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err = enc.Encode(r.Heading)
	for i := 0; err == nil && i < len(r.Answers); i++ {
		err = enc.Encode(r.Answers[i])
	}
	if err == nil {
		err = w.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// Read reads a file.
func Read(name string) (*Recording, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReader(f))
	r := &Recording{}
	if err := dec.Decode(&r.Heading); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for {
		var a Answer
		if err := dec.Decode(&a); err == io.EOF {
			return r, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: answer %d: %w", name, len(r.Answers)+1, err)
		}
		r.Answers = append(r.Answers, a)
	}
}

// Find returns the answer to a question.
func (r *Recording) Find(question string) (Answer, bool) {
	for _, a := range r.Answers {
		if a.Question == question {
			return a, true
		}
	}
	return Answer{}, false
}
