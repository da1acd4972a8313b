// Package zabtest runs Nodes of package zab against each other in one goroutine, with disks, links and a clock of its own.
//
// A World does one thing at a time: a message arrives, an operation reaches a disk, a connection opens. A script takes
// them in the order in which they came about and says where to stop; a random world draws from what could be next. In
// both, every step is judged: see judge.go for what must hold whatever happens.
//
// A Story is a World that writes down what happens, one line per message, for reading and for comparison with a golden
// file.
package zabtest
