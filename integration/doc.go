// Package integration holds the tests that run real ZooKeeper clients, and the reference server, against Zabra. They speak
// only to sockets, files and processes, need the build tag interop, and are started by `make interop`.
package integration
