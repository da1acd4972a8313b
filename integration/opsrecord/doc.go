// Package opsrecord is what the recordings of the operators' surface are made with: a conversation that brings a server, or
// an ensemble, into a fixed state, the questions that are asked then (every four-letter word and every command of the admin
// server), and the files that hold the answers.
//
// Program opscapture asks the reference server and writes the files; the tests of package server ask Zabra the same and
// compare. The package speaks to sockets only, with an encoder of its own, so that neither side can be wrong in the same
// way as the server.
package opsrecord
