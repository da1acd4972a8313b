// Package schema says what a program may do with its nodes, as Curator's schemas do: a set of rules, each for one path or a
// pattern of paths, that document the nodes and are checked by a client before it sends a request. The server knows nothing
// of them, and other clients are not bound. A breach is a Violation, and is never sent.
package schema
